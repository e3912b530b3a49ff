"""What Flink tells of the jobs: their states, and the metrics of the tables' operators."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from freshet.stack.flink_rest import ENDED_STATES, FlinkRest, JobStatus

NAMES_AGE_S_MAX = 30.0
"""Which metrics an operator has is asked again after this: there are hundreds, and few change."""

NO_NAMES_AGE_S_MAX = 5.0
"""The same where there was none of ours: the job may have started just then."""

_OF_TABLE = re.compile(r"\.freshet\.table\.([^.]+)\.(\w+)$")

_SUMMED = ("keys", "pendingKeys", "estimatedRegret", "updatesFailed")
_WORST = ("stalenessAtWriteMs_median", "stalenessAtWriteMs_p99")

TableMetrics = dict[str, float]
"""Values by the metric's name: sums over subtasks, or the worst of them."""


@dataclass(frozen=True)
class FlinkReading:
    """What one reading told."""

    jobs: tuple[JobStatus, ...] = ()
    """Newest first."""

    metrics: Mapping[str, TableMetrics] | None = None
    """By the name of the table as it is in metrics, see :func:`metric_name`."""


class FlinkReader:
    """Reads one cluster again and again; what cannot change is asked once.

    Not safe to share between threads.
    """

    def __init__(self, rest: FlinkRest) -> None:
        self._rest = rest
        self._ended: dict[str, JobStatus] = {}
        self._names: dict[tuple[str, str], tuple[float, list[str]]] = {}

    def read(self) -> FlinkReading:
        """Asks for jobs and metrics.

        Raises:
            StackError: no answer, or an error.
        """
        listed = self._rest.get("/jobs/overview")["jobs"]
        listed.sort(key=lambda job: job["start-time"], reverse=True)
        ids = {job["jid"] for job in listed}
        self._ended = {job: status for job, status in self._ended.items() if job in ids}
        self._names = {place: names for place, names in self._names.items() if place[0] in ids}
        jobs, metrics = [], dict[str, TableMetrics]()
        for job in listed:
            status = self._ended.get(job["jid"])
            if status is None:
                details = self._rest.get(f"/jobs/{job['jid']}")
                status = self._rest.status_of(job["jid"], details)
                if status.state in ENDED_STATES:
                    self._ended[status.id] = status
                else:
                    self._add_metrics(metrics, status.id, details["vertices"])
            jobs.append(status)
        return FlinkReading(tuple(jobs), metrics)

    def _add_metrics(
        self, metrics: dict[str, TableMetrics], job: str, vertices: Iterable[Mapping[str, Any]]
    ) -> None:
        for vertex in vertices:
            path = f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
            names = self._metric_names((job, vertex["id"]), path)
            if not names:
                continue
            asked = quote(",".join(names), safe=",")
            for each in self._rest.get(f"{path}?get={asked}&agg=sum,max"):
                match = _OF_TABLE.search(each["id"])
                if match is not None:
                    _add(metrics.setdefault(match[1], {}), match[2], each)

    def _metric_names(self, place: tuple[str, str], path: str) -> list[str]:
        """Full names of the metrics that are shown; few vertices have any."""
        now_s = time.monotonic()
        if place in self._names:
            asked_s, names = self._names[place]
            if now_s - asked_s < (NAMES_AGE_S_MAX if names else NO_NAMES_AGE_S_MAX):
                return names
        found = [each["id"] for each in self._rest.get(path)]
        names = [
            name
            for name in found
            if (match := _OF_TABLE.search(name)) and match[2] in (*_SUMMED, *_WORST)
        ]
        self._names[place] = (now_s, names)
        return names


def metric_name(table: str) -> str:
    """A table's name as Flink has it in metrics: an underscore stands for a dot."""
    return table.replace(".", "_")


def _add(metrics: TableMetrics, name: str, value: Mapping[str, float | str]) -> None:
    number = float(value["sum" if name in _SUMMED else "max"])
    if math.isnan(number):
        # Of a histogram without a sample; JSON has it as text.
        return
    if name in _SUMMED:
        metrics[name] = metrics.get(name, 0.0) + number
    else:
        metrics[name] = max(metrics.get(name, number), number)
