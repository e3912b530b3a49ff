"""Mesh: each destination gets a part of its own from the source, and the rest from its peers.

After Bullet: Kostić, Rodriguez, Albrecht and Vahdat, "Bullet: High bandwidth data dissemination
using an overlay mesh", SOSP 2003. The source sends disjoint parts to the destinations; each part is
then passed on by whoever has it and has most bandwidth left. Prices play no part. Bullet decides at
run time with what nodes measure; here the profiles stand for the measurements.
"""

from __future__ import annotations

import time

import numpy as np

from freshet.planner.baselines.common import no_tree, plan_with_most_vms, whole_parts
from freshet.planner.plan import Plan
from freshet.planner.problem import Floats, Problem
from freshet.planner.trees import Edge, Tree

NAME = "mesh"

_PARTS_PER_DESTINATION = 4


def solve(problem: Problem) -> Plan:
    """Plans one tree for each part of the data.

    Raises:
        NoPlanError: the links between source and destinations do not span them.
    """
    started = time.perf_counter()
    network, vms = problem.network, problem.network.max_vms
    rates = np.minimum(network.bandwidth_bps, network.egress_bps[:, None]) * vms[:, None]
    rates = np.where(network.links, rates, 0.0)
    out = np.minimum(network.egress_bps * vms, rates.sum(axis=1))
    firsts = [v for v in problem.terminals if rates[problem.root, v] > 0]
    if not firsts:
        raise no_tree(problem, NAME)
    parts = problem.stripes or _PARTS_PER_DESTINATION * len(firsts)
    speeds = np.array([rates[problem.root, v] for v in firsts])
    counts = whole_parts((speeds / speeds.sum()).tolist(), parts)
    load = _Load(np.zeros_like(rates), np.zeros(len(out)))
    weights: dict[Tree, float] = {}
    for first, count in zip(firsts, counts, strict=True):
        for _ in range(count):
            tree = _spread(problem, first, rates, out, load)
            weights[tree] = weights.get(tree, 0.0) + 1.0
    return plan_with_most_vms(problem, weights, algorithm=NAME, started=started)


class _Load:
    """Parts sent so far: over links [n, n], and out of regions [n]."""

    def __init__(self, links: Floats, egress: Floats) -> None:
        self.links, self.egress = links, egress

    def add(self, edge: Edge) -> None:
        """Sends one part along a link."""
        self.links[edge] += 1
        self.egress[edge[0]] += 1


def _spread(problem: Problem, first: int, rates: Floats, out: Floats, load: _Load) -> Tree:
    """A tree that begins with one destination, and grows by the link that is free the soonest."""
    edges, holders = [(problem.root, first)], [problem.root, first]
    load.add(edges[0])
    missing = [v for v in problem.terminals if v != first]
    while missing:
        options = [
            (max((load.links[u, v] + 1) / rates[u, v], (load.egress[u] + 1) / out[u]), u, v)
            for u in holders
            for v in missing
            if rates[u, v] > 0
        ]
        if not options:
            raise no_tree(problem, NAME)
        _, u, v = min(options)
        load.add((u, v))
        edges.append((u, v))
        holders.append(v)
        missing.remove(v)
    return tuple(sorted(edges))
