"""The operator that plans: reports in, plans out, both as bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyflink.datastream.functions import FlatMapFunction, RuntimeContext

from freshet.multicast.loop import PlanningLoop
from freshet.multicast.settings import PlannerSettings


class PlannerOperator(FlatMapFunction):
    """Flink's shell around ``PlanningLoop``, for one subtask.

    It has no state: the plan in force comes back to it in the multicast job's own reports.

    Args:
        settings_json: what ``PlannerSettings.to_json`` gave.
    """

    def __init__(self, settings_json: str) -> None:
        self._settings_json = settings_json
        self._loop: PlanningLoop | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Starts the solver's process."""
        group = runtime_context.get_metrics_group().add_group("freshet")
        self._plans = group.counter("plans")
        self._failures = group.counter("plansFailed")
        self._counted = (0, 0)
        self._loop = PlanningLoop(PlannerSettings.from_json(self._settings_json), _now_ms())

    def flat_map(self, value: bytes) -> Iterator[bytes]:
        """Takes one record of the topic ``progress``."""
        assert self._loop is not None, "open() comes before flat_map()"
        messages = self._loop.step(bytes(value), _now_ms())
        self._count()
        yield from messages

    def close(self) -> None:
        """Ends the solver's process."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _count(self) -> None:
        assert self._loop is not None, "open() comes before flat_map()"
        counts = self._loop.decisions.plans, self._loop.decisions.failures
        if counts != self._counted:
            self._plans.inc(counts[0] - self._counted[0])
            self._failures.inc(counts[1] - self._counted[1])
            self._counted = counts


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
