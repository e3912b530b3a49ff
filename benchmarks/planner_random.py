"""Savings over direct for random regions (Cloudcast, Figure 13)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.figures import percentile
from benchmarks.multicast_jobs import random_job
from benchmarks.planner_claims import HIGH_THROUGHPUT, saving, speed_up
from freshet.planner import Billing, Network, Plan, Problem, make_plan
from freshet.planner.optimal.planner import fastest_possible
from freshet.report.figures import PALETTE, finish, new_figure

DESTINATIONS = (1, 2, 4, 6, 8)
SAMPLES = 100
"""Of each number of destinations, as in the paper."""

_QUICK = 5
_PLANS = ("tightest deadline", "no deadline", "mdst")


@dataclass(frozen=True)
class Improvement:
    """Of one plan over direct."""

    saving: float
    speed_up: float


def run(context: Context, network: Network) -> Iterable[Exhibit]:
    """Quartiles of saving and speed-up by number of destinations."""
    rng = np.random.default_rng(13)
    found: dict[tuple[int, str], list[Improvement]] = {}
    for count in DESTINATIONS[1:4] if context.quick else DESTINATIONS:
        context.say(f"random regions, {count} destinations")
        for _ in range(_QUICK if context.quick else SAMPLES):
            job = random_job(network, count, rng)
            for name, each in _improvements(job.on(network)).items():
                found.setdefault((count, name), []).append(each)
    yield _exhibit(found)


def _improvements(problem: Problem) -> dict[str, Improvement]:
    problem = replace(problem, billing=Billing.USED)
    direct = make_plan(problem, "direct")
    tightest = fastest_possible(problem).seconds * HIGH_THROUGHPUT
    plans = (make_plan(problem.with_deadline(tightest)), make_plan(problem))
    named: dict[str, Plan] = dict(zip(_PLANS, (*plans, make_plan(problem, "mdst")), strict=True))
    return {
        name: Improvement(saving(plan, direct), speed_up(plan, direct))
        for name, plan in named.items()
    }


def _exhibit(found: dict[tuple[int, str], list[Improvement]]) -> Exhibit:
    rows = tuple(
        (
            str(count),
            name,
            _quartiles([each.saving * 100 for each in samples], "%"),
            _quartiles([each.speed_up for each in samples], "×"),
            str(len(samples)),
        )
        for (count, name), samples in found.items()
    )
    figure, axes = new_figure("cost over direct's (%)")
    axes.set_xlabel("times as fast as direct")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    for place, name in enumerate(_PLANS):
        curve = [samples for (_, kind), samples in found.items() if kind == name]
        points = [
            (_median(e.speed_up for e in samples), 100 - 100 * _median(e.saving for e in samples))
            for samples in curve
        ]
        counts = [count for count, kind in found if kind == name]
        axes.plot(*zip(*points, strict=True), color=PALETTE[place], marker="o", label=name)
        for count, point in zip(counts, points, strict=True):
            axes.annotate(f"{count}", point, xytext=(4, 4), textcoords="offset points", fontsize=7)
    return Exhibit(
        "planner-random",
        "Figure 13: random regions, median (quartiles) over direct",
        ("destinations", "plan", "saving", "speed-up", "samples"),
        rows,
        "Source and destinations are drawn from all 71 regions. In the picture the number at a "
        "point is that of destinations.",
        finish(figure, axes),
    )


def _quartiles(values: list[float], unit: str) -> str:
    low, middle, high = (percentile(values, percent) for percent in (25, 50, 75))
    digits = 0 if unit == "%" else 2
    return f"{middle:.{digits}f} {unit} ({low:.{digits}f} to {high:.{digits}f})"


def _median(values: Iterable[float]) -> float:
    return percentile(values, 50)
