"""What the multicast job and the regions' jobs report, as the demo shows it: freshness and cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freshet.demo.regions import DESTINATIONS, HOME, ON_THE_WAY, StoreState
from freshet.multicast.links import LinkReports
from freshet.multicast.settings import Link
from freshet.multicast.standing import BYTES_PER_GB
from freshet.observer import percentiles_ms

_RECENT_REPORTS = 20
"""Those behind the live table's freshness: of the last ten seconds at least."""


@dataclass(frozen=True)
class Lags:
    """Times from computation to readable in a region, of the changes of one report."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


def upper_samples(lags: Sequence[Lags]) -> list[float]:
    """As many times as there were changes, none below the true one, milliseconds.

    A report has three of its times: the median, the 99th percentile and the largest. Each other
    counts as the next of them above it, so percentiles of the samples are not too small.
    """
    samples: list[float] = []
    for lag in lags:
        # The ranks of the reporter's quantiles.
        to_p50, to_p99 = (int(q * (lag.count - 1)) + 1 for q in (0.5, 0.99))
        samples += [lag.p50_ms] * to_p50 + [lag.p99_ms] * (to_p99 - to_p50)
        samples += [lag.max_ms] * (lag.count - to_p99)
    return samples


class Dissemination:
    """The reports on one table, and what came of it; taken in in another thread than read.

    Args:
        table: that is sent.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        self.stores: dict[str, StoreState] = {}
        """Each destination's store when everything had settled; empty before."""

        self.plan: dict[str, Any] = {}
        """The plan in force as the multicast job reports it; empty before the first."""

        self._lags: dict[str, list[Lags]] = {region: [] for region in DESTINATIONS}
        self._links = LinkReports()
        self._latest: dict[tuple[str, str, int], Mapping[str, Any]] = {}

    def take(self, report: Mapping[str, Any]) -> None:
        """Takes a ``RegionReport`` in; those on other tables are passed over."""
        if report["table"] != self.table:
            return
        self._latest[report["reporter"], report["region"], report["subtask"]] = report
        self._links.report(report)
        if report["reporter"] == "MULTICAST" and report["plan"]:
            self.plan = json.loads(report["plan"])
        delay = report["delay"]
        if delay is not None and report["region"] in self._lags:
            self._lags[report["region"]].append(Lags(*(delay[name] for name in _LAG_FIELDS)))

    def reported_after(self, time_micros: int) -> Callable[[], bool]:
        """Whether the multicast job and all regions have reported at a later time."""

        def have_reported() -> bool:
            times: dict[tuple[str, str], int] = {}
            for (reporter, region, _), report in self._latest.items():
                made, other = report["reported_at_micros"], times.get((reporter, region), 0)
                times[reporter, region] = max(made, other)
            expected = {("REGION", r) for r in (ON_THE_WAY, *DESTINATIONS)} | {("MULTICAST", HOME)}
            return all(times.get(who, 0) > time_micros for who in expected)

        return have_reported

    def changes(self, region: str) -> int:
        """Changes that a region's store has taken, live and by catch-up."""
        return sum(
            report["applied"] + report["caught_up"]
            for (reporter, name, _), report in list(self._latest.items())
            if reporter == "REGION" and name == region
        )

    def recent_freshness_ms(self, region: str) -> dict[str, float | None]:
        """Percentiles of the last few reports."""
        return percentiles_ms(upper_samples(self._lags[region][-_RECENT_REPORTS:]))

    def sender_to(self, region: str) -> str | None:
        """From where a region gets its changes now; of several trees, in the largest."""
        stripes = sorted(self.plan.get("stripes", ()), key=lambda s: s["fraction"], reverse=True)
        senders = [u for stripe in stripes for u, v in stripe["edges"] if v == region]
        return senders[0] if senders else None

    def wire_bytes(self) -> dict[Link, int]:
        """Bytes of the chunks that each link has delivered."""
        samples = self._links.samples()
        return {way: link.wire_bytes for way, link in samples.items() if link.wire_bytes}

    def to_report(self, price_usd_per_gb: Callable[[str, str], float]) -> dict[str, Any]:
        """The demo report's parts on regions.

        Args:
            price_usd_per_gb: of sending from one region to another.
        """
        sent = self.wire_bytes()
        received: dict[Link, int] = {}
        for (_, target), count in sent.items():
            if target in DESTINATIONS:
                way = (HOME, target)
                received[way] = received.get(way, 0) + count
        links, direct = (
            [_charged(way, count, price_usd_per_gb(*way)) for way, count in sorted(ways.items())]
            for ways in (sent, received)
        )
        return {
            "home": HOME,
            "regions": {region: self._region(region) for region in DESTINATIONS},
            "egress_usd": {
                "ours": sum(link["usd"] for link in links) if links else None,
                "direct": sum(link["usd"] for link in direct) if direct else None,
            },
            "egress": {"links": links, "direct": direct},
            "plan": self.plan,
        }

    def _region(self, region: str) -> dict[str, Any]:
        samples = upper_samples(self._lags[region])
        state = self.stores.get(region)
        return {
            "keys": None if state is None else state.keys,
            "changes": self.changes(region),
            "freshness_ms": percentiles_ms(samples) | {"samples": len(samples)},
            "equal_to_home": None if state is None else state.equal_to_home,
        }


_LAG_FIELDS = ("count", "p50_ms", "p99_ms", "max_ms")


def _charged(way: Link, count: int, usd_per_gb: float) -> dict[str, Any]:
    return {
        "source": way[0],
        "target": way[1],
        "wire_bytes": count,
        "usd_per_gb": usd_per_gb,
        "usd": count / BYTES_PER_GB * usd_per_gb,
    }
