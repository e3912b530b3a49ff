"""The plan of given trees that is closest to another one, for at most a cost: an integer program.

With x_k the fraction of tree k, N_v the VMs of a region, and X and M those of the other plan:

    maximise    sum_k min(x_k, X_k) - sum_v |N_v - M_v| / sum_v M_v
    subject to  Cloudcast's eq. 3 to 8, and a cost (eq. 1 and 2) of at most so much
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from ortools.linear_solver import pywraplp

from freshet.planner.model import (
    TIME_TOLERANCE,
    egress_usd,
    instance_usd,
    predicted_time_s,
    shares_of,
    used_regions,
)
from freshet.planner.optimal.restricted import Choice
from freshet.planner.problem import Floats, Ints, Problem
from freshet.planner.trees import Tree

_PARAMETERS = "limits/nodes = 500\nlimits/gap = 1e-3\nrandomization/randomseedshift = 1\n"
_LEAST_FRACTION = 1e-7
_ROUNDING = 1e-6


def closest_choice(
    problem: Problem,
    trees: Sequence[Tree],
    old_mix: Mapping[Tree, float],
    old_vms: Ints,
    *,
    seconds: float,
    most_usd: float,
) -> Choice | None:
    """Chooses fractions of trees and VMs as near as possible to old ones.

    Args:
        problem: to solve.
        trees: to choose from.
        old_mix: fractions to be near to.
        old_vms: VMs to be near to [n].
        seconds: that the data may take, and VMs are billed for.
        most_usd: cost at most.

    Returns:
        The choice; None if none is found within the solver's limits.
    """
    program = _Program(problem, trees, old_vms)
    program.limit_loads(seconds)
    program.limit_cost(seconds, most_usd)
    return program.closest(old_mix, seconds, most_usd)


class _Program:
    def __init__(self, problem: Problem, trees: Sequence[Tree], old_vms: Ints) -> None:
        self._problem, self._trees, self._old = problem, trees, old_vms
        self._solver = solver = pywraplp.Solver.CreateSolver("SCIP")
        solver.SetSolverSpecificParametersAsString(_PARAMETERS)
        network, self._parts = problem.network, problem.stripes or 1
        whole = problem.stripes is not None
        self._x = [
            solver.IntVar(0, self._parts, "") if whole else solver.NumVar(0.0, 1.0, "")
            for _ in trees
        ]
        solver.Add(sum(self._x) == self._parts)
        ends = [problem.root, *problem.terminals]
        passed = {v for tree in trees for edge in tree for v in edge}
        used = sorted(passed | set(ends))
        self._vms = {v: solver.IntVar(0, int(network.max_vms[v]), "") for v in used}
        for v in ends:
            solver.Add(self._vms[v] >= int(network.min_vms[v]))

    def limit_loads(self, seconds: float) -> None:
        """Adds the capacities of links and VMs (eq. 3 to 8)."""
        network = self._problem.network
        links, egress, ingress = defaultdict(list), defaultdict(list), defaultdict(list)
        for tree, amount in zip(self._trees, self._x, strict=True):
            for u, v in tree:
                links[u, v].append(amount)
                egress[u].append(amount)
                ingress[v].append(amount)
            for v in {v for edge in tree for v in edge}:
                least = int(network.min_vms[v])
                self._solver.Add(amount * least <= self._vms[v] * self._parts)
        for (u, v), amounts in links.items():
            self._limit(amounts, u, float(network.bandwidth_bps[u, v]), seconds)
        for rates, loads in ((network.egress_bps, egress), (network.ingress_bps, ingress)):
            for v, amounts in loads.items():
                self._limit(amounts, v, float(rates[v]), seconds)

    def _limit(self, amounts: list[pywraplp.Variable], v: int, rate: float, seconds: float) -> None:
        if np.isfinite(rate):
            # More than all that there is says nothing, and huge numbers spoil the program.
            carried = min(1.0 * len(amounts), rate * seconds / self._problem.bits) * self._parts
            self._solver.Add(sum(amounts) <= self._vms[v] * carried)

    def limit_cost(self, seconds: float, most_usd: float) -> None:
        """Adds the limit of the cost (eq. 1 and 2), in units of it."""
        network, unit = self._problem.network, most_usd or 1.0
        gb = self._problem.volume_gb / self._parts / unit
        egress = sum(
            amount * (gb * _price(network.price_usd_per_gb, tree))
            for tree, amount in zip(self._trees, self._x, strict=True)
        )
        rent = sum(
            n * float(network.vm_usd_per_s[v] * seconds / unit) for v, n in self._vms.items()
        )
        self._solver.Add(egress + rent <= most_usd / unit)

    def closest(
        self, old_mix: Mapping[Tree, float], seconds: float, most_usd: float
    ) -> Choice | None:
        """Solves the program; what it finds must hold in the model, too."""
        solver, infinity = self._solver, self._solver.infinity()
        stay, away = [], []
        for tree, amount in zip(self._trees, self._x, strict=True):
            stay.append(solver.NumVar(0.0, old_mix.get(tree, 0.0) * self._parts, ""))
            solver.Add(stay[-1] <= amount)
        for v, count in self._vms.items():
            away.append(solver.NumVar(0.0, infinity, ""))
            solver.Add(away[-1] >= count - int(self._old[v]))
            solver.Add(away[-1] >= int(self._old[v]) - count)
        old_count = max(1, int(self._old.sum()))
        solver.Maximize(sum(stay) * (1.0 / self._parts) - sum(away) * (1.0 / old_count))
        if solver.Solve() not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
            return None
        mix = self._mix()
        found = Choice(mix, self._counts(mix), seconds)
        return found if _holds(self._problem, found, most_usd) else None

    def _mix(self) -> dict[Tree, float]:
        mix = {
            tree: amount.solution_value() / self._parts
            for tree, amount in zip(self._trees, self._x, strict=True)
            if amount.solution_value() > _LEAST_FRACTION * self._parts
        }
        if self._problem.stripes is not None:
            return {tree: round(x * self._parts) / self._parts for tree, x in mix.items()}
        total = sum(mix.values())
        return {tree: x / total for tree, x in mix.items()}

    def _counts(self, mix: Mapping[Tree, float]) -> Ints:
        """VMs, none where they would be idle."""
        counts = np.zeros(len(self._problem.network.regions), np.int64)
        for v, count in self._vms.items():
            counts[v] = round(count.solution_value())
        used = used_regions(self._problem, shares_of(self._problem, mix))
        return np.where(used, counts, 0)


def _holds(problem: Problem, found: Choice, most_usd: float) -> bool:
    shares = shares_of(problem, found.mix)
    usd = egress_usd(problem, shares) + instance_usd(problem, found.vms, found.seconds)
    in_time = predicted_time_s(problem, shares, found.vms) <= found.seconds * (1 + TIME_TOLERANCE)
    return in_time and usd <= most_usd * (1 + _ROUNDING)


def _price(prices: Floats, tree: Tree) -> float:
    return float(sum(prices[edge] for edge in tree))
