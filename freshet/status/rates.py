"""How fast counters rise, over the last few seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

WINDOW_S = 10.0
"""Rates are means over at least this, once there is as much; shorter ones jump about."""


class Rates:
    """Rates of counters by name; not safe to share between threads."""

    def __init__(self) -> None:
        self._samples: dict[Hashable, deque[tuple[float, float]]] = {}

    def rate(self, name: Hashable, value: float | None, time_s: float) -> float | None:
        """Takes a counter's value in and tells how fast it rises, a second.

        Args:
            name: of the counter.
            value: None if it is not known now.
            time_s: of a clock that never goes back.

        Returns:
            None until there are two values, and after the counter began anew.
        """
        samples = self._samples.setdefault(name, deque())
        if value is None or (samples and value < samples[-1][1]):
            samples.clear()
        if value is None:
            return None
        if not samples or time_s > samples[-1][0]:
            samples.append((time_s, value))
        while len(samples) > 2 and time_s - samples[1][0] >= WINDOW_S:
            samples.popleft()
        (first_s, first), (last_s, last) = samples[0], samples[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None
