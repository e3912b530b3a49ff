"""Whether a region behind a slow link makes features older in the others.

The same changes go to the fast regions alone and to all of them, in turns. All links to and from
the slow region have a tenth of the others' bandwidth, which is less than the changes take.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.arrivals import in_stores
from benchmarks.change_stream import KEYS, Changes, Sender
from benchmarks.context import Context
from benchmarks.equality import wait_until_equal
from benchmarks.exhibits import Exhibit
from benchmarks.figures import percentile
from benchmarks.multicast_slow_region_picture import picture
from benchmarks.progress import Reports
from benchmarks.usage import BusyCores
from benchmarks.wide_area import (
    DESTINATIONS,
    HOME,
    WideArea,
    cloud,
    multicast,
    traffic,
    wide_area,
)

PER_S = 1_500
SLO_S = 2.0
BANDWIDTH_BPS = 6e6
"""Of a link; the changes take about a fifth of it."""

SLOW_BPS = BANDWIDTH_BPS / 10
SLOW = DESTINATIONS[2]
FAST = DESTINATIONS[:2]

AIM = 1.1
"""Of the p99 with the slow region to that without."""

_PROBES_PER_S = 50
_SLOW_PAUSE_S = 0.1
_READY_DEADLINE_S = 300.0
_ARRIVED_DEADLINE_S = 300.0
_OVERLOADED = 0.8
"""Share of its bandwidth that an overloaded link carries at the least."""


@dataclass(frozen=True)
class Slow:
    """What became of the slow region."""

    lags_s: list[float] = field(repr=False)
    used: float
    """Largest share of its bandwidth that a link to it has carried."""

    taken: float
    """Of the changes that were sent, those that its store took: the others were replaced on the
    way by newer ones of their key."""

    backlog_keys: int
    """The most that waited on a link to it."""


@dataclass(frozen=True)
class Turn:
    """One turn, with the slow region or without."""

    number: int
    lags_s: Mapping[str, list[float]] = field(repr=False)
    """By fast region."""

    bytes_per_change: float
    """On the links between home, the waypoint and the fast regions."""

    slow: Slow | None
    busy_cores: float
    """Of the machine, whatever with."""


def run(context: Context) -> list[Exhibit]:
    """Turns with and without it, on the same servers."""
    rounds, warm_s, stream_s = (1, 20.0, 20.0) if context.quick else (2, 25.0, 40.0)
    turns: list[Turn] = []
    with wide_area(context, cloud(BANDWIDTH_BPS, {SLOW: SLOW_BPS})) as area:
        for number in range(2 * rounds):
            turns.append(_turn(context, area, number, warm_s, stream_s))
            for row in _rows(turns[-1]):
                context.say(", ".join(row))
    return [_exhibit(turns, stream_s)]


def _turn(context: Context, area: WideArea, number: int, warm_s: float, stream_s: float) -> Turn:
    with_slow = number % 2 == 1
    context.say(f"turn {number + 1}, {'with' if with_slow else 'without'} the slow region")
    table = f"fleet_load_{number}"
    regions = DESTINATIONS if with_slow else FAST
    sender = Sender(area.regions[HOME].bootstrap, f"changes.{table}", table, Changes())
    slow_store = area.stores(SLOW) if with_slow else {}
    left_out = () if with_slow else (SLOW,)
    with (
        multicast(
            area, table, int(SLO_S * 1_000), destinations=regions, left_out=left_out
        ) as heard,
        in_stores(area.stores(*FAST), table, sender.sent) as arrivals,
        in_stores(slow_store, table, sender.sent, _SLOW_PAUSE_S) as slow_arrivals,
    ):
        sender.send_probe()
        arrivals.wait(sender.sent.probes, _READY_DEADLINE_S)
        slow_arrivals.wait(sender.sent.probes, _READY_DEADLINE_S)
        with sender.at_rate(PER_S, _PROBES_PER_S):
            time.sleep(warm_s)
            earlier, before = set(sender.sent.probes), traffic(area.regions)
            changes, busy = -sender.sent.changes, BusyCores()
            time.sleep(stream_s)
            busy_cores, changes = busy.average(), changes + sender.sent.changes
            went = traffic(area.regions).since(before).out_bytes
            sent = sender.sent.probes.items()
            probes = {key: at for key, at in list(sent) if key not in earlier}
        wait_until_equal(area.stores(*regions), table, sender.sent.versions, _ARRIVED_DEADLINE_S)
        arrivals.wait(probes, _ARRIVED_DEADLINE_S)
        slow_arrivals.wait(probes, _ARRIVED_DEADLINE_S)
        lags_s = slow_arrivals.lags_s(probes)
        return Turn(
            number,
            {region: arrivals.lags_s(probes, region) for region in FAST},
            sum(count for pair, count in went.items() if SLOW not in pair) / changes,
            _slow(heard, sender, went, lags_s, stream_s) if with_slow else None,
            busy_cores,
        )


def _slow(
    heard: Reports,
    sender: Sender,
    out_bytes: Mapping[tuple[str, str], int],
    lags_s: list[float],
    stream_s: float,
) -> Slow:
    used = max(count for (_, target), count in out_bytes.items() if target == SLOW)
    backlog = max(
        link["backlog_keys"]
        for report in heard.all
        for link in report["links"]
        if link["to"] == SLOW
    )
    newest = heard.newest(SLOW)
    assert newest is not None, "it has the newest of each key, so it has reported"
    taken = (newest["applied"] + newest["caught_up"]) / sender.sent.changes
    slow = Slow(lags_s, used * 8 / stream_s / SLOW_BPS, taken, backlog)
    if slow.used < _OVERLOADED or not slow.backlog_keys or slow.taken >= 1:
        raise RuntimeError(f"the slow links were not overloaded, so this shows nothing: {slow}")
    return slow


_COLUMNS = (
    "turn",
    "region",
    "freshness p50",
    "p99",
    "bytes for a change on the fast links",
    "slow link's bandwidth used",
    "changes its store took",
    "most keys waiting",
    "busy cores",
)


def _rows(turn: Turn) -> list[tuple[str, ...]]:
    rows = [
        (
            f"{turn.number + 1}, {'with' if turn.slow else 'without'}",
            region.partition(":")[2],
            *_quantiles(lags_s),
            f"{turn.bytes_per_change:.0f}",
            "",
            "",
            "",
            f"{turn.busy_cores:.2f}",
        )
        for region, lags_s in turn.lags_s.items()
    ]
    if turn.slow is None:
        return rows
    slow = (f"{turn.slow.used:.0%}", f"{turn.slow.taken:.0%}", f"{turn.slow.backlog_keys:,}")
    name = f"{SLOW.partition(':')[2]}, slow"
    return [*rows, (rows[0][0], name, *_quantiles(turn.slow.lags_s), "", *slow, "")]


def _quantiles(lags_s: list[float]) -> tuple[str, str]:
    return f"{percentile(lags_s, 50):.3f} s", f"{percentile(lags_s, 99):.3f} s"


def _ratio(turns: list[Turn], percent: int) -> dict[str, float]:
    """Of each fast region, with the slow one to without: median of the rounds'."""
    found = {}
    for region in FAST:
        lags = [percentile(turn.lags_s[region], percent) for turn in turns]
        pairs = zip(lags[1::2], lags[::2], strict=True)
        found[region] = statistics.median(there / without for there, without in pairs)
    return found


def _exhibit(turns: list[Turn], stream_s: float) -> Exhibit:
    p50, p99 = _ratio(turns, 50), _ratio(turns, 99)
    ratios = [
        (
            "with to without",
            region.partition(":")[2],
            f"{p50[region]:.2f}",
            f"{p99[region]:.2f} (aim ≤ {AIM}: {'met' if p99[region] <= AIM else '**missed**'})",
            *[""] * 5,
        )
        for region in FAST
    ]
    return Exhibit(
        "multicast-slow-region",
        "Fast regions beside one behind a link of a tenth of their speed",
        _COLUMNS,
        tuple([row for turn in turns for row in _rows(turn)] + ratios),
        f"{PER_S:,} changes/s, Zipf over {KEYS:,} keys, for {stream_s:g} s a turn, SLO {SLO_S:g} s;"
        f" {BANDWIDTH_BPS / 1e6:g} Mbit/s a link, {SLOW_BPS / 1e6:g} Mbit/s to and from {SLOW}."
        f" Freshness is of probes, {_PROBES_PER_S} keys a second that change once, until they are"
        " in Redis. In the end every region has the newest version of every key; the slow one's"
        " store took only a part of the changes, for the others were replaced by newer ones of"
        f" their key on the way. {os.cpu_count()} cores.",
        picture(turns),
    )
