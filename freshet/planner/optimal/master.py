"""The master program: how much of the data takes each known tree, and how many VMs that needs.

With x_k the fraction of tree k, z its sum over the trees that use a link, m_v the VM-seconds of a
region and t the time (all times in units of ``unit_s``):

    minimise    sum_k x_k * egress_k + sum_v m_v * price_v              (eq. 1 and 2)
    subject to  sum_k x_k = 1
                z_uv              <= m_u * link_uv                      (eq. 3 and 4)
                sum_u z_vu        <= m_v * out_v                        (eq. 5 and 6)
                sum_u z_uv        <= m_v * in_v                         (eq. 7 and 8)
                low_v * t <= m_v <= high_v * t                          (N <= LIMIT)

A fixed deadline is t = 1. VM-seconds instead of VMs keep the program linear when t is free. It is
a relaxation in that m_v / t need not be an integer; branching on low and high makes it one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from ortools.linear_solver import pywraplp

from freshet.errors import FreshetError
from freshet.planner.optimal.capacities import Capacities
from freshet.planner.problem import Floats, Ints
from freshet.planner.trees import Edge, Tree

_ABSENT_FACTORS = (10.0, 300.0, 1e4)
"""Prices of sending nothing, over the worst plan's; keep the program feasible while trees lack.

The last bit of the data can be dearer than any average, so the price rises where it is paid.
"""

_Parameters = pywraplp.MPSolverParameters
_SECOND_TRIES = (
    (_Parameters.PRESOLVE_ON, _Parameters.PRIMAL, 1e-7),
    (_Parameters.PRESOLVE_OFF, _Parameters.PRIMAL, 1e-7),
    (_Parameters.PRESOLVE_ON, _Parameters.DUAL, 1e-7),
    (_Parameters.PRESOLVE_OFF, _Parameters.DUAL, 1e-6),
    (_Parameters.PRESOLVE_ON, _Parameters.PRIMAL, 1e-5),
)
"""How GLOP is asked again, from scratch, where rounding has spoilt its last basis."""


class UnsolvedError(FreshetError):
    """The solver fails, for rounding."""


@dataclass(frozen=True)
class Prices:
    """Prices, each per unit: of links [n, n] for all data, of VMs [n] and of time."""

    links: Floats
    vms: Floats
    time: float = 0.0


@dataclass(frozen=True)
class Duals:
    """Prices of capacity, all at least 0."""

    links: Floats
    """Of links [n, n]."""

    egress: Floats
    """Of regions [n]."""

    ingress: Floats
    """Of regions [n]."""

    def mixed_with(self, other: Duals, share: float) -> Duals:
        """These, moved towards others by a share from 0 to 1."""
        keep = 1.0 - share
        return Duals(
            keep * self.links + share * other.links,
            keep * self.egress + share * other.egress,
            keep * self.ingress + share * other.ingress,
        )


@dataclass(frozen=True)
class Solution:
    """An optimum over the trees that are known."""

    objective: float
    mix: dict[Tree, float]
    vm_time: Floats
    """m [n], in VM-units of time."""

    time: float
    """t, in units of time."""

    duals: Duals
    complete: bool
    """Whether the known trees suffice to send all data."""


@dataclass
class _Rows:
    """The constraints of a region or a link, as far as trees need them."""

    links: dict[Edge, pywraplp.Constraint] = field(default_factory=dict)
    egress: dict[int, pywraplp.Constraint] = field(default_factory=dict)
    ingress: dict[int, pywraplp.Constraint] = field(default_factory=dict)
    low: dict[int, pywraplp.Constraint] = field(default_factory=dict)
    high: dict[int, pywraplp.Constraint] = field(default_factory=dict)


class Master:
    """The linear program over the trees added so far.

    Args:
        prices: what is minimised.
        capacities: what a VM carries in a unit of time.
        low: fewest VMs [n].
        high: most VMs [n].
        time_range: least and most t.
        scale: of about the size of the objective; the solver gets prices in units of it.
    """

    def __init__(
        self,
        prices: Prices,
        capacities: Capacities,
        low: Ints,
        high: Ints,
        time_range: tuple[float, float],
        scale: float = 1.0,
    ) -> None:
        self._prices = prices
        self._scale = scale
        self._capacities = capacities
        self._low, self._high = low, high
        self._time_range = time_range
        self._rows = _Rows()
        self._columns: dict[Tree, pywraplp.Variable] = {}
        self._vm_time: dict[int, pywraplp.Variable] = {}
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        self._solver.Objective().SetMinimization()
        self._time = self._solver.NumVar(*time_range, "")
        self._solver.Objective().SetCoefficient(self._time, prices.time / scale)
        self._whole = self._solver.Constraint(1.0, 1.0)
        self._absent = self._solver.NumVar(0.0, 1.0, "")
        self._whole.SetCoefficient(self._absent, 1.0)
        worst = float(np.where(np.isfinite(prices.links), prices.links, 0.0).max()) * len(low)
        worst += time_range[1] * (prices.time + float(prices.vms @ high))
        self._absent_prices = [factor * (scale + worst) for factor in _ABSENT_FACTORS]
        self.raise_price_of_absence()
        for v in np.flatnonzero(low).tolist():
            self._region(v)

    def raise_price_of_absence(self) -> bool:
        """Makes it dearer to send less than all data; False if it is as dear as it may be."""
        if not self._absent_prices:
            return False
        price = self._absent_prices.pop(0)
        self._solver.Objective().SetCoefficient(self._absent, price / self._scale)
        return True

    def add(self, trees: Iterable[Tree]) -> int:
        """Adds trees; returns how many were new."""
        added = 0
        for tree in trees:
            if tree not in self._columns:
                self._add_column(tree)
                added += 1
        return added

    def restrict(self, capacities: Capacities, low: Ints, high: Ints) -> None:
        """Changes the range of VMs, and the capacities that follow from it."""
        self._capacities, self._low, self._high = capacities, low, high
        for v in np.flatnonzero(low).tolist():
            self._region(v)
        rows = self._rows
        for v, m in self._vm_time.items():
            rows.low[v].SetCoefficient(self._time, float(low[v]))
            rows.high[v].SetCoefficient(self._time, -float(high[v]))
            if v in rows.egress:
                rows.egress[v].SetCoefficient(m, -float(capacities.egress[v]))
            if v in rows.ingress:
                rows.ingress[v].SetCoefficient(m, -float(capacities.ingress[v]))
        for (u, v), row in rows.links.items():
            row.SetCoefficient(self._vm_time[u], -float(capacities.links[u, v]))

    def solve(self) -> Solution:
        """Solves the program.

        Raises:
            UnsolvedError: the solver fails.
        """
        status = self._solver.Solve()
        for second_try in _SECOND_TRIES:
            if status == pywraplp.Solver.OPTIMAL:
                break
            status = self._solver.Solve(_from_scratch(*second_try))
        if status != pywraplp.Solver.OPTIMAL:
            raise UnsolvedError(f"the linear program was not solved (GLOP status {status})")
        n = len(self._low)
        vm_time = np.zeros(n)
        for v, m in self._vm_time.items():
            vm_time[v] = m.solution_value()
        mix = {
            tree: x.solution_value()
            for tree, x in self._columns.items()
            if x.solution_value() > _LEAST_FRACTION
        }
        return Solution(
            objective=self._solver.Objective().Value() * self._scale,
            mix=mix,
            vm_time=vm_time,
            time=self._time.solution_value(),
            duals=self._duals(),
            complete=self._absent.solution_value() < _LEAST_FRACTION,
        )

    def unsolved(self) -> Solution:
        """What stands for a solution where the solver fails: nothing is sent."""
        n = len(self._low)
        duals = Duals(np.zeros((n, n)), np.zeros(n), np.zeros(n))
        return Solution(np.inf, {}, np.zeros(n), 1.0, duals, complete=False)

    def bound(self, duals: Duals, lightest: float) -> float:
        """What no plan can be below, given any prices of capacity (Lagrange).

        Args:
            duals: the prices.
            lightest: weight that no tree is below with ``weights(duals)``.
        """
        capacities = self._capacities
        worth = np.where(np.isfinite(capacities.links), capacities.links, 0.0) * duals.links
        rest = self._prices.vms - worth.sum(axis=1)
        rest = rest - np.where(duals.egress > 0, capacities.egress, 0.0) * duals.egress
        rest = rest - np.where(duals.ingress > 0, capacities.ingress, 0.0) * duals.ingress
        per_time = self._prices.time + float(np.minimum(self._low * rest, self._high * rest).sum())
        return lightest + min(per_time * end for end in self._time_range)

    def weights(self, duals: Duals) -> Floats:
        """Weights of links under prices of capacity [n, n]; their sum is a tree's reduced cost."""
        weights: Floats = self._prices.links + duals.links
        weights = weights + duals.egress[:, None] + duals.ingress[None, :]
        unused = self._high == 0
        weights[unused] = np.inf
        weights[:, unused] = np.inf
        weights[self._capacities.links <= 0] = np.inf
        return weights

    def _add_column(self, tree: Tree) -> None:
        x = self._solver.NumVar(0.0, self._solver.infinity(), "")
        self._columns[tree] = x
        self._whole.SetCoefficient(x, 1.0)
        cost = float(sum(self._prices.links[u, v] for u, v in tree))
        self._solver.Objective().SetCoefficient(x, cost / self._scale)
        branches: dict[int, int] = {}
        for u, v in tree:
            branches[u] = branches.get(u, 0) + 1
            self._region(u)
            self._region(v)
            self._ingress(v).SetCoefficient(x, 1.0)
            if self._capacities.may_bind[u, v]:
                self._link(u, v).SetCoefficient(x, 1.0)
        for u, count in branches.items():
            if np.isfinite(self._capacities.egress[u]):
                self._egress(u).SetCoefficient(x, float(count))

    def _region(self, v: int) -> None:
        if v in self._vm_time:
            return
        infinity = self._solver.infinity()
        m = self._vm_time[v] = self._solver.NumVar(0.0, infinity, "")
        self._solver.Objective().SetCoefficient(m, float(self._prices.vms[v]) / self._scale)
        low = self._rows.low[v] = self._solver.Constraint(-infinity, 0.0)
        low.SetCoefficient(self._time, float(self._low[v]))
        low.SetCoefficient(m, -1.0)
        high = self._rows.high[v] = self._solver.Constraint(-infinity, 0.0)
        high.SetCoefficient(self._time, -float(self._high[v]))
        high.SetCoefficient(m, 1.0)

    def _link(self, u: int, v: int) -> pywraplp.Constraint:
        rows, capacity = self._rows.links, self._capacities.links[u, v]
        return rows.get((u, v)) or rows.setdefault((u, v), self._row(u, capacity))

    def _egress(self, v: int) -> pywraplp.Constraint:
        rows, capacity = self._rows.egress, self._capacities.egress[v]
        return rows.get(v) or rows.setdefault(v, self._row(v, capacity))

    def _ingress(self, v: int) -> pywraplp.Constraint:
        rows, capacity = self._rows.ingress, self._capacities.ingress[v]
        return rows.get(v) or rows.setdefault(v, self._row(v, capacity))

    def _row(self, v: int, capacity: float) -> pywraplp.Constraint:
        row = self._solver.Constraint(-self._solver.infinity(), 0.0)
        row.SetCoefficient(self._vm_time[v], -float(capacity))
        return row

    def _duals(self) -> Duals:
        n, rows = len(self._low), self._rows
        links, egress, ingress = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        for (u, v), row in rows.links.items():
            links[u, v] = max(0.0, -row.dual_value()) * self._scale
        for v, row in rows.egress.items():
            egress[v] = max(0.0, -row.dual_value()) * self._scale
        for v, row in rows.ingress.items():
            ingress[v] = max(0.0, -row.dual_value()) * self._scale
        return Duals(links, egress, ingress)


_LEAST_FRACTION = 1e-9
"""Of the data; less is the solver's rounding."""


def _from_scratch(presolve: int, algorithm: int, tolerance: float) -> pywraplp.MPSolverParameters:
    parameters = pywraplp.MPSolverParameters()
    parameters.SetIntegerParam(parameters.INCREMENTALITY, parameters.INCREMENTALITY_OFF)
    parameters.SetIntegerParam(parameters.PRESOLVE, presolve)
    parameters.SetIntegerParam(parameters.LP_ALGORITHM, algorithm)
    parameters.SetDoubleParam(parameters.PRIMAL_TOLERANCE, tolerance)
    parameters.SetDoubleParam(parameters.DUAL_TOLERANCE, tolerance)
    return parameters
