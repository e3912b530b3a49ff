"""What links can carry now, from what their senders report of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from freshet.multicast.settings import Link, Thresholds

BUSY_SHARE = 0.7
"""A link that delivers this share of its fastest recent delivery all the time is at its limit."""

COMPRESSED_BYTES_MIN = 1 << 20
"""Changes that were sent before it is known how small they become."""

_LOAD_SPAN_MS = 5_000
_LOAD_SPAN_MS_MIN = 3_000


@dataclass(frozen=True)
class LinkSample:
    """All subtasks' connections of one link together."""

    chunks: int
    wire_bytes: int
    is_behind: bool
    """Whether something waits for what is under way; what waits for company says nothing."""

    in_flight_bytes: int
    bytes_per_s: float
    round_trip_ms: float
    """0 if unknown."""

    silent_ms: int
    """While nothing at all comes back; 0 as soon as one subtask has its answers."""


class LinkReports:
    """The latest reports of links, by sender and subtask."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def report(self, report: Mapping[str, Any]) -> None:
        """Takes in what a subtask of a region, or of home, says of its links."""
        region, parallelism = report["region"], report["parallelism"]
        self._latest[region, report["subtask"]] = report["links"]
        for key in [key for key in self._latest if key[0] == region and key[1] >= parallelism]:
            del self._latest[key]

    def compressed_share(self, region: str) -> float:
        """Bytes on the wire for a byte of changes, on a region's links; 1 before it is known."""
        links = [
            link for (sender, _), sent in self._latest.items() if sender == region for link in sent
        ]
        raw_bytes = sum(link["raw_bytes"] for link in links)
        if raw_bytes < COMPRESSED_BYTES_MIN:
            return 1.0
        return float(sum(link["wire_bytes"] for link in links) / raw_bytes)

    def samples(self) -> dict[Link, LinkSample]:
        """Each link as it was reported last."""
        by_link: dict[Link, list[dict[str, Any]]] = {}
        for (region, _), links in self._latest.items():
            for link in links:
                by_link.setdefault((region, link["to"]), []).append(link)
        return {link: _together(reports) for link, reports in by_link.items()}


def _together(links: Iterable[Mapping[str, Any]]) -> LinkSample:
    links = list(links)
    waiting = [link["silent_ms"] for link in links if link["in_flight_bytes"] > 0]
    trips = [link["round_trip_ms"] for link in links if link["round_trip_ms"] > 0]
    return LinkSample(
        chunks=sum(link["chunks"] for link in links),
        wire_bytes=sum(link["wire_bytes"] for link in links),
        is_behind=any(link["behind"] for link in links),
        in_flight_bytes=sum(link["in_flight_bytes"] for link in links),
        bytes_per_s=sum(link["bytes_per_s"] for link in links),
        round_trip_ms=min(trips, default=0.0),
        silent_ms=min(waiting, default=0),
    )


class LinkWatch:
    """Whether one link is down or slower than its profile.

    A link that nothing is sent along says nothing about itself. So one that went down is tried
    again after a while, and what was measured of a slow one is forgotten after a while.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._load: deque[tuple[int, int]] = deque()
        self._slow_bps = math.inf
        self._slow_until_ms = 0
        self._down_until_ms: int | None = None
        self._hold_ms = thresholds.hold_ms
        self._up_since_ms = 0
        self._chunks = 0

    def update(self, sample: LinkSample | None, ends_heard: bool, now_ms: int) -> None:
        """Takes a sample in.

        Args:
            sample: the latest; None if there is none.
            ends_heard: whether both regions answer; if not, silence says nothing of the link.
            now_ms: attended time.
        """
        is_silent = sample is not None and sample.silent_ms > self._thresholds.silent_link_ms
        if self._down_until_ms is None:
            if sample is not None and is_silent and ends_heard:
                self._go_down(sample, now_ms)
        elif self._works_again(sample) or (now_ms >= self._down_until_ms and not is_silent):
            self._down_until_ms = None
            self._up_since_ms = now_ms
        if sample is not None:
            self._measure(sample, now_ms)

    def usable_bps(self, profile_bps: float, now_ms: int) -> float:
        """What a plan may count on, bit/s; 0 while the link is down."""
        if self._down_until_ms is not None:
            return 0.0
        return min(profile_bps, self._slow_bps) if now_ms < self._slow_until_ms else profile_bps

    def _go_down(self, sample: LinkSample, now_ms: int) -> None:
        if now_ms - self._up_since_ms > self._thresholds.hold_ms_max:
            self._hold_ms = self._thresholds.hold_ms
        self._down_until_ms = now_ms + self._hold_ms
        self._hold_ms = min(2 * self._hold_ms, self._thresholds.hold_ms_max)
        self._chunks = sample.chunks

    def _works_again(self, sample: LinkSample | None) -> bool:
        return (
            sample is not None
            and sample.chunks > self._chunks
            and sample.silent_ms <= self._thresholds.silent_link_ms
        )

    def _measure(self, sample: LinkSample, now_ms: int) -> None:
        """What a link delivers says what it can only while there is always more to deliver."""
        load = self._load
        is_idle = not (sample.is_behind and sample.in_flight_bytes)
        if is_idle or (load and load[-1][1] > sample.wire_bytes):
            load.clear()
        if is_idle:
            return
        load.append((now_ms, sample.wire_bytes))
        while now_ms - load[0][0] > _LOAD_SPAN_MS:
            load.popleft()
        span_ms = now_ms - load[0][0]
        if span_ms < _LOAD_SPAN_MS_MIN:
            return
        delivered = (sample.wire_bytes - load[0][1]) * 1_000 / span_ms
        if delivered > 0 and delivered >= BUSY_SHARE * sample.bytes_per_s:
            self._slow_bps = 8 * max(delivered, sample.bytes_per_s)
            self._slow_until_ms = now_ms + self._thresholds.slow_hold_ms
