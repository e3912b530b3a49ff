"""Directed spanning trees of least weight (Edmonds, "Optimum branchings", 1967)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshet.planner.problem import Floats
from freshet.planner.trees import Edge, Tree


def lightest_spanning_tree(weights: Floats, root: int, nodes: Sequence[int]) -> Tree | None:
    """The lightest tree from the root over given nodes.

    Args:
        weights: of edges [n, n]; infinite where there is none.
        root: where the tree begins.
        nodes: that it spans, with or without the root.

    Returns:
        The tree; None if a node can't be reached.
    """
    spanned = sorted({root, *nodes})
    local = weights[np.ix_(spanned, spanned)].copy()
    parents = _edmonds(local, spanned.index(root))
    if parents is None:
        return None
    return tuple(sorted((spanned[u], spanned[v]) for u, v in parents))


def _edmonds(weights: Floats, root: int) -> list[Edge] | None:
    n = len(weights)
    weights = weights.copy()
    np.fill_diagonal(weights, np.inf)
    weights[:, root] = np.inf
    if n == 1:
        return []
    parent = weights.argmin(axis=0)
    others = [v for v in range(n) if v != root]
    if not np.isfinite(weights[parent[others], others]).all():
        return None
    cycle = _cycle(parent, root)
    if cycle is None:
        return [(int(parent[v]), v) for v in others]
    return _expand(weights, root, parent, cycle)


def _cycle(parent: np.ndarray, root: int) -> list[int] | None:
    done = {root}
    for first in range(len(parent)):
        path, v = list[int](), first
        while v not in done and v not in path:
            path.append(v)
            v = int(parent[v])
        if v in path:
            return path[path.index(v) :]
        done.update(path)
    return None


def _expand(weights: Floats, root: int, parent: np.ndarray, cycle: list[int]) -> list[Edge] | None:
    """Solves the graph with the cycle made one node, then opens the cycle where it is entered."""
    n = len(weights)
    outside = [v for v in range(n) if v not in cycle]
    size = len(outside)
    entering = weights[np.ix_(outside, cycle)] - weights[parent[cycle], cycle][None, :]
    leaving = weights[np.ix_(cycle, outside)]
    smaller = np.full((size + 1, size + 1), np.inf)
    smaller[:size, :size] = weights[np.ix_(outside, outside)]
    smaller[:size, size] = entering.min(axis=1)
    smaller[size, :size] = leaving.min(axis=0)
    tree = _edmonds(smaller, outside.index(root))
    if tree is None:
        return None
    edges = []
    entered = cycle[0]
    for u, v in tree:
        if v == size:
            entered = cycle[int(entering[u].argmin())]
            edges.append((outside[u], entered))
        elif u == size:
            edges.append((cycle[int(leaving[:, v].argmin())], outside[v]))
        else:
            edges.append((outside[u], outside[v]))
    return edges + [(int(parent[v]), v) for v in cycle if v != entered]
