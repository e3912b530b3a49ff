"""The planner's metrics, counted in the task's thread.

They are counters, since Flink would read a gauge of Python in another thread, and the embedded
interpreter belongs to the task's.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyflink.metrics import Counter, MetricGroup

from freshet.multicast.decisions import Decisions
from freshet.multicast.egress import Egress
from freshet.multicast.settings import Link

_INTERVAL_MS = 1_000


class PlannerMetrics:
    """Counts what the planner has decided, and what the links that it plans have cost.

    Args:
        group: of all metrics of ours.
        decisions: of the planner.
        usd_per_gb: price of each link.
    """

    def __init__(
        self, group: MetricGroup, decisions: Decisions, usd_per_gb: Mapping[Link, float]
    ) -> None:
        self._decisions = decisions
        self._plans = group.counter("plans")
        self._failures = group.counter("plansFailed")
        self._confirmed = group.counter("plansConfirmed")
        self._counted = (0, 0)
        self._confirmed_ms: int | None = None
        self._egress = Egress(usd_per_gb)
        self._group = group
        self._micro_usd: dict[Link, Counter] = {}
        self._counted_at_ms: int | None = None

    def count(self, now_ms: int) -> None:
        """Counts what is new.

        Args:
            now_ms: wall clock.
        """
        plans, failures = self._decisions.plans, self._decisions.failures
        if (plans, failures) != self._counted:
            self._plans.inc(plans - self._counted[0])
            self._failures.inc(failures - self._counted[1])
            self._counted = plans, failures
        last_ms = self._counted_at_ms
        # A clock that was set back must not hold counting up.
        if last_ms is None or not 0 <= now_ms - last_ms < _INTERVAL_MS:
            self._counted_at_ms = now_ms
            self._count_each_second()

    def _count_each_second(self) -> None:
        if self._decisions.confirmed_ms != self._confirmed_ms:
            self._confirmed_ms = self._decisions.confirmed_ms
            self._confirmed.inc()
        for link, micro_usd in self._egress.added(self._decisions.links()).items():
            if link not in self._micro_usd:
                sender, to = link
                group = self._group.add_group("from", sender).add_group("link", to)
                self._micro_usd[link] = group.counter("egressMicroUsd")
            if micro_usd:
                self._micro_usd[link].inc(micro_usd)
