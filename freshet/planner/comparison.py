"""All algorithms on one problem."""

from __future__ import annotations

from dataclasses import replace

from freshet.planner.algorithms import ALGORITHMS, FOR_SMALL_NETWORKS
from freshet.planner.errors import NoPlanError
from freshet.planner.plan import Plan
from freshet.planner.problem import Billing, Problem


def compare_algorithms(problem: Problem) -> dict[str, Plan | str]:
    """Each algorithm's plan, or why it has none.

    VMs are billed as used. A plan may be later than the deadline: most algorithms know none.

    Args:
        problem: to plan for.
    """
    problem = replace(problem, billing=Billing.USED)
    found: dict[str, Plan | str] = {}
    for name in [name for name in ALGORITHMS if name not in FOR_SMALL_NETWORKS]:
        try:
            found[name] = ALGORITHMS[name](problem)
        except NoPlanError as error:
            found[name] = str(error)
    return found
