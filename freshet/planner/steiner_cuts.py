"""A better bound for Steiner trees than the dual ascent's: a linear program over cuts.

A tree has an edge of each cut that separates the root from a terminal. The least weight of edges,
of which there may be fractions, that meet all known cuts is a bound. The cuts are those of a dual
ascent (``ascent_in_time``) under the weights that the program leaves unpaid; what the ascent adds
counts as well. Edges whose unpaid weight shows that no tree with them is lighter than a known one
are left out (Polzin and Vahdati Daneshmand, "Improved algorithms for the Steiner problem in
networks", Discrete Applied Mathematics 112, 2001), so that the program is small.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from freshet.planner.ascent_in_time import Ascent, Paths, ascend
from freshet.planner.problem import Floats
from freshet.planner.shortest_paths import all_shortest_paths

Cut = npt.NDArray[np.int64]

_ROUNDS = 12
_MAX_ENTRIES = 40_000
"""Of one program: cuts times their edges. A limit of work and not of time."""

_MAX_ENTRIES_IN_ALL = 1_000_000
"""Of all programs of one object, some seconds' worth."""

_MAX_KEPT = 400
"""Cuts of earlier calls that the next one begins with."""


class CutProgram:
    """The bound for one root and its terminals; calls learn from earlier ones.

    Args:
        paths: that lead to a terminal.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._kept: dict[bytes, Cut] = {}
        self._entries_left = _MAX_ENTRIES_IN_ALL

    def bound(self, weights: Floats, ascent: Ascent, lightest: float) -> Ascent:
        """Raises the bound of an ascent.

        Args:
            weights: of edges [n, n], not negative; infinite where there is none.
            ascent: under these weights.
            lightest: weight of the lightest tree that is known; the bound is not raised further.

        Returns:
            The bound, and the edges that are paid for in the end.
        """
        cuts, paid, latest, best = dict(self._kept), 0.0, ascent, ascent
        for _ in range(_ROUNDS):
            weights = self._without_heavy(weights, paid + latest.bound, latest, lightest)
            known = len(cuts)
            cuts.update((cut.tobytes(), cut) for cut in latest.cuts)
            rows = self._rows(weights, list(cuts.values()))
            if (len(cuts) == known and latest is not ascent) or rows is None:
                break
            paid, left = self._solved(weights, rows)
            latest = ascend(left, self._paths)
            if paid + latest.bound > best.bound:
                best = Ascent(paid + latest.bound, latest.paid, [], latest.left)
            if best.bound >= lightest:
                break
        self._kept = dict(list(cuts.items())[-_MAX_KEPT:])
        return Ascent(min(best.bound, lightest), best.paid, [], best.left)

    def _without_heavy(
        self, weights: Floats, bound: float, ascent: Ascent, lightest: float
    ) -> Floats:
        """The weights, infinite where an edge makes all trees heavier than one that is known."""
        paths, left = self._paths, np.where(np.isfinite(weights), ascent.left, np.inf)
        distance, _ = all_shortest_paths(left)
        onward = distance[:, list(paths.terminals)].min(axis=1)
        least = bound + distance[paths.root][:, None] + left + onward[None, :]
        return np.where(least <= lightest, weights, np.inf)

    def _rows(self, weights: Floats, cuts: list[Cut]) -> list[Cut] | None:
        """The cuts' edges that are left; None if they are too many, or a cut has none."""
        there = np.isfinite(weights).ravel()
        rows = {row.tobytes(): row for row in (cut[there[cut]] for cut in cuts)}
        entries = sum(len(row) for row in rows.values())
        if entries > min(_MAX_ENTRIES, self._entries_left):
            return None
        self._entries_left -= entries
        return list(rows.values()) if rows and all(len(row) for row in rows.values()) else None

    def _solved(self, weights: Floats, rows: list[Cut]) -> tuple[float, Floats]:
        """What the cuts pay for, and the weights that are left, none negative."""
        edges, columns = np.unique(np.concatenate(rows), return_inverse=True)
        starts = np.cumsum([0, *(len(row) for row in rows)])
        matrix = csr_array((-np.ones(len(columns)), columns, starts), (len(rows), len(edges)))
        costs = weights.ravel()[edges]
        scale = float(costs.max()) or 1.0
        found = linprog(costs / scale, matrix, -np.ones(len(rows)), method="highs-ds")
        left = weights.copy()
        if found.status != 0:
            return 0.0, left
        flat, prices = left.ravel(), np.maximum(0.0, -found.ineqlin.marginals) * scale
        for i in np.flatnonzero(prices).tolist():
            flat[rows[i]] -= prices[i]
        paid = float(prices.sum())
        # No tree has an edge twice, so that what was paid too much is paid once.
        paid += float(np.minimum(flat, 0.0).sum())
        np.maximum(left, 0.0, out=left)
        return paid, left
