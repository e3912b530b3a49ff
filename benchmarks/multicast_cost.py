"""What it costs to have a table in three other regions, how fresh it is there, and how it heals.

The same changes go by our multicast with several SLOs, by our own senders without any relay, and
by MirrorMaker 2. Bytes are those that the links' proxies counted, prices those that ship.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks import mirror_maker
from benchmarks.arrivals import Arrivals, in_stores, in_topics
from benchmarks.change_stream import Changes, Sender, Sent
from benchmarks.context import Context
from benchmarks.equality import wait_until_equal
from benchmarks.exhibits import Exhibit
from benchmarks.figures import percentile
from benchmarks.multicast_cost_picture import picture
from benchmarks.wide_area import (
    DESTINATIONS,
    HOME,
    Traffic,
    WideArea,
    cloud,
    multicast,
    traffic,
    usd_per_gb,
    wide_area,
)
from freshet.topics import Topic, create_missing_topics
from freshet.wan.faults import fired
from freshet.wan.scenario import Fault, Kind

PER_S = 2_000
"""Changes a second."""

_PARTITIONS = 4
_READY_DEADLINE_S = 300.0
_ARRIVED_DEADLINE_S = 180.0
_AS_SHIPPED_DEADLINE_S = 400.0
"""MirrorMaker as shipped gives five minutes to a lost worker."""

_CAUGHT_UP_DEADLINE_S = 180.0
_BEFORE_CUT_S = 3.0
_CUT_REGION = DESTINATIONS[0]


@dataclass(frozen=True)
class Variant:
    """A way to the regions."""

    name: str
    slo_s: float | None = None
    """Of the table; None for MirrorMaker, which has none."""

    direct: bool = False
    """Whether nothing is passed on."""

    compression: str = ""
    """Of MirrorMaker's producers."""

    tuned: bool = False
    cut: bool = False
    """Whether a region is cut off, too."""

    @property
    def is_tuned(self) -> bool:
        """Whether it should keep up."""
        return self.slo_s is not None or self.tuned


@dataclass(frozen=True)
class Length:
    """How long everything takes, seconds."""

    first_warm_s: float
    """Before the first variant, when all code is yet to be compiled."""

    warm_s: float
    stream_s: float
    cut_s: float


@dataclass(frozen=True)
class Measured:
    """What one variant took."""

    variant: Variant
    changes: int
    event_bytes: int
    traffic: Traffic
    usd: float
    lags_s: list[float] = field(repr=False)
    """Of the probes that had arrived by the end."""

    lost: float
    """Share of the probes that had not, within minutes: it cannot keep up."""

    edges: set[tuple[str, str]] | None = None
    """Of the plan; None for MirrorMaker."""

    caught_up_s: float | None = None
    """From the cut's end to having everything from before it; infinite if it never came, None if
    nothing was cut."""

    @property
    def usd_per_million(self) -> float:
        """$ for a million changes in all regions."""
        return self.usd / self.changes * 1e6

    @property
    def late(self) -> float | None:
        """Share of the probes that came after the SLO."""
        if self.variant.slo_s is None:
            return None
        return sum(lag > self.variant.slo_s for lag in self.lags_s) / len(self.lags_s)


_Way = tuple[Arrivals, Callable[[], set[tuple[str, str]] | None]]
"""What arrives, and the plan's links."""

_SLOS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
_ALL = (
    *(Variant(f"multicast, SLO {slo:g} s", slo, cut=slo == 1) for slo in _SLOS_S),
    Variant("direct, SLO 1 s", 1.0, direct=True, cut=True),
    Variant("direct, SLO 5 s", 5.0, direct=True),
    Variant("MirrorMaker, lz4, tuned", compression="lz4", tuned=True, cut=True),
    Variant("MirrorMaker, zstd, tuned", compression="zstd", tuned=True, cut=True),
    Variant("MirrorMaker, lz4, as shipped", compression="lz4"),
)
_QUICK = tuple(
    variant for variant in _ALL if variant.slo_s == 1 or variant.name == "MirrorMaker, lz4, tuned"
)


def run(context: Context) -> list[Exhibit]:
    """One variant after another, on the same brokers."""
    length = Length(5, 5, 15, 20) if context.quick else Length(90, 10, 60, 60)
    mirror_maker.jars(context)  # fetched before anything runs
    found: list[Measured] = []
    load = os.getloadavg()[0]
    with wide_area(context, cloud()) as area:
        for number, variant in enumerate(_QUICK if context.quick else _ALL):
            context.say(variant.name)
            found.append(_measure(context, area, variant, number, length))
            context.say(_in_short(found[-1]))
    return [_exhibit(found, length, (load, os.getloadavg()[0]))]


def _measure(
    context: Context, area: WideArea, variant: Variant, number: int, length: Length
) -> Measured:
    table = f"fleet_load_{number}"
    warm_s = length.warm_s if number else length.first_warm_s
    topic = f"changes.{table}"
    home = area.regions[HOME].bootstrap
    sender = Sender(home, topic, table, Changes())
    way = _mirrored if variant.slo_s is None else _multicast
    with way(context, area, variant, table, sender.sent) as (arrivals, edges):
        sender.send_probe()
        arrivals.wait(sender.sent.probes, _READY_DEADLINE_S)
        with sender.at_rate(PER_S):
            time.sleep(warm_s)
        _wait(variant, arrivals, sender.sent)

        sent = sender.sent
        earlier, before = set(sent.probes), traffic(area.regions)
        changes, event_bytes = -sent.changes, -sent.event_bytes
        with sender.at_rate(PER_S):
            time.sleep(max(length.stream_s, 2 * (variant.slo_s or 0)))
        _wait(variant, arrivals, sent)
        if variant.slo_s is not None:
            wait_until_equal(area.stores(), table, sent.versions, _ARRIVED_DEADLINE_S)
        went = traffic(area.regions).since(before)
        probes = {key: at for key, at in sent.probes.items() if key not in earlier}
        lags_s = arrivals.lags_s(probes)
        return Measured(
            variant,
            changes + sent.changes,
            event_bytes + sent.event_bytes,
            went,
            went.usd(usd_per_gb()),
            lags_s,
            1 - len(lags_s) / (len(probes) * len(DESTINATIONS)),
            edges(),
            _cut(area, sender, arrivals, length) if variant.cut else None,
        )


def _wait(variant: Variant, arrivals: Arrivals, sent: Sent) -> None:
    """Until everything has arrived, or for long enough where that need not happen."""
    if variant.is_tuned:
        arrivals.wait(sent.probes, _ARRIVED_DEADLINE_S)
    else:
        arrivals.arrive(sent.probes, _AS_SHIPPED_DEADLINE_S)


@contextlib.contextmanager
def _multicast(
    context: Context, area: WideArea, variant: Variant, table: str, sent: Sent
) -> Iterator[_Way]:
    """Our jobs, and what reaches the stores."""
    assert variant.slo_s is not None
    left_out = area.waypoints if variant.direct else ()
    with (
        multicast(area, table, int(variant.slo_s * 1_000), left_out=left_out) as heard,
        in_stores(area.stores(), table, sent) as arrivals,
    ):
        yield arrivals, lambda: heard.edges(HOME)


@contextlib.contextmanager
def _mirrored(
    context: Context, area: WideArea, variant: Variant, table: str, sent: Sent
) -> Iterator[_Way]:
    """MirrorMaker, and what reaches its copies."""
    topic = f"changes.{table}"
    create_missing_topics(area.config(HOME), [Topic(topic, _PARTITIONS)])
    bootstraps = {region: area.regions[region].bootstrap for region in DESTINATIONS}
    running = mirror_maker.mirror_maker(
        context.folder(f"mirror-maker-{table}"),
        area.regions,
        HOME,
        DESTINATIONS,
        topic,
        compression=variant.compression,
        tuned=variant.tuned,
        jars=mirror_maker.jars(context),
    )
    with running, in_topics(bootstraps, mirror_maker.copied_topic(topic)) as arrivals:
        yield arrivals, lambda: None


def _cut(area: WideArea, sender: Sender, arrivals: Arrivals, length: Length) -> float:
    """Seconds from the end of a cut to having in the region what was sent before that."""
    with sender.at_rate(PER_S):
        time.sleep(_BEFORE_CUT_S)
        with fired(area.regions, Fault(Kind.CUT, region=_CUT_REGION)) as cut:
            time.sleep(length.cut_s)
        healed_s = time.time()
        missed = dict(sender.sent.probes)
        has_arrived = arrivals.arrive(missed, _CAUGHT_UP_DEADLINE_S, _CUT_REGION)
    if not cut.connections_reset:
        raise RuntimeError("the cut has reset no connection")
    if not has_arrived:
        return math.inf
    return max(arrivals.at_s[_CUT_REGION][key] for key in missed) - healed_s


def _in_short(measured: Measured) -> str:
    return ", ".join(_row(measured)[1:])


_COLUMNS = (
    "way",
    "$ for 10⁶ changes",
    "bytes on links for a change",
    "freshness p50",
    "p99",
    "later than SLO",
    "caught up after the cut",
    "links",
)


def _row(measured: Measured) -> tuple[str, ...]:
    late, caught_up = measured.late, measured.caught_up_s
    return (
        measured.variant.name,
        f"{measured.usd_per_million:.4f}",
        f"{measured.traffic.total_bytes / measured.changes:.0f}",
        f"{percentile(measured.lags_s, 50):.2f} s",
        f"{percentile(measured.lags_s, 99):.2f} s"
        + (f" of those that arrived; {measured.lost:.0%} had not" if measured.lost else ""),
        "" if late is None else f"{late:.1%}",
        _waited(caught_up),
        "" if measured.edges is None else _links(measured.edges),
    )


def _waited(caught_up_s: float | None) -> str:
    if caught_up_s is None:
        return ""
    if math.isinf(caught_up_s):
        return f"not within {_CAUGHT_UP_DEADLINE_S:g} s"
    return f"{caught_up_s:.1f} s"


def _links(edges: set[tuple[str, str]]) -> str:
    names = sorted((u.partition(":")[2], v.partition(":")[2]) for u, v in edges)
    return ", ".join(f"{u} → {v}" for u, v in names)


def _exhibit(found: list[Measured], length: Length, load: tuple[float, float]) -> Exhibit:
    first = found[0]
    return Exhibit(
        "multicast-cost",
        "A table in three other regions: cost, freshness, and catching up",
        _COLUMNS,
        tuple(_row(measured) for measured in found),
        f"{PER_S:,} changes/s of {first.event_bytes / first.changes:.0f} bytes for"
        f" {length.stream_s:g} s (at least two SLOs), Zipf over 20,000 keys, from {HOME} to"
        f" {', '.join(DESTINATIONS)}; 100 Mbit/s a link. Dollars are for all bytes of all links in"
        f" both directions, reports and acknowledgements included. Freshness is of probes, keys"
        f" that change once: until they are in Redis, or for MirrorMaker readable in the topic's"
        f" copy. The cut is of {_CUT_REGION}, for {length.cut_s:g} s. Load of the machine"
        f" {load[0]:.1f} before and {load[1]:.1f} after, {os.cpu_count()} cores.",
        picture(found),
    )
