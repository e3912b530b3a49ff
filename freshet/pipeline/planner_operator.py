"""The operator that plans: reports in, plans out, both as bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyflink.datastream.functions import FlatMapFunction, RuntimeContext

from freshet.multicast.loop import PlanningLoop
from freshet.multicast.settings import PlannerSettings
from freshet.pipeline.planner_metrics import PlannerMetrics


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
        settings, now_ms = PlannerSettings.from_json(self._settings_json), _now_ms()
        self._loop = PlanningLoop(settings, now_ms)
        group = runtime_context.get_metrics_group().add_group("freshet")
        self._metrics = PlannerMetrics(group, self._loop.decisions, settings.network.prices())

    def flat_map(self, value: bytes) -> Iterator[bytes]:
        """Takes one record of the topic ``progress``."""
        assert self._loop is not None, "open() comes before flat_map()"
        messages = self._loop.step(bytes(value), _now_ms())
        self._metrics.count(_now_ms())
        yield from messages

    def close(self) -> None:
        """Ends the solver's process."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
