"""Composes Flink jobs out of Freshet's operators; imports PyFlink, so only job scripts use it."""
