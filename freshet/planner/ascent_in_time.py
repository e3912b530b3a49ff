"""A weight that no Steiner tree in time is below, for any number of terminals.

Wong's dual ascent ("A dual ascent approach for Steiner tree problems on a directed graph",
Mathematical Programming 28, 1984), where paths must be in time: the edges that have paid all of
their weight lead to a terminal from some nodes with some least delay. A path in time that has not
paid comes, by some edge, from where that delay is too long to where it is short enough. All edges
that might be this one pay; they are a cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from freshet.planner.problem import Floats
from freshet.planner.shortest_paths import all_shortest_paths
from freshet.planner.steiner_in_time import ROUNDING


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths that count.

    Args:
        delays: of edges [n, n], not negative; infinite where there is none.
        early: least delay from the root [n].
        limit: delay of a path, finite.
        root: where trees begin.
        tails: terminals that they reach, each with the delay that counts for it behind its path.
    """

    delays: Floats
    early: Floats
    limit: float
    root: int
    tails: Mapping[int, float]

    @classmethod
    def within(cls, delays: Floats, limit: float, root: int, tails: Mapping[int, float]) -> Paths:
        """Paths of at most so much delay, tails included."""
        proper = delays.copy()
        np.fill_diagonal(proper, np.inf)
        return cls(proper, all_shortest_paths(proper)[0][root], limit, root, tails)

    @classmethod
    def any(cls, nodes: int, root: int, terminals: Sequence[int]) -> Paths:
        """All paths: they take no time."""
        nothing = np.zeros((nodes, nodes))
        np.fill_diagonal(nothing, np.inf)
        return cls(nothing, np.zeros(nodes), 1.0, root, dict.fromkeys(terminals, 0.0))

    @property
    def terminals(self) -> tuple[int, ...]:
        """Where they lead to."""
        return tuple(self.tails)


@dataclass(frozen=True, eq=False)
class Ascent:
    """What the ascent leads to."""

    bound: float
    """No tree is lighter; infinite if there is none."""

    paid: npt.NDArray[np.bool_]
    """Which edges have paid all of their weight [n, n]; they hold a tree."""

    cuts: list[npt.NDArray[np.int64]]
    """Edges, as positions in a raveled [n, n], of which a tree must have one in each cut."""

    left: Floats
    """Weight of edges that is not paid [n, n]."""


def ascend(weights: Floats, paths: Paths) -> Ascent:
    """The dual ascent.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.
        paths: that lead to a terminal.
    """
    left, bound, cuts = weights.copy(), 0.0, list[npt.NDArray[np.int64]]()
    np.fill_diagonal(left, np.inf)
    latest = paths.limit * (1 + ROUNDING)
    until = paths.early[:, None] + paths.delays
    reach = {
        terminal: _start(len(weights), terminal, tail) for terminal, tail in paths.tails.items()
    }
    sizes, flat = dict.fromkeys(paths.terminals, 1), left.ravel()
    free = np.flatnonzero(flat <= 0.0)
    while reach:
        terminal = min(reach, key=lambda t: (sizes[t], t))
        here = reach[terminal] = _grown(reach[terminal], free, paths.delays)
        if here[paths.root] <= latest:
            del reach[terminal]
            continue
        cut = (until + here <= latest) & (here[:, None] > paths.delays + here)
        edges = np.flatnonzero(cut)
        step = float(flat[edges].min(initial=np.inf))
        if not np.isfinite(step):
            return Ascent(np.inf, left <= 0.0, cuts, left)
        bound += step
        flat[edges] -= step
        free = np.concatenate([free, edges[flat[edges] <= 0.0]])
        cuts.append(edges)
        sizes[terminal] = len(edges)
    return Ascent(bound, left <= 0.0, cuts, left)


def _start(n: int, terminal: int, tail: float) -> Floats:
    reach = np.full(n, np.inf)
    reach[terminal] = tail
    return reach


def _grown(reach: Floats, free: npt.NDArray[np.int64], delays: Floats) -> Floats:
    """Least delays to the terminal over edges that have paid."""
    if not len(free):
        return reach
    first, last = np.divmod(free, len(delays))
    steps = delays.ravel()[free]
    while True:
        longer = reach.copy()
        np.minimum.at(longer, first, steps + reach[last])
        if not (longer < reach).any():
            return reach
        reach = longer
