"""What the approximations of the paper's program save and cost (Cloudcast, Table 3)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.cloudcast_claims import APPROXIMATIONS
from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.figures import Figure
from benchmarks.multicast_jobs import MAX_VMS, PAPER, clouds, random_job
from benchmarks.timed_solves import ALL, Solve, own_plan, solve_in
from freshet.planner import Network, Problem
from freshet.planner.baselines.cloudcast import CLUSTERS, EXACT, Approximations
from freshet.planner.optimal.planner import fastest_possible

DESTINATIONS = 5
STRIPES = 10
TIGHTNESS = 3.0
"""Deadline, over the fastest possible time; with less, stripe by stripe often finds no plan."""

LIMIT_S = 20.0
SAMPLES = 3

SMALL_REGIONS = 14
SMALL_DESTINATIONS = 4
SMALL_STRIPES = 4
SMALL_SAMPLES = 10
"""Where the program without approximations ends in time."""

_JOB_TIGHTNESS = 1.5
_JOB_LIMIT_S = 60.0

_OURS = "ours"


@dataclass(frozen=True)
class Row:
    """How a method did in one sample."""

    cost_usd: float | None
    cpu_s: float
    cut_off: bool


Samples = dict[str, list[Row]]
"""Each method's rows."""


def run(context: Context) -> list[Figure | Exhibit]:
    """Over few regions, over all regions with a time limit, and the paper's jobs."""
    network = clouds(MAX_VMS)
    return [
        _few_regions(context, network),
        _all_regions(context, network),
        *_beside_cloudcast(context, network),
    ]


def _beside_cloudcast(context: Context, network: Network) -> Iterable[Figure]:
    """Our plans beside those with all approximations, on the paper's jobs."""
    for job in PAPER[:1] if context.quick else PAPER:
        context.say(f"cloudcast, {job.name}")
        problem = job.on(network, STRIPES)
        problem = problem.with_deadline(fastest_possible(problem).seconds * _JOB_TIGHTNESS)
        own, other = _own(problem), solve_in(_JOB_LIMIT_S, problem, ALL)
        context.say(f"ours ${own.cost_usd:.2f} after {own.cpu_s:.3g} s, cloudcast {other}")
        assert own.cost_usd is not None
        note = f"cloudcast was cut off at {_JOB_LIMIT_S:g} s" if other.cut_off else ""
        cost = seconds = None
        if other.plan is not None:
            cost = Figure("cloudcast", "$", (other.plan.cost.total_usd,))
            seconds = Figure("cloudcast", "s", (other.cpu_s,))
        else:
            note = note or "cloudcast finds no plan"
        yield Figure(f"cost, {job.name}", "$", (own.cost_usd,), cost, note=note)
        yield Figure(f"solve time, {job.name}", "s", (own.cpu_s,), seconds, note=note)


def _all_regions(context: Context, network: Network) -> Exhibit:
    def draw(rng: np.random.Generator) -> Problem:
        return random_job(network, DESTINATIONS, rng).on(network, STRIPES)

    count = 1 if context.quick else SAMPLES
    limit_s = 5.0 if context.quick else LIMIT_S
    samples = _sample(context, draw, count, CLUSTERS, limit_s)
    return _exhibit(
        "planner-approximations",
        f"Table 3: {DESTINATIONS} destinations, {len(network.regions)} regions, {STRIPES} stripes",
        samples,
        f"{count} samples; cut off after {limit_s:g} s; errors are over our plan's cost.",
        reference=_OURS,
    )


def _few_regions(context: Context, network: Network) -> Exhibit:
    clusters = round((SMALL_REGIONS - SMALL_DESTINATIONS - 1) / 2)

    def draw(rng: np.random.Generator) -> Problem:
        small = _some_regions(network, SMALL_REGIONS, rng)
        return random_job(small, SMALL_DESTINATIONS, rng).on(small, SMALL_STRIPES)

    count = 3 if context.quick else SMALL_SAMPLES
    samples = _sample(context, draw, count, clusters, LIMIT_S)
    return _exhibit(
        "planner-approximations-small",
        f"Table 3 on few regions: {SMALL_DESTINATIONS} destinations, {SMALL_REGIONS} regions, "
        f"{SMALL_STRIPES} stripes, {clusters} clusters",
        samples,
        f"{count} samples; cut off after {LIMIT_S:g} s; errors are over the program "
        "without approximations.",
        reference="none",
    )


def _sample(
    context: Context,
    draw: Callable[[np.random.Generator], Problem],
    count: int,
    clusters: int,
    limit_s: float,
) -> Samples:
    methods = {
        "none": EXACT,
        "node clustering": replace(EXACT, clusters=clusters),
        "hop constraining": replace(EXACT, waypoints=ALL.waypoints),
        "stripe-iterative": replace(EXACT, stripe_iterative=True),
        "all": Approximations(clusters=clusters),
    }
    rng = np.random.default_rng(3)
    samples: Samples = {}
    for number in range(count):
        problem = draw(rng)
        context.say(f"approximations, {len(problem.network.regions)} regions, sample {number + 1}")
        problem = problem.with_deadline(fastest_possible(problem).seconds * TIGHTNESS)
        for name, approximations in methods.items():
            solve = solve_in(limit_s, problem, approximations)
            context.say(f"{name}: {solve}")
            samples.setdefault(name, []).append(_row(solve))
        samples.setdefault(_OURS, []).append(_own(problem))
    return samples


def _row(solve: Solve) -> Row:
    cost = None if solve.plan is None else solve.plan.cost.total_usd
    return Row(cost, solve.cpu_s, solve.cut_off)


def _own(problem: Problem) -> Row:
    plan, cpu_s = own_plan(problem)
    return Row(plan.cost.total_usd, cpu_s, cut_off=False)


def _exhibit(name: str, title: str, samples: Samples, note: str, reference: str) -> Exhibit:
    rows = []
    for method, mine in samples.items():
        errors = [
            row.cost_usd / best.cost_usd - 1
            for row, best in zip(mine, samples[reference], strict=True)
            if row.cost_usd is not None and best.cost_usd is not None
        ]
        speed_ups = [
            slow.cpu_s / row.cpu_s for row, slow in zip(mine, samples["none"], strict=True)
        ]
        paper = APPROXIMATIONS.get(method)
        rows.append(
            (
                method,
                f"{statistics.median(row.cpu_s for row in mine):.3g} s",
                f"{sum(row.cut_off for row in mine)} of {len(mine)}",
                f"{sum(row.cost_usd is None for row in mine)} of {len(mine)}",
                f"{statistics.fmean(errors):.2%}" if errors else "",
                f"{max(errors):.2%}" if errors else "",
                f"{_geometric_mean(speed_ups):.3g} ×",
                "" if paper is None else f"{paper[0]:.1%}, {paper[1]:g} ×",
            )
        )
    return Exhibit(
        name,
        title,
        (
            "approximations",
            "median CPU time",
            "cut off",
            "no plan",
            "mean error of the cost",
            "largest",
            "faster than none (geometric mean)",
            "paper: error, faster",
        ),
        tuple(rows),
        note,
    )


def _geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def _some_regions(network: Network, count: int, rng: np.random.Generator) -> Network:
    picked = rng.permutation(len(network.regions))[:count]
    both = np.ix_(picked, picked)
    return Network(
        tuple(network.regions[i] for i in picked),
        network.price_usd_per_gb[both],
        network.bandwidth_bps[both],
        tuple(network.limits[i] for i in picked),
    )
