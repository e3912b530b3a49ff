"""Directed Steiner trees of least weight whose paths from the root all take at most a given delay.

The dynamic program of ``steiner`` with one more dimension: delays are cut into levels, and a tree
from a node to a set of terminals may spend so many levels (Joksch, "The shortest route problem with
constraints", 1966, does so for paths). With delays rounded down it leaves out no tree that is in
time, so that its weight is a bound; rounded up, it finds trees that are in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from freshet.planner.problem import Floats
from freshet.planner.shortest_paths import all_shortest_paths
from freshet.planner.steiner import Family, Level, all_sets, runs
from freshet.planner.trees import Edge, Tree, arborescence_in

MAX_EXACT_TERMINALS = 7
"""Beyond, terminals are reached in a given order only; the time grows as 3^k."""

_ROUNDING = 1e-9
_HOP_WEIGHT = 1e-9
"""Of the heaviest edge; makes walks without weight and delay end."""

Indexes = npt.NDArray[np.int64]


def links_in_time(
    weights: Floats, delays: Floats, limit: float, root: int, terminals: Sequence[int]
) -> Floats:
    """Weights with those links infinite that no path from the root to a terminal has in time."""
    usable = np.where(np.isfinite(weights), delays, np.inf)
    np.fill_diagonal(usable, np.inf)
    distance, _ = all_shortest_paths(usable)
    onward = distance[:, list(terminals)].min(axis=1)
    fits = distance[root][:, None] + usable + onward[None, :] <= limit * (1 + _ROUNDING)
    return np.where(fits, weights, np.inf)


def tree_in_time(
    weights: Floats,
    delays: Floats,
    limit: float,
    root: int,
    terminals: Sequence[int],
    levels: int,
    *,
    rounded_up: bool,
) -> tuple[Tree, float]:
    """The lightest tree in time, up to the rounding of delays.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.
        delays: of edges [n, n], more than 0.
        limit: delay of a path, more than 0.
        root: where the tree begins.
        terminals: that it must reach, in an order that the tree keeps if there are more than
            ``MAX_EXACT_TERMINALS``.
        levels: that delays are rounded to.
        rounded_up: whether the tree must be in time; else it may be a little late, and no tree in
            time (that keeps the order) is lighter than the weight.

    Returns:
        The tree and its weight; none and infinite if no tree was found.
    """
    pruned = links_in_time(weights, delays, limit, root, terminals)
    edges = _Edges.of(pruned, delays, limit, levels, rounded_up)
    if edges is None:
        return (), float("inf")
    few = len(terminals) <= MAX_EXACT_TERMINALS
    family = all_sets(len(terminals)) if few else runs(len(terminals))
    tables = _Tables(edges, family, len(weights), terminals, levels)
    weight = float(tables.reach[family.whole, levels, root])
    if not np.isfinite(weight):
        return (), weight
    tree = arborescence_in(tables.edges_from(root), delays, root, terminals)
    assert tree is not None, "a tree that was found must reach all terminals"
    return tree, max(0.0, weight - edges.hop_weight * len(weights))


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges [e], by their first node, with weights and delays in levels."""

    first: Indexes
    last: Indexes
    weight: Floats
    levels: Indexes
    hop_weight: float

    @classmethod
    def of(
        cls, weights: Floats, delays: Floats, limit: float, most: int, rounded_up: bool
    ) -> _Edges | None:
        """The edges that take at most all levels; None if there are none."""
        with np.errstate(invalid="ignore"):
            exact = np.where(np.isfinite(weights), delays, np.inf) * (most / limit)
        rounded = np.ceil(exact - _ROUNDING) if rounded_up else np.floor(exact + _ROUNDING)
        first, last = np.nonzero(rounded <= most)
        if not len(first):
            return None
        chosen = weights[first, last]
        hop_weight = _HOP_WEIGHT * (float(chosen.max()) or 1.0)
        levels = rounded[first, last].astype(np.int64)
        return cls(first, last, chosen + hop_weight, levels, hop_weight)


class _Tables:
    """Weights of the lightest trees [sets, levels + 1, n] from a node to a set, within levels."""

    def __init__(
        self, edges: _Edges, family: Family, n: int, terminals: Sequence[int], levels: int
    ) -> None:
        self._edges, self._family, self._levels = edges, family, levels
        self._starts, self._of_start = np.unique(edges.first, return_index=True)
        self._free = edges.levels == 0
        self._terminal_of = dict(zip(family.singles, terminals, strict=True))
        self.reach = np.full((family.count, levels + 1, n), np.inf)
        self._joint = np.full((family.count, levels + 1, n), np.inf)
        for single, terminal in self._terminal_of.items():
            self._joint[single, :, terminal] = 0.0
        self._extend(np.array(family.singles))
        for level in family.levels:
            self._join(level)
            self._extend(level.sets)

    def _join(self, level: Level) -> None:
        best = np.full((len(level.sets), *self.reach.shape[1:]), np.inf)
        for firsts, rests in zip(level.firsts.T, level.rests.T, strict=True):
            np.minimum(best, self.reach[firsts] + self.reach[rests], out=best)
        self._joint[level.sets] = best

    def _extend(self, sets: Indexes) -> None:
        """Paths lead to where trees split, a level at a time."""
        edges, reach = self._edges, self._joint[sets]
        for spent in range(self._levels + 1):
            left = spent - edges.levels
            steps = reach[:, np.maximum(left, 0), edges.last] + edges.weight
            steps[:, (left < 0) | self._free] = np.inf
            self._keep_lighter(reach, spent, steps)
            while self._free.any():
                steps = np.where(self._free, reach[:, spent, edges.last] + edges.weight, np.inf)
                if not self._keep_lighter(reach, spent, steps):
                    break
        self.reach[sets] = reach

    def _keep_lighter(self, reach: Floats, spent: int, steps: Floats) -> bool:
        best = np.minimum.reduceat(steps, self._of_start, axis=1)
        known = reach[:, spent, self._starts]
        reach[:, spent, self._starts] = np.minimum(known, best)
        return bool((best < known).any())

    def edges_from(self, root: int) -> set[Edge]:
        """The edges of the lightest tree to all terminals: its choices are made again."""
        rows = {
            int(s): (level, i) for level in self._family.levels for i, s in enumerate(level.sets)
        }
        found: set[Edge] = set()
        pending = [(self._family.whole, root, self._levels)]
        while pending:
            number, node, left = pending.pop()
            if self._joint[number, left, node] > self.reach[number, left, node]:
                following, left = self._step(number, node, left)
                found.add((node, following))
                pending.append((number, following, left))
            elif number not in self._terminal_of:
                level, i = rows[number]
                firsts, rests = level.firsts[i], level.rests[i]
                reach = self.reach[:, left, node]
                best = int((reach[firsts] + reach[rests]).argmin())
                pending += [(int(firsts[best]), node, left), (int(rests[best]), node, left)]
        return found

    def _step(self, number: int, node: int, left: int) -> tuple[int, int]:
        edges = self._edges
        leaving = np.flatnonzero((edges.first == node) & (edges.levels <= left))
        rest = left - edges.levels[leaving]
        weights = edges.weight[leaving] + self.reach[number, rest, edges.last[leaving]]
        best = int(weights.argmin())
        return int(edges.last[leaving[best]]), int(rest[best])
