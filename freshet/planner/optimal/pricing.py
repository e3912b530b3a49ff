"""Light trees under given weights: exact for few destinations, with a bound for many."""

from __future__ import annotations

from collections.abc import Sequence

from freshet.planner.optimal.column_generation import Pricing
from freshet.planner.problem import Floats, Problem
from freshet.planner.steiner import MAX_EXACT_TERMINALS, lightest_tree
from freshet.planner.steiner_bound import bounded_trees
from freshet.planner.trees import Tree


def light_trees(weights: Floats, root: int, terminals: Sequence[int]) -> tuple[list[Tree], float]:
    """Light trees, and a weight that no tree is below.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.
        root: where trees begin.
        terminals: that they reach.

    Returns:
        Trees, lightest first, none if a terminal can't be reached; then the weight is infinite.
    """
    if len(terminals) > MAX_EXACT_TERMINALS:
        return bounded_trees(weights, root, terminals)
    tree, weight = lightest_tree(weights, root, terminals)
    return ([tree] if tree else []), weight


def pricing_for(problem: Problem) -> Pricing:
    """The search for light trees of one problem."""
    return lambda weights: light_trees(weights, problem.root, problem.terminals)
