"""The trade between cost and time: the cheapest plan for each of a row of deadlines."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from freshet.planner.algorithms import make_plan
from freshet.planner.optimal.planner import fastest_possible
from freshet.planner.plan import Plan
from freshet.planner.problem import Billing, Problem

DEFAULT_POINTS = 12

_SLACK = 1.001
"""Over the fastest time: the fastest plan is dear, and a thousandth more is much cheaper."""


@dataclass(frozen=True)
class Frontier:
    """Plans that are each cheaper than all faster ones, fastest first."""

    plans: tuple[Plan, ...]
    knee: int
    """The plan after which more time saves little: farthest below the line from end to end."""

    fastest_s: float
    """The fastest possible time."""


def frontier(problem: Problem, points: int = DEFAULT_POINTS) -> Frontier:
    """Plans for deadlines from the fastest possible to where more time saves nothing.

    Args:
        problem: to plan for; its deadline is the longest of interest. VMs are billed as used, so
            that plans for different deadlines compare.
        points: number of deadlines.

    Raises:
        NoPlanError: a destination can't be reached, or not by the deadline.
    """
    problem = replace(problem, billing=Billing.USED)
    fastest_s = fastest_possible(problem).seconds
    cheapest = make_plan(problem)
    first = fastest_s * _SLACK
    plans = [cheapest]
    if cheapest.predicted_time_s > first:
        deadlines = np.geomspace(first, cheapest.predicted_time_s, points)[:-1]
        plans += [make_plan(problem.with_deadline(float(seconds))) for seconds in deadlines]
    kept = _undominated(plans)
    return Frontier(tuple(kept), _knee(kept), fastest_s)


def _undominated(plans: list[Plan]) -> list[Plan]:
    kept: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: (plan.predicted_time_s, plan.cost_as_used_usd)):
        if not kept or plan.cost_as_used_usd < kept[-1].cost_as_used_usd:
            kept.append(plan)
    return kept


def _knee(plans: list[Plan]) -> int:
    times = np.log([plan.predicted_time_s for plan in plans])
    costs = np.array([plan.cost_as_used_usd for plan in plans])
    if len(plans) < 3:
        return len(plans) - 1
    across = (times - times[0]) / (times[-1] - times[0])
    down = (costs[0] - costs) / (costs[0] - costs[-1])
    return int((down - across).argmax())
