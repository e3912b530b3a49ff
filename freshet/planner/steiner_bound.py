"""Light Steiner trees for many terminals, and a bound that no tree is below.

The trees are found by turns: the order of a tree's leaves gives the best tree with that order
(``steiner.lightest_in_order``), and so on. The bound is the dual ascent of Wong, "A dual ascent
approach for Steiner tree problems on a directed graph", Mathematical Programming 28, 1984: each
terminal's surroundings must be entered, so all edges into them pay, until they are free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from freshet.planner.problem import Floats
from freshet.planner.shortest_paths import path_edges
from freshet.planner.steiner import ShortestPaths, lightest_in_order
from freshet.planner.trees import Tree, arborescence_in

_TURNS = 3


def bounded_trees(weights: Floats, root: int, terminals: Sequence[int]) -> tuple[list[Tree], float]:
    """Light trees and a bound.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.
        root: where trees begin.
        terminals: that they reach.

    Returns:
        Trees, lightest first, none if a terminal can't be reached; then the bound is infinite.
    """
    paths = ShortestPaths(weights)
    if not paths.reach(root, terminals):
        return [], float("inf")
    bound, free = ascend(weights, root, terminals)
    found = {_nearest_first(paths, root, terminals): None}
    within = arborescence_in(map(tuple, np.argwhere(free).tolist()), weights, root, terminals)
    if within is not None:
        found[within] = None
    return _turned(paths, root, terminals, list(found)), bound


def within(
    weights: Floats, root: int, terminals: Sequence[int], chosen: np.ndarray, known: list[Tree]
) -> list[Tree]:
    """Known trees, and those that edges of a good bound hold or lead to, lightest first.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.
        root: where trees begin.
        terminals: that they reach.
        chosen: whether an edge is one of them [n, n].
        known: trees, lightest first, at least one.
    """
    edges = map(tuple, np.argwhere(chosen & np.isfinite(weights)).tolist())
    tree = arborescence_in(edges, weights, root, terminals)
    if tree is None or weight_of(weights, tree) >= weight_of(weights, known[0]) or tree in known:
        return known
    return _turned(ShortestPaths(weights), root, terminals, [tree, *known])


def _turned(
    paths: ShortestPaths, root: int, terminals: Sequence[int], known: list[Tree]
) -> list[Tree]:
    """Trees, and the best ones with the same order of leaves as the lightest, lightest first."""
    weights, found = paths.weights, dict.fromkeys(known)
    tree = min(found, key=lambda tree: (weight_of(weights, tree), tree))
    for turn in range(_TURNS):
        order = leaf_order(tree, root, terminals, backwards=turn % 2 == 1)
        tree = lightest_in_order(paths, root, order)
        found[tree] = None
    return sorted(found, key=lambda tree: (weight_of(weights, tree), tree))


def ascend(weights: Floats, root: int, terminals: Sequence[int]) -> tuple[float, np.ndarray]:
    """Wong's dual ascent.

    Returns:
        The bound, and which edges have paid all of their weight [n, n]; they hold a tree.
    """
    left = weights.copy()
    np.fill_diagonal(left, np.inf)
    n, bound = len(weights), 0.0
    inside = {t: np.arange(n) == t for t in terminals}
    while inside:
        for terminal in sorted(inside, key=lambda t: (int(inside[t].sum()), t)):
            cut = inside[terminal] = _grown(inside[terminal], left)
            if cut[root]:
                del inside[terminal]
                continue
            entering = left[np.ix_(~cut, cut)]
            step = float(entering.min())
            bound += step
            left[np.ix_(~cut, cut)] = entering - step
            break
    return bound, left <= 0.0


def leaf_order(
    tree: Tree, root: int, terminals: Sequence[int], *, backwards: bool = False
) -> list[int]:
    """The terminals in the order in which a walk along the tree comes to them."""
    children: dict[int, list[int]] = defaultdict(list)
    for u, v in sorted(tree, reverse=not backwards):
        children[u].append(v)
    wanted, order, pending = set(terminals), list[int](), [root]
    while pending:
        node = pending.pop()
        if node in wanted:
            order.append(node)
        pending.extend(children[node])
    return order


def _grown(cut: np.ndarray, left: Floats) -> np.ndarray:
    """The set with all nodes from which free edges lead into it."""
    while True:
        larger: np.ndarray = cut | (left[:, cut] <= 0.0).any(axis=1)
        if (larger == cut).all():
            return larger
        cut = larger


def _nearest_first(paths: ShortestPaths, root: int, terminals: Sequence[int]) -> Tree:
    """Joins the nearest terminal to the tree, again and again (Takahashi and Matsuyama, 1980)."""
    joined, outside, edges = [root], list(terminals), set[tuple[int, int]]()
    while outside:
        distances = paths.distance[np.ix_(joined, outside)]
        first, last = np.unravel_index(int(distances.argmin()), distances.shape)
        for u, v in path_edges(paths.following, joined[first], outside[last]):
            edges.add((u, v))
            joined.append(v)
        outside = [t for t in outside if t not in joined]
    tree = arborescence_in(edges, paths.weights, root, terminals)
    assert tree is not None, "paths to all terminals hold a tree"
    return tree


def weight_of(weights: Floats, tree: Tree) -> float:
    """The sum of a tree's edges."""
    return float(sum(weights[u, v] for u, v in tree))
