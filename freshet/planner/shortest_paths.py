"""Shortest paths between all nodes of a small dense graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from freshet.planner.problem import Floats


def all_shortest_paths(weights: Floats) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Floyd and Warshall's algorithm, a row operation at a time.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.

    Returns:
        Distances [n, n], and the node after the first on each shortest path [n, n].
    """
    n = len(weights)
    distance = weights.copy()
    np.fill_diagonal(distance, 0.0)
    following = np.tile(np.arange(n, dtype=np.int32), (n, 1))
    for k in range(n):
        through = distance[:, k, None] + distance[k]
        shorter = through < distance
        np.copyto(distance, through, where=shorter)
        np.copyto(following, following[:, k, None], where=shorter)
    return distance, following


def path_edges(
    following: npt.NDArray[np.int32], first: int, last: int
) -> Iterator[tuple[int, int]]:
    """Edges of the shortest path between two nodes."""
    node = first
    while node != last:
        step = int(following[node, last])
        yield node, step
        node = step
