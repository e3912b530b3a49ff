"""What the baselines share: stripes of a mix of trees, and the most VMs allowed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from freshet.planner.errors import NoPlanError
from freshet.planner.model import describe_plan, shares_of, used_regions
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem
from freshet.planner.trees import Tree


def plan_with_most_vms(
    problem: Problem, weights: Mapping[Tree, float], *, algorithm: str, started: float
) -> Plan:
    """A plan of given trees, with as many VMs as allowed in each region that is used.

    Args:
        problem: to solve.
        weights: how much of the data takes each tree, in any unit.
        algorithm: that chose the trees.
        started: ``time.perf_counter()`` when it began.
    """
    total = sum(weights.values())
    mix = {tree: weight / total for tree, weight in weights.items() if weight > 0}
    stripes = sorted(mix.items(), key=lambda item: (-item[1], item[0]))
    if problem.stripes is not None:
        counts = whole_parts([fraction for _, fraction in stripes], problem.stripes)
        pairs = zip(stripes, counts, strict=True)
        stripes = [(tree, 1 / problem.stripes) for (tree, _), n in pairs for _ in range(n)]
    used = used_regions(problem, shares_of(problem, dict(stripes)))
    vms = np.where(used, problem.network.max_vms, 0)
    return describe_plan(problem, stripes, vms, algorithm=algorithm, started=started)


def whole_parts(fractions: list[float], parts: int) -> list[int]:
    """Whole numbers with a given sum in about given proportions (largest remainders first)."""
    exact = np.array(fractions) * parts
    counts = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: parts - int(counts.sum())]] += 1
    return [int(count) for count in counts]


def no_tree(problem: Problem, algorithm: str) -> NoPlanError:
    """The error of an algorithm that finds no tree."""
    return NoPlanError(
        f"{algorithm} finds no tree from {problem.source} to all destinations; a link that it "
        "needs is missing: give the link a bandwidth, or use the algorithm 'optimal'"
    )
