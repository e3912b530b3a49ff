"""Multicast plans: how near the best they are, how long that takes, and what they save."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import planner_approximations, planner_paper, planner_times
from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.figures import Aim, Figure
from benchmarks.multicast_jobs import (
    MAX_VMS,
    PAPER,
    PUBLIC,
    PUBLIC_STRIPES,
    PUBLIC_VMS,
    clouds,
)
from freshet.planner import Network, Plan, Problem, make_plan
from freshet.planner.optimal.planner import fastest_possible

STRIPES = 10
TIGHTNESS = (1.001, 1.01, 1.1, 1.5, 2.0)
"""Deadlines, over the fastest possible time."""

_PERCENT = 100.0


def run(context: Context) -> list[Figure | Exhibit]:
    """Gaps, solve times, costs beside other algorithms, the paper's evaluation."""
    network = clouds(MAX_VMS)
    return [
        *_gaps(context, network),
        *_public(context),
        *planner_paper.run(context),
        *planner_times.run(context),
        *planner_approximations.run(context),
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


def _tightening(problem: Problem, tightness: Iterable[float] = TIGHTNESS) -> list[Plan]:
    seconds = fastest_possible(problem).seconds
    return [make_plan(problem.with_deadline(seconds * factor)) for factor in tightness]
