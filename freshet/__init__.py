"""Freshet: fresh features, in every region, for the least compute and egress."""

__version__ = "0.1.0"
