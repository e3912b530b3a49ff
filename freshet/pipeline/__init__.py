"""Composes Flink jobs out of Freshet's operators. Imports PyFlink, so only job scripts import it."""
