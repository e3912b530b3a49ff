"""What becomes of the most significant changes when a region's links lose 92 % of their bandwidth.

As in Ekko §6.2.2, with priorities and without: the same changes, of which few remove most of the
regret, and of every one of them when it, or a newer one of its key, is readable in the region.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from benchmarks.change_stream import KEYS, Changes, Sender
from benchmarks.context import Context
from benchmarks.equality import wait_until_equal
from benchmarks.every_arrival import every_arrival
from benchmarks.exhibits import Exhibit
from benchmarks.multicast_congestion_picture import picture
from benchmarks.progress import Reports
from benchmarks.wide_area import (
    DESTINATIONS,
    HOME,
    WideArea,
    cloud,
    multicast,
    traffic,
    wide_area,
)

PER_S = 2_000
SLO_S = 1.0
BANDWIDTH_BPS = 5e6
"""Of a link; the changes take about half of it."""

CUT = 0.92
"""Of the bandwidth that is lost (Ekko §6.2.2)."""

REGION = DESTINATIONS[0]
TOP = 0.01
"""The most significant share of the changes."""

REGRET_SIGMA = 2.0
"""Of the regret's logarithm: a hundredth of the changes then removes over a third of the regret."""

AIM = 2.0
"""Of the top's p99 when congested to that when not."""

STEADY_S = 10.0
"""After the bandwidth fell. What is under way then takes over a second, whatever comes first, and a
new plan is found and put in force."""

_READY_DEADLINE_S = 300.0
_ARRIVED_DEADLINE_S = 300.0
_CONGESTED = 0.6
"""Share of a link's bandwidth that comes into the region at the least while it is congested: the
senders keep little under way, and so leave a part of it unused."""

_MICROS = 1e6

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Length:
    """How long everything takes, seconds."""

    warm_s: float
    open_s: float
    congested_s: float


@dataclass(frozen=True)
class Spell:
    """The changes of a while."""

    sent_s: Floats = field(repr=False)
    """Since the congestion began, [changes]."""

    lags_s: Floats = field(repr=False)
    regrets: Floats = field(repr=False)
    is_top: npt.NDArray[np.bool_] = field(repr=False)
    """Whether a change is among the most significant ones."""

    def lag_s(self, top: bool, percent: float) -> float:
        """Quantile over the top, or over the rest, seconds."""
        return float(np.percentile(self.lags_s[self.is_top == top], percent))

    def since(self, begin_s: float) -> Spell:
        """What was sent so long after the congestion began, or later."""
        late = self.sent_s >= begin_s
        return Spell(self.sent_s[late], self.lags_s[late], self.regrets[late], self.is_top[late])

    @property
    def regret(self) -> float:
        """Regret of what was not there yet, on average over the changes' time: each change's
        regret removed times how long it took, over the time of the spell."""
        return float((self.regrets * self.lags_s).sum() / np.ptp(self.sent_s))


@dataclass(frozen=True)
class Turn:
    """With priorities, or without."""

    priority_share: float | None
    """None for the default."""

    uncongested: Spell
    congested: Spell
    used: float
    """What has come into the region over the bandwidth that one link to it was left with: a plan
    uses one, or both."""

    backlog_keys: int
    """The most that waited on a link to the region."""

    equal_after_s: float
    """From the end of the congestion, with which the changes end, to having all of them."""

    @property
    def name(self) -> str:
        """Of the turn."""
        return "without priorities" if self.priority_share == 0 else "with priorities"


def run(context: Context) -> list[Exhibit]:
    """One turn after the other, on the same servers."""
    length = Length(15, 10, 20) if context.quick else Length(75, 20, 45)
    turns: list[Turn] = []
    with wide_area(context, cloud(BANDWIDTH_BPS)) as area:
        for number, share in enumerate((None, 0.0)):
            turns.append(_turn(context, area, f"fleet_load_{number}", share, length))
            for row in _rows(turns[-1]):
                context.say(", ".join(row))
    return [_exhibit(turns, length)]


def _turn(
    context: Context, area: WideArea, table: str, priority_share: float | None, length: Length
) -> Turn:
    log: list[tuple[bytes, int, float]] = []
    changes = Changes(regret_sigma=REGRET_SIGMA)
    sender = Sender(area.regions[HOME].bootstrap, f"changes.{table}", table, changes, log)
    url = area.stores()[REGION]
    with (
        multicast(area, table, int(SLO_S * 1_000), priority_share=priority_share) as heard,
        every_arrival(url) as observed,
    ):
        sender.send(1)
        wait_until_equal(area.stores(), table, sender.sent.versions, _READY_DEADLINE_S)
        with sender.at_rate(PER_S, probes_per_s=0):
            time.sleep(length.warm_s)
            opened_s = time.time()
            time.sleep(length.open_s)
            with _congestion(area, heard, length) as congestion:
                congested_s = time.time()
                time.sleep(length.congested_s)
            ended_s = time.time()
        wait_until_equal(area.stores(), table, sender.sent.versions, _ARRIVED_DEADLINE_S)
        equal_s = time.time()
        arrived_s = observed.arrived_s(table, [(key, version) for key, version, _ in log])
    sent_s = np.array([version for _, version, _ in log]) / _MICROS
    regrets = np.array([regret for _, _, regret in log])
    is_top = regrets > np.quantile(regrets, 1 - TOP)

    def spell(begin_s: float, end_s: float) -> Spell:
        within = (sent_s >= begin_s) & (sent_s < end_s)
        return Spell(
            sent_s[within] - congested_s,
            (arrived_s - sent_s)[within],
            regrets[within],
            is_top[within],
        )

    return Turn(
        priority_share,
        spell(opened_s, congested_s),
        spell(congested_s, ended_s),
        congestion.used,
        congestion.backlog_keys,
        equal_s - ended_s,
    )


@dataclass
class _Congestion:
    """What was seen of it, once it is over."""

    used: float = 0.0
    backlog_keys: int = 0


@contextlib.contextmanager
def _congestion(area: WideArea, heard: Reports, length: Length) -> Iterator[_Congestion]:
    """Takes bandwidth from all links of the region as long as the block lasts.

    Raises:
        RuntimeError: they were not congested.
    """
    wan = area.regions.wan
    links = [link for link in area.regions.scenario.links if REGION in (link.source, link.target)]
    left_bps = BANDWIDTH_BPS * (1 - CUT)
    found = _Congestion()
    before, reported = traffic(area.regions), len(heard.all)
    with contextlib.ExitStack() as healing:
        for link in links:
            shape = replace(link.shape, bandwidth_bps=left_bps)
            healing.enter_context(wan.shaped(link.name, shape))
        yield found
        went = traffic(area.regions).since(before).out_bytes
    came = sum(count for (_, target), count in went.items() if target == REGION)
    found.used = came * 8 / length.congested_s / left_bps
    found.backlog_keys = max(
        (
            link["backlog_keys"]
            for report in heard.all[reported:]
            for link in report["links"]
            if link["to"] == REGION
        ),
        default=0,
    )
    if found.used < _CONGESTED or not found.backlog_keys:
        raise RuntimeError(f"the links were not congested, so this shows nothing: {found}")


_COLUMNS = (
    "turn",
    "changes",
    "uncongested p50",
    "p99",
    "congested p50",
    "p99",
    "p99, congested to not",
    f"p99 from {STEADY_S:g} s on",
    "that to uncongested",
    "regret not there yet, congested",
    "uncongested",
    "bytes into the region, of a link's",
    "most keys waiting",
    "all there after",
)


def _rows(turn: Turn) -> list[tuple[str, ...]]:
    rows = []
    for top in (True, False):
        before, during = turn.uncongested, turn.congested
        lags = [spell.lag_s(top, percent) for spell in (before, during) for percent in (50, 99)]
        steady = during.since(STEADY_S).lag_s(top, 99)
        ratios = [late / lags[1] for late in (lags[3], steady)]
        against = [
            f" (aim ≤ {AIM:g}: {'met' if ratio <= AIM else '**missed**'})" if top else ""
            for ratio in ratios
        ]
        regret = (f"{during.regret:,.0f}", f"{before.regret:,.0f}")
        of_all = (f"{turn.used:.0%}", f"{turn.backlog_keys:,}", f"{turn.equal_after_s:.0f} s")
        rows.append(
            (
                turn.name,
                f"top {TOP:.0%}" if top else "the rest",
                *(f"{lag:.2f} s" for lag in lags),
                f"{ratios[0]:.2f}{against[0]}",
                f"{steady:.2f} s",
                f"{ratios[1]:.2f}{against[1]}",
                *((*regret, *of_all) if top else [""] * 5),
            )
        )
    return rows


def _exhibit(turns: list[Turn], length: Length) -> Exhibit:
    with_priorities, without = (turn.congested.regret for turn in turns)
    return Exhibit(
        "multicast-congestion",
        f"{REGION} while its links have lost {CUT:.0%} of their bandwidth",
        _COLUMNS,
        tuple(row for turn in turns for row in _rows(turn)),
        f"{PER_S:,} changes/s, Zipf over {KEYS:,} keys, SLO {SLO_S:g} s, {length.open_s:g} s with"
        f" {BANDWIDTH_BPS / 1e6:g} Mbit/s a link, then {length.congested_s:g} s with"
        f" {BANDWIDTH_BPS * (1 - CUT) / 1e6:g} Mbit/s. Regrets are lognormal (σ {REGRET_SIGMA:g})."
        " Times are of all changes, from sending until the change, or a newer one of its key, is in"
        " the region's Redis. Regret not there yet is each change's regret removed times that"
        " time, over the time of the spell; with priorities it is"
        f" {with_priorities / without:.2f} of that without. In the end every region has the newest"
        f" version of every key. {os.cpu_count()} cores.",
        picture(turns),
    )
