"""Solve times by number of destinations, ours and the paper's program's (Cloudcast, Figure 14).

They are CPU seconds of the one thread that plans, so that other work sways them little.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure as Picture

from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.figures import Aim, Figure, Point, fit_line
from benchmarks.multicast_jobs import MAX_VMS, clouds, random_job
from benchmarks.timed_solves import ALL, own_plan, solve_in
from freshet.planner import Network
from freshet.planner.optimal.planner import fastest_possible
from freshet.report.figures import PALETTE, finish, new_figure

DESTINATIONS = (2, 4, 6, 8, 10, 15, 20)
CLOUDCAST_JOBS = 2
CLOUDCAST_STRIPES = 10
CLOUDCAST_TIGHTNESS = 3.0
"""Deadline, over the fastest possible time; with less, stripe by stripe often finds no plan."""

CLOUDCAST_LIMIT_S = 30.0

_JOBS = 10
_MANY = 8
_JOBS_IF_MANY = 3
_TIGHTNESS = (1.001, 1.1, 2.0)
_PERCENT = 100.0

_OURS, _CLOUDCAST = "ours", "cloudcast"


@dataclass(frozen=True)
class Times:
    """Of one number of destinations."""

    seconds: tuple[float, ...]
    cut_off: int = 0
    no_plan: int = 0

    @property
    def median(self) -> float:
        """CPU seconds."""
        return statistics.median(self.seconds)


Curve = dict[int, Times]
"""By number of destinations."""


def run(context: Context) -> list[Figure | Exhibit]:
    """Solve times for random regions, and how they grow."""
    network = clouds(MAX_VMS)
    shown: list[Figure | Exhibit] = []
    ours: Curve = {}
    rng = np.random.default_rng(1)
    for count in DESTINATIONS[:4] if context.quick else DESTINATIONS:
        context.say(f"solve times, {count} destinations")
        figures = _ours(context, network, count, rng)
        ours[count] = Times(figures[0].samples)
        shown += figures
    return [*shown, _growth(ours, _cloudcast(context, network))]


def _ours(context: Context, network: Network, count: int, rng: np.random.Generator) -> list[Figure]:
    number = _JOBS_IF_MANY if context.quick or count > _MANY else _JOBS
    timed = []
    for _ in range(number):
        problem = random_job(network, count, rng).on(network)
        seconds = fastest_possible(problem).seconds
        timed += [own_plan(problem.with_deadline(seconds * factor)) for factor in _TIGHTNESS]
    took = tuple(cpu_s for _, cpu_s in timed)
    gaps = [plan.cost.gap * _PERCENT for plan, _ in timed]
    figure = Figure(
        f"solve time, {count} destinations",
        "s",
        took,
        aim={6: Aim(0.5)}.get(count),
        note=f"{len(took)} plans for random regions, parts of any size; CPU seconds",
        details={"largest_gap_percent": max(gaps), "mean_gap_percent": float(np.mean(gaps))},
        at=Point("solve time", float(count), "destinations"),
    )
    if count not in (6, 20):
        return [figure]
    worst = Aim(3.0 if count == 6 else 10.0)
    return [figure, Figure(f"longest solve, {count} destinations", "s", (max(took),), aim=worst)]


def _cloudcast(context: Context, network: Network) -> Curve:
    rng = np.random.default_rng(14)
    found: Curve = {}
    for count in DESTINATIONS[:2] if context.quick else DESTINATIONS:
        context.say(f"cloudcast's solve times, {count} destinations")
        solves = []
        for _ in range(1 if context.quick else CLOUDCAST_JOBS):
            problem = random_job(network, count, rng).on(network, CLOUDCAST_STRIPES)
            deadline = fastest_possible(problem).seconds * CLOUDCAST_TIGHTNESS
            solves.append(solve_in(CLOUDCAST_LIMIT_S, problem.with_deadline(deadline), ALL))
            context.say(str(solves[-1]))
        found[count] = Times(
            tuple(solve.cpu_s for solve in solves),
            sum(solve.cut_off for solve in solves),
            sum(solve.plan is None and not solve.cut_off for solve in solves),
        )
    return found


def growth_factors(curve: Curve) -> dict[int, float]:
    """By how much each destination multiplied the time since the number before.

    An exponential has the same factor everywhere; less than exponential, it falls towards 1.
    """
    counts = sorted(curve)
    return {
        count: (curve[count].median / curve[before].median) ** (1 / (count - before))
        for before, count in pairwise(counts)
    }


def _growth(ours: Curve, theirs: Curve) -> Exhibit:
    factors, their_factors = growth_factors(ours), growth_factors(theirs)
    rows = []
    for count, mine in ours.items():
        other = theirs.get(count)
        rows.append(
            (
                str(count),
                f"{mine.median:.3g} s",
                f"{max(mine.seconds):.3g} s",
                f"{factors[count]:.2f}" if count in factors else "",
                "" if other is None else f"{other.median:.3g} s",
                f"{their_factors[count]:.2f}" if count in their_factors else "",
                "" if other is None else f"{other.cut_off} of {len(other.seconds)}",
                "" if other is None else f"{other.no_plan} of {len(other.seconds)}",
            )
        )
    return Exhibit(
        "planner-solve-times",
        "Figure 14: solve time by number of destinations",
        (
            "destinations",
            "ours, median",
            "longest",
            "factor for each destination",
            "cloudcast, median",
            "factor for each destination",
            f"cut off at {CLOUDCAST_LIMIT_S:g} s",
            "no plan",
        ),
        tuple(rows),
        f"Ours: {_fits(ours)}.",
        _picture(ours, theirs),
    )


def _fits(curve: Curve) -> str:
    """How well a power and an exponential explain the medians."""
    logs = [math.log(times.median) for times in curve.values()]
    power = fit_line([math.log(count) for count in curve], logs)
    exponential = fit_line([float(count) for count in curve], logs)
    return (
        f"the power n^{power.slope:.1f} explains {power.r_squared:.1%} of the variance of the "
        f"logarithms, the exponential {math.exp(exponential.slope):.2f}^n "
        f"{exponential.r_squared:.1%}"
    )


def _picture(ours: Curve, theirs: Curve) -> Picture:
    figure, axes = new_figure("solve time (CPU s)")
    axes.set_xlabel("destinations")
    axes.set_yscale("log")
    for colour, (name, curve) in zip(PALETTE, ((_OURS, ours), (_CLOUDCAST, theirs)), strict=False):
        medians = [times.median for times in curve.values()]
        axes.plot(list(curve), medians, color=colour, marker="o", label=name)
        for count, times in curve.items():
            axes.plot([count, count], [min(times.seconds), max(times.seconds)], color=colour)
    return finish(figure, axes)
