"""How much of a table there is to send, from what the multicast job has read."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

_SPAN_MS_MIN = 3_000


class Volume:
    """Bytes a second of one table's changes, over a window.

    Args:
        window_ms: that the mean is over.
    """

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._read: dict[int, deque[tuple[float, int]]] = {}

    def report(self, report: Mapping[str, Any]) -> None:
        """Takes in what a subtask of the multicast job has read."""
        at_ms, total = report["reported_at_micros"] / 1_000, report["change_bytes"]
        read = self._read.setdefault(report["subtask"], deque())
        if read and (total < read[-1][1] or at_ms <= read[-1][0]):
            read.clear()  # it was restarted
        read.append((at_ms, total))
        while at_ms - read[0][0] > self._window_ms:
            read.popleft()
        for subtask in [key for key in self._read if key >= report["parallelism"]]:
            del self._read[subtask]

    def bytes_per_s(self) -> float | None:
        """All subtasks together; None if that is not known yet."""
        rates = [_rate(read) for read in self._read.values()]
        known = [rate for rate in rates if rate is not None]
        return sum(known) if known and len(known) == len(rates) else None


def _rate(read: deque[tuple[float, int]]) -> float | None:
    (first_ms, first), (last_ms, last) = read[0], read[-1]
    if last_ms - first_ms < _SPAN_MS_MIN:
        return None
    return (last - first) * 1_000 / (last_ms - first_ms)
