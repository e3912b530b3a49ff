"""What a client has read and sent, as counters that Prometheus scrapes from the application."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

READ_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Upper bounds of the buckets of a read's time, seconds."""

_HELP = {
    "freshet_client_keys_total": "counter keys that were read",
    "freshet_client_keys_missing_total": "counter keys that were read and have no feature",
    "freshet_client_read_failures_total": "counter reads that the store did not answer",
    "freshet_client_read_seconds": "histogram time of a read, of one or many keys, seconds",
    "freshet_client_feedback_total": "counter feedback that Kafka has taken",
    "freshet_client_feedback_lost_total": "counter feedback that Kafka has not taken",
}


@dataclass
class _Reads:
    """Of one table."""

    keys: int = 0
    missing: int = 0
    failures: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(READ_SECONDS) + 1))


class ReadCounters:
    """Counts reads. Thread-safe.

    Args:
        region: whose online store is read.
    """

    def __init__(self, region: str) -> None:
        self._region = region
        self._lock = threading.Lock()
        self._tables: dict[str, _Reads] = {}

    def answered(self, table: str, keys: int, missing: int, seconds: float) -> None:
        """The store has answered a read.

        Args:
            table: that was read.
            keys: how many were asked for.
            missing: how many of them have no feature.
            seconds: that it took.
        """
        bucket = bisect_left(READ_SECONDS, seconds)
        with self._lock:
            reads = self._of(table)
            reads.keys += keys
            reads.missing += missing
            reads.seconds += seconds
            reads.buckets[bucket] += 1

    def failed(self, table: str) -> None:
        """The store has not answered a read."""
        with self._lock:
            self._of(table).failures += 1

    def _of(self, table: str) -> _Reads:
        return self._tables.setdefault(table, _Reads())

    def to_prometheus(self, feedback: Mapping[str, int]) -> str:
        """All counters in Prometheus' text format.

        Args:
            feedback: how often feedback was ``delivered`` and ``lost``.
        """
        samples: dict[str, list[str]] = {name: [] for name in _HELP}

        def add(name: str, suffix: str, labels: Mapping[str, str], value: float) -> None:
            text = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            samples[name].append(f"{name}{suffix}{{{text}}} {value!r}")

        with self._lock:
            for table, reads in self._tables.items():
                labels = {"table": table, "region": self._region}
                add("freshet_client_keys_total", "", labels, reads.keys)
                add("freshet_client_keys_missing_total", "", labels, reads.missing)
                add("freshet_client_read_failures_total", "", labels, reads.failures)
                so_far = 0
                for bound, count in zip((*READ_SECONDS, "+Inf"), reads.buckets, strict=True):
                    so_far += count
                    upto = {**labels, "le": str(bound)}
                    add("freshet_client_read_seconds", "_bucket", upto, so_far)
                add("freshet_client_read_seconds", "_sum", labels, reads.seconds)
                add("freshet_client_read_seconds", "_count", labels, so_far)
        labels = {"region": self._region}
        add("freshet_client_feedback_total", "", labels, feedback["delivered"])
        add("freshet_client_feedback_lost_total", "", labels, feedback["lost"])
        lines = []
        for name, text in _HELP.items():
            kind, _, meaning = text.partition(" ")
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *samples[name]]
        return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
