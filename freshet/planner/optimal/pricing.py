"""Light trees under given weights: exact for few destinations, with a bound for many."""

from __future__ import annotations

from collections.abc import Sequence

from freshet.planner.ascent_in_time import Paths, ascend
from freshet.planner.optimal.column_generation import Pricing
from freshet.planner.problem import Floats, Problem
from freshet.planner.steiner import MAX_EXACT_TERMINALS, lightest_tree
from freshet.planner.steiner_bound import bounded_trees, weight_of, within
from freshet.planner.steiner_cuts import CutProgram
from freshet.planner.trees import Tree

_CLOSE = 1e-7
"""Relative; a tree so near to the bound counts as the lightest."""


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
    if len(problem.terminals) > MAX_EXACT_TERMINALS:
        return ManyTerminals(len(problem.network.regions), problem.root, problem.terminals)
    return lambda weights: light_trees(weights, problem.root, problem.terminals)


class ManyTerminals:
    """Light trees for more terminals than trees are exact for: the bound is raised where it counts.

    The dual ascent is cheap, and its bound suffices as long as new trees are found. Once the
    lightest one was given before, it may be the lightest of all: a better bound tells.

    Args:
        nodes: number of them.
        root: where trees begin.
        terminals: that they reach.
    """

    def __init__(self, nodes: int, root: int, terminals: Sequence[int]) -> None:
        self._root, self._terminals = root, terminals
        self._paths = Paths.any(nodes, root, terminals)
        self._cuts = CutProgram(self._paths)
        self._seen: set[Tree] = set()

    def __call__(self, weights: Floats) -> tuple[list[Tree], float]:
        """Trees, lightest first, none if a terminal can't be reached, and a bound."""
        trees, bound = bounded_trees(weights, self._root, self._terminals)
        if trees and trees[0] in self._seen:
            lightest = weight_of(weights, trees[0])
            if bound < lightest * (1 - _CLOSE):
                ascent = ascend(weights, self._paths)
                raised = self._cuts.bound(weights, ascent, lightest * (1 - _CLOSE))
                bound = max(bound, raised.bound)
                trees = within(weights, self._root, self._terminals, raised.paid, trees)
        self._seen.update(trees)
        return trees, bound
