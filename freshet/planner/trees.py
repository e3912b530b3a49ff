"""Trees from the source to all destinations, as sorted tuples of (from, to) indexes."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

from freshet.planner.problem import Floats

Edge = tuple[int, int]
Tree = tuple[Edge, ...]


def arborescence_in(
    edges: Iterable[Edge], weights: Floats, root: int, terminals: Sequence[int]
) -> Tree | None:
    """A tree inside a set of edges: the shortest paths from the root, without idle branches.

    Args:
        edges: to choose from; they may hold cycles and idle branches.
        weights: of edges [n, n], not negative.
        root: where the tree begins.
        terminals: nodes that it must reach.

    Returns:
        The tree, or None if a terminal can't be reached.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for u, v in sorted(set(edges)):
        children[u].append(v)
    parent: dict[int, int] = {}
    queue: list[tuple[float, int, int, int]] = [(0.0, 0, root, root)]
    while queue:
        distance, hops, node, before = heapq.heappop(queue)
        if node in parent:
            continue
        parent[node] = before
        for child in children[node]:
            step = (distance + float(weights[node, child]), hops + 1, child, node)
            heapq.heappush(queue, step)
    if any(terminal not in parent for terminal in terminals):
        return None
    return tree_of_parents(parent, root, terminals)


def tree_of_parents(parent: dict[int, int], root: int, terminals: Sequence[int]) -> Tree:
    """The tree of the paths that lead to the terminals."""
    kept: set[Edge] = set()
    for terminal in terminals:
        node = terminal
        while node != root and (parent[node], node) not in kept:
            kept.add((parent[node], node))
            node = parent[node]
    return tuple(sorted(kept))


def from_root(tree: Iterable[Edge], root: int) -> list[Edge]:
    """The edges in an order in which each comes after the one that leads to its beginning."""
    children: dict[int, list[int]] = defaultdict(list)
    for u, v in sorted(tree):
        children[u].append(v)
    ordered, level = list[Edge](), [root]
    while level:
        edges = [(u, v) for u in level for v in children[u]]
        ordered.extend(edges)
        level = [v for _, v in edges]
    return ordered
