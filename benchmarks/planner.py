"""Multicast plans: how near the best they are, how long that takes, and what they save."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from benchmarks.context import Context
from benchmarks.figures import Aim, Figure, Point
from benchmarks.multicast_jobs import (
    PAPER,
    PUBLIC,
    PUBLIC_STRIPES,
    PUBLIC_VMS,
    clouds,
    random_job,
)
from freshet.planner import Billing, Network, NoPlanError, Plan, Problem, make_plan
from freshet.planner.optimal.planner import fastest_possible

MAX_VMS = 5
STRIPES = 10
TIGHTNESS = (1.001, 1.01, 1.1, 1.5, 2.0)
"""Deadlines, over the fastest possible time."""

DESTINATIONS = (2, 4, 6, 8, 10, 15, 20)
_JOBS = 10
_MANY = 8
_JOBS_IF_MANY = 3
_HIGH_THROUGHPUT = 1.001
_PERCENT = 100.0


def run(context: Context) -> list[Figure]:
    """Gaps, solve times, costs beside other algorithms."""
    network = clouds(MAX_VMS)
    return [
        *_gaps(context, network),
        *_solve_times(context, network),
        *_public(context),
        *_savings(context, network),
        *_beside_cloudcast(context, network),
    ]


def _gaps(context: Context, network: Network) -> Iterable[Figure]:
    for stripes, limit in ((None, 0.5), (STRIPES, 1.5)):
        parts = "parts of any size" if stripes is None else f"{stripes} equal stripes"
        context.say(f"gaps, {parts}")
        plans = [plan for job in PAPER for plan in _tightening(job.on(network, stripes))]
        gaps = tuple(plan.cost.gap * _PERCENT for plan in plans)
        note = f"{len(gaps)} plans: footnotes 1 to 6, deadlines {TIGHTNESS} times the fastest"
        yield Figure(f"gap to the bound, {parts}", "%", gaps, note=note)
        yield Figure(f"largest gap, {parts}", "%", (max(gaps),), aim=Aim(limit))
        times = tuple(plan.solve_time_s for plan in plans)
        yield Figure(f"solve time, {parts}", "s", times)


def _solve_times(context: Context, network: Network) -> Iterable[Figure]:
    rng = np.random.default_rng(1)
    for count in DESTINATIONS:
        context.say(f"solve times, {count} destinations")
        number = _JOBS_IF_MANY if context.quick or count > _MANY else _JOBS
        jobs = [random_job(network, count, rng) for _ in range(number)]
        plans = [plan for job in jobs for plan in _tightening(job.on(network), (1.001, 1.1, 2.0))]
        times = tuple(plan.solve_time_s for plan in plans)
        gaps = [plan.cost.gap * _PERCENT for plan in plans]
        aim = {6: Aim(0.5)}.get(count)
        yield Figure(
            f"solve time, {count} destinations",
            "s",
            times,
            aim=aim,
            note=f"{len(times)} plans for random regions, parts of any size",
            details={"largest_gap_percent": max(gaps), "mean_gap_percent": float(np.mean(gaps))},
            at=Point("solve time", float(count), "destinations"),
        )
        if count in (6, 20):
            worst = Aim(3.0 if count == 6 else 10.0)
            yield Figure(f"longest solve, {count} destinations", "s", (max(times),), aim=worst)


def _public(context: Context) -> Iterable[Figure]:
    context.say("public configurations")
    network = clouds(PUBLIC_VMS).with_vms(PUBLIC_VMS, PUBLIC_VMS)
    for job, limit in zip(PUBLIC, (58.1, 161.95), strict=True):
        plan = make_plan(job.on(network, PUBLIC_STRIPES))
        yield Figure(
            f"cost of {job.name}",
            "$",
            (plan.cost.total_usd,),
            aim=Aim(limit),
            note="300 GB, 10 stripes, 2 VMs in each region used, no deadline",
            details={"lower_bound_usd": plan.cost.lower_bound_usd},
        )


def _savings(context: Context, network: Network) -> Iterable[Figure]:
    """The tightest deadline's plan beside the direct one (Cloudcast's HT, Figures 8 to 11)."""
    context.say("savings over direct")
    for job in PAPER:
        problem = job.on(network)
        direct = make_plan(problem, "direct")
        best = make_plan(_used(problem, fastest_possible(problem).seconds * _HIGH_THROUGHPUT))
        cost = Figure(f"direct, {job.name}", "$", (direct.cost_as_used_usd,))
        yield cost
        yield Figure(f"tightest deadline, {job.name}", "$", (best.cost_as_used_usd,), cost)
        seconds = Figure(f"direct, {job.name}", "s", (direct.predicted_time_s,))
        yield Figure(f"tightest deadline, {job.name}", "s", (best.predicted_time_s,), seconds)


def _beside_cloudcast(context: Context, network: Network) -> Iterable[Figure]:
    """The paper's program with its approximations, on the same jobs and deadlines."""
    for job in PAPER[:1] if context.quick else PAPER:
        context.say(f"cloudcast, {job.name}")
        problem = job.on(network, STRIPES)
        problem = problem.with_deadline(fastest_possible(problem).seconds * 1.5)
        own = make_plan(problem)
        try:
            other = make_plan(problem, "cloudcast")
        except NoPlanError as error:
            yield Figure(f"cost, {job.name}", "$", (own.cost.total_usd,), note=str(error))
            continue
        cost = Figure("cloudcast", "$", (other.cost.total_usd,))
        yield Figure(f"cost, {job.name}", "$", (own.cost.total_usd,), cost)
        seconds = Figure("cloudcast", "s", (other.solve_time_s,))
        yield Figure(f"solve time, {job.name}", "s", (own.solve_time_s,), seconds)


def _tightening(problem: Problem, tightness: Iterable[float] = TIGHTNESS) -> list[Plan]:
    seconds = fastest_possible(problem).seconds
    return [make_plan(problem.with_deadline(seconds * factor)) for factor in tightness]


def _used(problem: Problem, deadline_s: float) -> Problem:
    return replace(problem, deadline_s=deadline_s, billing=Billing.USED)
