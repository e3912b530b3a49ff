"""Deadline-aware inter-DC multicast: the least traffic over a few candidate trees that is in time.

Ji, Liu and Li, "Deadline-aware scheduling and routing for inter-datacenter multicast transfers",
IC2E 2018. Candidates are the shortest-path tree and, for each of a few waypoints, the tree that is
lightest when slow links are dear; Cloudcast §5 keeps their number down in the same way. A linear
program gives them rates: all data by the deadline, with as few link crossings as possible. Without
a deadline it is the fastest mix. Prices play no part.
"""

from __future__ import annotations

import time

import numpy as np

from freshet.planner.baselines.common import no_tree, plan_with_most_vms
from freshet.planner.model import predicted_time_s, shares_of
from freshet.planner.optimal.capacities import whole_capacities
from freshet.planner.optimal.master import Master, Prices
from freshet.planner.optimal.pricing import light_trees
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem
from freshet.planner.trees import Tree, arborescence_in

NAME = "deadline-aware"

_WAYPOINTS = 12
_RELAXED = 1e-3
"""Over the fastest mix of the candidates: its time is found with rounding."""


def solve(problem: Problem) -> Plan:
    """Plans a mix of candidate trees.

    Raises:
        NoPlanError: a destination can't be reached.
    """
    started = time.perf_counter()
    trees = _candidates(problem)
    if not trees:
        raise no_tree(problem, NAME)
    vms = problem.network.max_vms
    n = len(vms)
    unit_s = predicted_time_s(problem, shares_of(problem, {trees[0]: 1.0}), vms)
    capacities = whole_capacities(problem, unit_s, 1e-9)
    master = Master(Prices(np.zeros((n, n)), np.zeros(n), 1.0), capacities, vms, vms, (0.0, 1.0))
    master.add(trees)
    quickest = master.solve()
    deadline = (problem.deadline_s or 0.0) / unit_s
    if deadline < quickest.time * (1 + _RELAXED):
        return plan_with_most_vms(problem, quickest.mix, algorithm=NAME, started=started)
    crossings = Prices(np.ones((n, n)), np.zeros(n))
    master = Master(crossings, capacities, vms, vms, (deadline, deadline))
    master.add(trees)
    return plan_with_most_vms(problem, master.solve().mix, algorithm=NAME, started=started)


def _candidates(problem: Problem) -> list[Tree]:
    network = problem.network
    rates = np.where(network.links, network.bandwidth_bps, np.inf) * network.max_vms[:, None]
    slowness = np.where(network.links, 1.0 / np.maximum(rates, 1.0), np.inf)
    slowness = slowness / np.min(slowness[network.links], initial=np.inf)
    ends = {problem.root, *problem.terminals}
    into = rates[problem.root].copy()
    into[~network.links[problem.root] | np.isin(np.arange(len(into)), list(ends))] = 0.0
    waypoints = np.argsort(-into, kind="stable")[:_WAYPOINTS]
    found: dict[Tree, None] = {}
    everywhere = [(int(u), int(v)) for u, v in np.argwhere(network.links)]
    shortest = arborescence_in(everywhere, slowness, problem.root, problem.terminals)
    if shortest is not None:
        found[shortest] = None
    for waypoint in [-1, *waypoints[into[waypoints] > 0].tolist(), *problem.terminals]:
        found.update(dict.fromkeys(_through(problem, slowness, waypoint)))
    return list(found)


def _through(problem: Problem, slowness: np.ndarray, waypoint: int) -> list[Tree]:
    """The lightest tree whose only waypoint is the given one, or a destination that all pass."""
    n = len(slowness)
    weights = slowness.copy()
    allowed = np.isin(np.arange(n), [problem.root, *problem.terminals, waypoint])
    weights[~allowed] = np.inf
    weights[:, ~allowed] = np.inf
    if waypoint >= 0:
        direct = np.arange(n) != waypoint
        weights[problem.root, direct] = np.inf
    trees, _ = light_trees(weights, problem.root, problem.terminals)
    return trees
