"""Direct: the source sends all data to each destination itself."""

from __future__ import annotations

import time

from freshet.planner.baselines.common import plan_with_most_vms
from freshet.planner.errors import NoPlanError
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem

NAME = "direct"


def solve(problem: Problem) -> Plan:
    """Plans one star.

    Raises:
        NoPlanError: a direct link is missing.
    """
    started = time.perf_counter()
    links, names = problem.network.links, problem.network.regions
    missing = [names[v] for v in problem.terminals if not links[problem.root, v]]
    if missing:
        raise NoPlanError(
            f"there is no direct link from {problem.source} to {', '.join(missing)}; give it a "
            "bandwidth, or use an algorithm with waypoints, such as 'optimal'"
        )
    star = tuple(sorted((problem.root, v) for v in problem.terminals))
    return plan_with_most_vms(problem, {star: 1.0}, algorithm=NAME, started=started)
