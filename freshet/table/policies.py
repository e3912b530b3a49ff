"""The scheduling policies, and what each of them works with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Need(StrEnum):
    """What a policy works with beside events; without it, its order means little."""

    LABELS = "labels"
    """Feedback with errors."""

    QUERIES = "queries"
    """Feedback, with errors or without."""

    COSTS = "costs"
    """Measured time of computations, which makes choices depend on the machine."""

    KEPT_VERSIONS = "kept-versions"
    """A table with ``keep_versions`` of 2 or more, and feedback on all of them."""


POLICY_NEEDS: Mapping[str, frozenset[Need]] = {
    "regret-proportional": frozenset({Need.LABELS}),
    "rising-regret": frozenset({Need.LABELS}),
    "regret-over-baseline": frozenset({Need.LABELS}),
    "regret-per-cost": frozenset({Need.LABELS, Need.COSTS}),
    "query-proportional": frozenset({Need.QUERIES}),
    "round-robin": frozenset(),
    "random": frozenset(),
    "minimum-past": frozenset(),
    "max-pending": frozenset(),
    "fifo": frozenset(),
}
"""Every policy by name, as ``SchedulingPolicies`` on the Java side."""

POLICIES = tuple(POLICY_NEEDS)
"""Scheduling policies: which key is computed next."""
