"""Benchmarks of Freshet: ``make bench``, or ``python -m benchmarks --only NAME``.

Every figure is measured beside its baseline, in turns, in one run, and reported as a median.
"""
