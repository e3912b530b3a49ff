"""The best plan over known trees with whole VMs and stripes: a small mixed-integer program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ortools.linear_solver import pywraplp

from freshet.planner.problem import Ints, Problem
from freshet.planner.trees import Tree

_PARAMETERS = "limits/nodes = {nodes}\nlimits/gap = {gap}\nrandomization/randomseedshift = 1\n"
_MAX_NODES = 300
"""A limit of work and not of time, so that the same input gives the same plan."""

_GAP = 1e-4
_LEAST_FRACTION = 1e-9


@dataclass(frozen=True)
class Choice:
    """Trees with fractions, VMs in each region [n], and the time."""

    mix: dict[Tree, float]
    vms: Ints
    seconds: float


def choose_trees(
    problem: Problem,
    trees: Sequence[Tree],
    low: Ints,
    high: Ints,
    unit_s: float,
    *,
    seconds: float | None = None,
    fastest: bool = False,
) -> Choice | None:
    """Chooses fractions of known trees, or counts of equal stripes, and VMs.

    Args:
        problem: whose stripes are to be whole.
        trees: to choose from.
        low: fewest VMs [n].
        high: most VMs [n]; equal to low where the time is open.
        unit_s: seconds of about the size of the plan's time, for scaling.
        seconds: the time; None to choose that as well.
        fastest: whether the time is minimised, and not the cost.

    Returns:
        The choice, or None if there is none within the solver's limits.
    """
    solver = pywraplp.Solver.CreateSolver("SCIP")
    solver.SetSolverSpecificParametersAsString(_PARAMETERS.format(nodes=_MAX_NODES, gap=_GAP))
    network, parts = problem.network, problem.stripes or 1
    per_unit = unit_s / problem.bits * parts
    if problem.stripes is None:
        counts = [solver.NumVar(0.0, 1.0, "") for _ in trees]
    else:
        counts = [solver.IntVar(0, parts, "") for _ in trees]
    solver.Add(sum(counts) == parts)
    if seconds is None:
        time = solver.NumVar(0.0, solver.infinity(), "")
        vm_time = {v: time * int(high[v]) for v in range(len(high))}
        vms = {}
    else:
        time = solver.NumVar(seconds / unit_s, seconds / unit_s, "")
        vms = {v: _vm_variable(solver, problem, v, low, high) for v in range(len(high))}
        vm_time = {v: vms[v] * (seconds / unit_s) for v in vms}
    links: dict[tuple[int, int], list[pywraplp.Variable]] = {}
    egress: dict[int, list[pywraplp.Variable]] = {}
    ingress: dict[int, list[pywraplp.Variable]] = {}
    for tree, count in zip(trees, counts, strict=True):
        for u, v in tree:
            links.setdefault((u, v), []).append(count)
            egress.setdefault(u, []).append(count)
            ingress.setdefault(v, []).append(count)
    for (u, v), loads in links.items():
        solver.Add(sum(loads) <= vm_time[u] * (network.bandwidth_bps[u, v] * per_unit))
    for u, loads in egress.items():
        if np.isfinite(network.egress_bps[u]):
            solver.Add(sum(loads) <= vm_time[u] * (network.egress_bps[u] * per_unit))
    for v, loads in ingress.items():
        if np.isfinite(network.ingress_bps[v]):
            solver.Add(sum(loads) <= vm_time[v] * (network.ingress_bps[v] * per_unit))
        if v in vms:
            for load in loads:  # a region that forwards anything has a VM
                solver.Add(load <= parts * vms[v])
    if fastest:
        solver.Minimize(time)
    else:
        egress_usd = [
            sum(network.price_usd_per_gb[u, v] for u, v in tree) * problem.volume_gb / parts
            for tree in trees
        ]
        solver.Minimize(
            sum(usd * count for usd, count in zip(egress_usd, counts, strict=True))
            + sum(vm_time[v] * (network.vm_usd_per_s[v] * unit_s) for v in vm_time if high[v])
        )
    if solver.Solve() not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
        return None
    mix = {
        tree: count.solution_value() / parts
        for tree, count in zip(trees, counts, strict=True)
        if count.solution_value() > _LEAST_FRACTION
    }
    if problem.stripes is not None:
        mix = {tree: round(share * parts) / parts for tree, share in mix.items()}
    found = [round(vms[v].solution_value()) if vms else int(high[v]) for v in range(len(high))]
    return Choice(mix, np.array(found, np.int64), time.solution_value() * unit_s)


def _vm_variable(
    solver: pywraplp.Solver, problem: Problem, v: int, low: Ints, high: Ints
) -> pywraplp.Variable:
    count = solver.IntVar(int(low[v]), int(high[v]), "")
    fewest = int(problem.network.min_vms[v])
    if low[v] == 0 and fewest > 1 and high[v] > 0:
        used = solver.BoolVar("")
        solver.Add(count >= fewest * used)
        solver.Add(count <= int(high[v]) * used)
    return count
