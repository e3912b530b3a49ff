"""Which regions answer, from when their reports arrived."""

from __future__ import annotations

from collections.abc import Iterable

from freshet.multicast.settings import Thresholds


class Attention:
    """Time in which reports could have been heard, ms.

    When the broker or this process pauses, nothing arrives from any region, and none is gone for
    that: a pause counts as one second.

    Args:
        now_ms: of a clock that need not be steady.
    """

    MOST_MS = 1_000

    def __init__(self, now_ms: int) -> None:
        self._last_ms = now_ms
        self.ms = 0

    def advance(self, now_ms: int) -> int:
        """Something arrived; returns the time."""
        self.ms += max(0, min(self.MOST_MS, now_ms - self._last_ms))
        self._last_ms = now_ms
        return self.ms


class Liveness:
    """The regions that are gone.

    Args:
        regions: whose reports are awaited.
        thresholds: of silence.
        now_ms: attended time, as of all methods.
    """

    def __init__(self, regions: Iterable[str], thresholds: Thresholds, now_ms: int = 0) -> None:
        self._thresholds = thresholds
        self._regions = tuple(regions)
        self._since_ms = now_ms
        self._heard_ms: dict[str, int] = {}
        self._back_ms: dict[str, int] = {}
        self._gone: set[str] = set()

    def heard(self, region: str, now_ms: int) -> None:
        """A region has reported; one whose reports are not awaited does not matter."""
        if region not in self._regions:
            return
        self._settle(region, now_ms)
        self._heard_ms[region] = now_ms
        if region in self._gone:
            self._back_ms.setdefault(region, now_ms)

    def gone(self, now_ms: int) -> frozenset[str]:
        """Regions that do not answer."""
        for region in self._regions:
            self._settle(region, now_ms)
        return frozenset(self._gone)

    def _settle(self, region: str, now_ms: int) -> None:
        heard_ms = self._heard_ms.get(region)
        if heard_ms is None:
            silent = now_ms - self._since_ms >= self._thresholds.unheard_region_ms
        else:
            silent = now_ms - heard_ms >= self._thresholds.silent_region_ms
        if silent:
            self._gone.add(region)
            self._back_ms.pop(region, None)
        elif region in self._back_ms and (
            now_ms - self._back_ms[region] >= self._thresholds.back_region_ms
        ):
            self._gone.discard(region)
            del self._back_ms[region]
