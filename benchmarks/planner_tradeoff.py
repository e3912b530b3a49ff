"""All algorithms by cost and time beside our frontier (Cloudcast, Figure 8)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.multicast_jobs import PAPER
from benchmarks.timed_solves import ALL, solve_in
from freshet.planner import Billing, Network, Plan, Problem, make_plan
from freshet.planner.algorithms import ALGORITHMS, FOR_SMALL_NETWORKS
from freshet.planner.baselines import cloudcast
from freshet.planner.drawing.tradeoff import draw_tradeoff
from freshet.planner.frontier import Frontier, frontier
from freshet.planner.optimal import planner as optimal

BASELINES = tuple(
    name
    for name in ALGORITHMS
    if name not in FOR_SMALL_NETWORKS and name not in (optimal.NAME, cloudcast.NAME)
)
"""Those that need no deadline."""

CLOUDCAST_DEADLINES = (1.5, 2.0, 4.0)
"""Over the fastest possible time."""

CLOUDCAST_STRIPES = 10
CLOUDCAST_LIMIT_S = 40.0
ON_THE_CURVE = 0.01
"""A plan is on the curve if none as fast is cheaper by more."""

_SAME_COST = 1e-3
"""Costs this near are the same: our plans may be 0.05 % above the best."""

_POINTS = 16


@dataclass(frozen=True)
class Beside:
    """A plan beside the best plans for its time and for its cost."""

    name: str
    plan: Plan
    cheapest_usd: float
    """Of the plans that are as fast."""

    fastest_s: float
    """Of the curve's plans that are as cheap."""

    @property
    def dearer(self) -> float:
        """Its cost over the cheapest plan's for its time, less 1."""
        return self.plan.cost_as_used_usd / self.cheapest_usd - 1

    @property
    def slower(self) -> float:
        """Its time over the fastest plan's for its cost."""
        return self.plan.predicted_time_s / self.fastest_s

    @property
    def is_on_curve(self) -> bool:
        """Whether nothing is much better."""
        return self.dearer <= ON_THE_CURVE


def run(context: Context, network: Network) -> Iterable[Exhibit]:
    """The paper's job of Figure 8 in full, then all six in short."""
    context.say("cost and time of all algorithms")
    job = PAPER[0]
    problem = replace(job.on(network), billing=Billing.USED)
    curve = frontier(problem, _POINTS)
    found = _baselines(problem, curve)
    if not context.quick:
        found += _cloudcasts(problem, curve)
    yield _figure_8(job.name, curve, found)
    if context.quick:
        return
    beside = [found]
    for other in PAPER[1:]:
        context.say(f"cost and time of all algorithms, {other.name}")
        problem = replace(other.on(network), billing=Billing.USED)
        beside.append(_baselines(problem, frontier(problem, _POINTS)))
    yield _all_jobs(beside)


def fastest_within(curve: Sequence[Plan], cost_usd: float) -> float:
    """Time of the fastest plan of a curve that costs no more, s.

    Args:
        curve: plans that are each cheaper than all faster ones, fastest first.
        cost_usd: what it may cost; if all cost more, the time is the cheapest one's.
    """
    within = (p for p in curve if p.cost_as_used_usd <= cost_usd * (1 + _SAME_COST))
    return next(within, curve[-1]).predicted_time_s


def _baselines(problem: Problem, curve: Frontier) -> list[Beside]:
    return [_beside(name, ALGORITHMS[name](problem), problem, curve) for name in BASELINES]


def _cloudcasts(problem: Problem, curve: Frontier) -> list[Beside]:
    found = []
    striped = replace(problem, stripes=CLOUDCAST_STRIPES)
    for factor in CLOUDCAST_DEADLINES:
        solve = solve_in(CLOUDCAST_LIMIT_S, striped.with_deadline(curve.fastest_s * factor), ALL)
        if solve.plan is not None:
            found.append(_beside(f"cloudcast, {factor:g} × fastest", solve.plan, problem, curve))
    return found


def _beside(name: str, plan: Plan, problem: Problem, curve: Frontier) -> Beside:
    as_fast = make_plan(problem.with_deadline(plan.predicted_time_s))
    return Beside(
        name,
        plan,
        as_fast.cost_as_used_usd,
        fastest_within(curve.plans, plan.cost_as_used_usd),
    )


def _figure_8(job: str, curve: Frontier, found: list[Beside]) -> Exhibit:
    direct = next(each.plan for each in found if each.name == "direct")
    rows = [
        (
            each.name,
            f"${each.plan.cost_as_used_usd:.2f}",
            f"{each.plan.predicted_time_s:.1f} s",
            f"{1 - each.plan.cost_as_used_usd / direct.cost_as_used_usd:.0%}",
            f"{direct.predicted_time_s / each.plan.predicted_time_s:.2f} ×",
            f"{each.dearer:.1%}",
            f"{each.slower:.2f} ×",
            "on" if each.is_on_curve else "above",
        )
        for each in sorted(found, key=lambda each: each.plan.predicted_time_s)
    ]
    ours = [
        _own_row("our fastest", curve.plans[0], direct),
        _own_row("our cheapest", curve.plans[-1], direct),
    ]
    return Exhibit(
        "planner-tradeoff",
        f"Figure 8: algorithms by cost and time, {job}",
        (
            "algorithm",
            "cost",
            "time",
            "saves over direct",
            "faster than direct",
            "dearer than ours for its time",
            "slower than ours for its cost",
            "our curve",
        ),
        (*ours, *rows),
        f"On the curve: no plan that is as fast is cheaper by more than {ON_THE_CURVE:.0%}.",
        draw_tradeoff([(e.name, e.plan) for e in found], curve.plans, curve.knee),
    )


def _own_row(name: str, plan: Plan, direct: Plan) -> tuple[str, ...]:
    return (
        name,
        f"${plan.cost_as_used_usd:.2f}",
        f"{plan.predicted_time_s:.1f} s",
        f"{1 - plan.cost_as_used_usd / direct.cost_as_used_usd:.0%}",
        f"{direct.predicted_time_s / plan.predicted_time_s:.2f} ×",
        "",
        "",
        "on",
    )


def _all_jobs(beside: list[list[Beside]]) -> Exhibit:
    rows = []
    for name in BASELINES:
        mine = [each for found in beside for each in found if each.name == name]
        dearer, slower = [e.dearer for e in mine], [e.slower for e in mine]
        rows.append(
            (
                name,
                f"{sum(each.is_on_curve for each in mine)} of {len(mine)}",
                f"{min(dearer):.1%}",
                f"{statistics.median(dearer):.1%}",
                f"{max(dearer):.1%}",
                f"{statistics.median(slower):.2f} ×",
                f"{max(slower):.2f} ×",
            )
        )
    return Exhibit(
        "planner-curve",
        "Baselines beside our curve, footnotes 1 to 6",
        (
            "algorithm",
            "on the curve",
            "dearer for its time, least",
            "median",
            "most",
            "slower for its cost, median",
            "most",
        ),
        tuple(rows),
    )
