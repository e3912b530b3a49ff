"""Algorithms of others, to compare with; each module says what it does and where it is from.

Their authors know no VMs, so each region that a plan uses gets the most allowed (Cloudcast §5).
None of them heeds the deadline, where its module does not say so.
"""
