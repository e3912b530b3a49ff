"""A better bound for Steiner trees than the dual ascent's: a linear program over cuts.

A tree has an edge of each cut that separates the root from a terminal. The least weight of edges,
of which there may be fractions, that meet all known cuts is a bound. The cuts are those of a dual
ascent (``ascent_in_time``) under the weights that the program leaves unpaid; what the ascent adds
counts as well. Cuts hold for all weights, so that a search may keep them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from ortools.linear_solver import pywraplp

from freshet.planner.ascent_in_time import Ascent, Paths, ascend
from freshet.planner.problem import Floats

_ROUNDS = 25
_MAX_CUTS = 3000
_PROGRESS = 1e-6
"""Relative; less than this ends the rounds."""


class CutProgram:
    """The bound for one root and its terminals.

    Args:
        paths: that lead to a terminal.
        links: whether there may be an edge [n, n].
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._clear()

    def _clear(self) -> None:
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        self._solver.Objective().SetMinimization()
        self._edges: dict[int, pywraplp.Variable] = {}
        self._cuts: dict[bytes, tuple[npt.NDArray[np.int64], pywraplp.Constraint]] = {}

    def bound(self, weights: Floats, ascent: Ascent, enough: float) -> Ascent:
        """Raises the bound of an ascent.

        Args:
            weights: of edges [n, n], not negative; infinite where there is none.
            ascent: under these weights.
            enough: bound that ends the search.

        Returns:
            The bound, and the edges that are paid for in the end.
        """
        flat = weights.ravel()
        if len(self._cuts) > _MAX_CUTS:
            self._clear()
        scale = ascent.bound or 1.0
        for edge, y in self._edges.items():
            self._price(y, float(flat[edge]), scale)
        best, latest = ascent, ascent
        for _ in range(_ROUNDS):
            if not self._add(latest.cuts, flat, scale) and latest is not ascent:
                break
            if self._solver.Solve() != pywraplp.Solver.OPTIMAL:
                break
            paid, left = self._unpaid(flat, scale)
            latest = ascend(left.reshape(weights.shape), self._paths)
            if paid + latest.bound > best.bound:
                best = Ascent(paid + latest.bound, latest.paid, [])
            if best.bound >= enough:
                break
        return best

    def _price(self, y: pywraplp.Variable, weight: float, scale: float) -> None:
        there = bool(np.isfinite(weight))
        self._solver.Objective().SetCoefficient(y, weight / scale if there else 0.0)
        y.SetUb(self._solver.infinity() if there else 0.0)

    def _add(self, cuts: list[npt.NDArray[np.int64]], flat: Floats, scale: float) -> int:
        added = 0
        for cut in cuts:
            key = cut.tobytes()
            if key in self._cuts:
                continue
            row = self._solver.Constraint(1.0, self._solver.infinity())
            for edge in cut.tolist():
                if edge not in self._edges:
                    y = self._edges[edge] = self._solver.NumVar(0.0, self._solver.infinity(), "")
                    self._price(y, float(flat[edge]), scale)
                row.SetCoefficient(self._edges[edge], 1.0)
            self._cuts[key] = (cut, row)
            added += 1
        return added

    def _unpaid(self, flat: Floats, scale: float) -> tuple[float, Floats]:
        """What all cuts pay for, and the weights that are left, none negative."""
        left, paid = flat.copy(), 0.0
        for cut, row in self._cuts.values():
            price = max(0.0, row.dual_value()) * scale
            if price > 0:
                paid += price
                left[cut] -= price
        # No tree has an edge twice, so that what was paid too much is paid once.
        paid += float(np.minimum(left, 0.0).sum())
        return paid, np.maximum(left, 0.0)
