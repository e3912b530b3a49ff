"""The optimal planner: trees by column generation, VMs by branch and bound, with a proven bound."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from freshet.planner.errors import NoPlanError
from freshet.planner.model import TIME_TOLERANCE, describe_plan
from freshet.planner.optimal.column_generation import Pricing
from freshet.planner.optimal.fastest import Fastest, fastest_plan
from freshet.planner.optimal.pricing import pricing_for
from freshet.planner.optimal.search import Found, Search
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem
from freshet.planner.trees import Tree

NAME = "optimal"


def solve(problem: Problem, *, pricing: Pricing | None = None, trees: Iterable[Tree] = ()) -> Plan:
    """Finds the cheapest plan, and proves how close it is to the best.

    Args:
        problem: to solve.
        pricing: finds light trees, where not all trees are allowed; its first tree must be allowed.
        trees: that are likely to be good, such as those of an earlier plan.

    Raises:
        NoPlanError: no plan meets the deadline, or a destination can't be reached.
    """
    started = time.perf_counter()
    any_tree = pricing is None
    pricing = pricing or pricing_for(problem)
    fastest = fastest_plan(problem, pricing, any_tree=any_tree)
    fastest = replace(fastest, trees=list(dict.fromkeys([*fastest.trees, *trees])))
    deadline = problem.deadline_s
    if deadline is not None and deadline < fastest.bound_s * (1 - TIME_TOLERANCE):
        raise _too_late(problem, fastest)
    found, bound = Search(problem, fastest, pricing, any_tree=any_tree).run()
    if found is None:
        raise _too_late(problem, fastest)
    return describe_plan(
        problem,
        _stripes(problem, found),
        found.vms,
        algorithm=NAME,
        started=started,
        lower_bound_usd=max(bound, 0.0),
    )


def fastest_possible(problem: Problem) -> Fastest:
    """The fastest plan, whatever it costs.

    Raises:
        NoPlanError: a destination can't be reached.
    """
    return fastest_plan(problem, pricing_for(problem))


def _stripes(problem: Problem, found: Found) -> Sequence[tuple[Tree, float]]:
    ordered = sorted(found.mix.items(), key=lambda item: (-item[1], item[0]))
    if problem.stripes is None:
        return ordered
    one = 1.0 / problem.stripes
    return [(tree, one) for tree, x in ordered for _ in range(round(x * problem.stripes))]


def _too_late(problem: Problem, fastest: Fastest) -> NoPlanError:
    proven = fastest.seconds <= fastest.bound_s * (1 + 1e-3)
    least = "" if proven else f" (proven: not below {fastest.bound_s:.6g} s)"
    return NoPlanError(
        f"no plan brings {problem.volume_gb:g} GB from {problem.source} within "
        f"{problem.deadline_s:g} s; the fastest possible time is {fastest.seconds:.6g} s{least}, "
        f"and {fastest.binding} binds; allow more time, or raise that limit",
        fastest_s=fastest.seconds,
        binding=fastest.binding,
    )
