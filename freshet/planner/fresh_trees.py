"""Light trees that bring every chunk of a stream within a freshness bound."""

from __future__ import annotations

import numpy as np

from freshet.planner.delays import Delays
from freshet.planner.optimal.pricing import light_trees
from freshet.planner.problem import Floats, Problem
from freshet.planner.steiner_bound import leaf_order
from freshet.planner.steiner_in_time import (
    MAX_EXACT_TERMINALS,
    links_in_time,
    tree_in_time,
)
from freshet.planner.trees import Tree, arborescence_in

_SLACK = 1e-9

_LEVELS = (30, 150)
"""That delays are rounded to: few are fast, and often as good as many."""

_MAX_WORK = 3e8
"""Links times levels times sets of terminals that one search goes through, some seconds' worth.

A limit of work and not of time, so that the same input gives the same plan.
"""

_MAX_WORK_AT_ONCE = 1.2e7
"""The same for one set of prices: where many links are in time, few levels must do."""


class FreshTrees:
    """The search for light trees in time: a pricing for one column generation.

    Calls find less once they have done much work; a search begins with an object of its own.

    Args:
        problem: whose destinations are to be reached.
        delays: of hops.
        freshness_s: seconds until every destination has a chunk, at most; None for no limit.
    """

    def __init__(self, problem: Problem, delays: Delays, freshness_s: float | None) -> None:
        self._root, self._terminals = problem.root, problem.terminals
        self._delays, self._limit = delays, freshness_s
        self._work_left = _MAX_WORK
        links = map(tuple, np.argwhere(np.isfinite(delays.hops)).tolist())
        self.freshest = arborescence_in(links, delays.hops, self._root, self._terminals)
        """The tree of least delays; None if a destination can't be reached."""

    def allows(self, tree: Tree) -> bool:
        """Whether the tree is in time."""
        return self._limit is None or self._delays.slowest(tree, self._root) <= self._limit * (
            1 + _SLACK
        )

    def __call__(self, weights: Floats) -> tuple[list[Tree], float]:
        """Light trees that are in time, lightest first, and a weight that none of them is below."""
        trees, bound = light_trees(weights, self._root, self._terminals)
        if self._limit is None or not trees or self.allows(trees[0]):
            return [tree for tree in trees if self.allows(tree)], bound
        more, bound = self._restricted(weights, self._limit, trees[0])
        candidates = dict.fromkeys([*trees, *more, *([self.freshest] if self.freshest else [])])
        allowed = {tree: _weight(weights, tree) for tree in candidates if self.allows(tree)}
        finite = [tree for tree, weight in allowed.items() if np.isfinite(weight)]
        return sorted(finite, key=lambda tree: (allowed[tree], tree)), bound

    def _restricted(self, weights: Floats, limit: float, late: Tree) -> tuple[list[Tree], float]:
        """Trees for the time limit, of which some may be late, and a bound."""
        hops, root = self._delays.hops, self._root
        weights = links_in_time(weights, hops, limit, root, self._terminals)
        trees, bound = light_trees(weights, root, self._terminals)
        if not trees or self.allows(trees[0]):
            return trees, bound
        order = leaf_order(late, root, self._terminals)
        done = 0
        for levels in _LEVELS:
            if not self._afford(weights, levels):
                break
            tree, weight = tree_in_time(weights, hops, limit, root, order, levels, rounded_up=False)
            if len(order) <= MAX_EXACT_TERMINALS:
                bound = max(bound, weight)
            if not tree or self.allows(tree):
                return [*trees, *([tree] if tree else [])], bound
            done = levels
        if done:
            tree, _ = tree_in_time(weights, hops, limit, root, order, done, rounded_up=True)
            trees = [*trees, *([tree] if tree else [])]
        return trees, bound

    def _afford(self, weights: Floats, levels: int) -> bool:
        sets = 2 ** min(len(self._terminals), MAX_EXACT_TERMINALS)
        work = float(np.isfinite(weights).sum()) * levels * sets
        if work > min(self._work_left, _MAX_WORK_AT_ONCE):
            return False
        self._work_left -= work
        return True


def _weight(weights: Floats, tree: Tree) -> float:
    return float(sum(weights[u, v] for u, v in tree))
