"""Directed Steiner trees of least weight, by dynamic programming over sets of terminals.

Dreyfus and Wagner, "The Steiner problem in graphs", Networks 1, 1971, for directed graphs: the
lightest tree from node v to a set X of terminals is a path from v to a node u, where the tree to X
is made of a tree to Y and one to X without Y. Over all sets it is exact, and its time grows as
3^k n + 2^k n^2 for k terminals and n nodes. Over only the runs of terminals that are neighbours in
some order it takes k^3 n + k^2 n^2, and gives the best tree that has this order of its leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from freshet.planner.problem import Floats
from freshet.planner.shortest_paths import all_shortest_paths, path_edges
from freshet.planner.trees import Edge, Tree, arborescence_in

MAX_EXACT_TERMINALS = 10
"""Up to so many the exact program takes some tens of milliseconds."""

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """Sets of one number of terminals, with the ways to split them in two."""

    sets: Indexes
    """Their numbers [s]."""

    firsts: Indexes
    """Number of one part [s, splits]."""

    rests: Indexes
    """Number of the other part [s, splits]."""


@dataclass(frozen=True)
class Family:
    """The sets that the program goes through."""

    count: int
    singles: list[int]
    """Number of each terminal's own set [k]."""

    levels: list[Level]
    """Small sets first; the last level holds only the set of all terminals."""

    @property
    def whole(self) -> int:
        """The number of the set of all terminals."""
        return int(self.levels[-1].sets[-1]) if self.levels else self.singles[0]


@cache
def all_sets(terminals: int) -> Family:
    """All sets, each numbered by its bit mask."""
    levels = []
    for size in range(2, terminals + 1):
        masks = [sum(1 << i for i in chosen) for chosen in combinations(range(terminals), size)]
        sets, firsts = np.array(masks), np.array([_halves(mask) for mask in masks])
        levels.append(Level(sets, firsts, sets[:, None] ^ firsts))
    return Family(1 << terminals, [1 << i for i in range(terminals)], levels)


def _halves(mask: int) -> list[int]:
    """Proper subsets that hold the lowest terminal: each split once."""
    lowest, halves = mask & -mask, []
    rest = part = mask ^ lowest
    while part:
        part = (part - 1) & rest
        halves.append(part | lowest)
    return halves


@cache
def runs(terminals: int) -> Family:
    """Sets of neighbours: from a first terminal up to, without, an end."""

    def number(first: int, end: int) -> int:
        return first * (terminals + 1) + end

    levels = []
    for size in range(2, terminals + 1):
        firsts = range(terminals - size + 1)
        levels.append(
            Level(
                np.array([number(a, a + size) for a in firsts]),
                np.array([[number(a, a + cut) for cut in range(1, size)] for a in firsts]),
                np.array([[number(a + cut, a + size) for cut in range(1, size)] for a in firsts]),
            )
        )
    singles = [number(a, a + 1) for a in range(terminals)]
    return Family(terminals * (terminals + 1) + 1, singles, levels)


class ShortestPaths:
    """Shortest paths under given weights, which several searches may share."""

    def __init__(self, weights: Floats) -> None:
        self.weights = weights
        self.distance, self.following = all_shortest_paths(weights)

    def reach(self, root: int, terminals: Sequence[int]) -> bool:
        """Whether paths lead from the root to all terminals."""
        return bool(np.isfinite(self.distance[root, list(terminals)]).all())


def lightest_tree(weights: Floats, root: int, terminals: Sequence[int]) -> tuple[Tree, float]:
    """The exact lightest tree.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.
        root: where the tree begins.
        terminals: that it must reach, not the root, at most about ``MAX_EXACT_TERMINALS``.

    Returns:
        The tree, and a weight that no tree is below. Infinite, with no edges, if a terminal can't
        be reached.
    """
    paths = ShortestPaths(weights)
    if not paths.reach(root, terminals):
        return (), float("inf")
    return _solve(paths, root, terminals, all_sets(len(terminals)))


def lightest_in_order(paths: ShortestPaths, root: int, terminals: Sequence[int]) -> Tree:
    """The lightest tree with the terminals in this order; all of them must be reachable."""
    return _solve(paths, root, terminals, runs(len(terminals)))[0]


def _solve(
    paths: ShortestPaths, root: int, terminals: Sequence[int], family: Family
) -> tuple[Tree, float]:
    n = len(paths.distance)
    reach = np.empty((family.count, n))  # weight of the tree from a node to a set
    joint = np.empty((family.count, n))  # the same, where the node is where the tree splits
    for single, terminal in zip(family.singles, terminals, strict=True):
        reach[single] = paths.distance[:, terminal]
    for level in family.levels:
        _join(level, reach, joint)
        _extend(level, paths.distance, reach, joint)
    edges = _edges(paths, root, terminals, family, reach, joint)
    tree = arborescence_in(edges, paths.weights, root, terminals)
    assert tree is not None, "a tree that was found must reach all terminals"
    return tree, float(reach[family.whole, root])


def _join(level: Level, reach: Floats, joint: Floats) -> None:
    best = np.full((len(level.sets), reach.shape[1]), np.inf)
    for firsts, rests in zip(level.firsts.T, level.rests.T, strict=True):
        np.minimum(best, reach[firsts] + reach[rests], out=best)
    joint[level.sets] = best


def _extend(level: Level, distance: Floats, reach: Floats, joint: Floats) -> None:
    best, here = np.full((len(level.sets), reach.shape[1]), np.inf), joint[level.sets]
    for node, column in enumerate(distance.T):
        np.minimum(best, column + here[:, node, None], out=best)
    reach[level.sets] = best


def _edges(
    paths: ShortestPaths,
    root: int,
    terminals: Sequence[int],
    family: Family,
    reach: Floats,
    joint: Floats,
) -> set[Edge]:
    """The edges of the tree: its choices are made again, which is cheaper than noting all."""
    terminal_of = dict(zip(family.singles, terminals, strict=True))
    row_of = {int(s): (level, i) for level in family.levels for i, s in enumerate(level.sets)}
    edges: set[Edge] = set()
    pending = [(family.whole, root)]
    while pending:
        number, node = pending.pop()
        if number in terminal_of:
            edges.update(path_edges(paths.following, node, terminal_of[number]))
            continue
        split = int((paths.distance[node] + joint[number]).argmin())
        edges.update(path_edges(paths.following, node, split))
        level, i = row_of[number]
        firsts, rests = level.firsts[i], level.rests[i]
        best = int((reach[firsts, split] + reach[rests, split]).argmin())
        pending += [(int(firsts[best]), split), (int(rests[best]), split)]
    return edges
