"""SPIDER: several spanning trees that together use the bandwidth of source and destinations.

Ganguly, Saxena, Bhatnagar, Izmailov and Banerjee, "Fast replication in content distribution
overlays", INFOCOM 2005. Trees are packed one by one: each is the widest that the bandwidth left by
the others allows, and gets all of what is its bottleneck's. The data is cut in proportion to the
trees' rates. Prices play no part, and there are no waypoints.
"""

from __future__ import annotations

import time

import numpy as np

from freshet.planner.baselines.common import no_tree, plan_with_most_vms
from freshet.planner.plan import Plan
from freshet.planner.problem import Floats, Problem
from freshet.planner.trees import Edge, Tree

NAME = "spider"

_MAX_TREES = 64
_LEAST_RATE = 1e-3
"""Of the first tree's rate; slower ones are not worth a tree."""


def solve(problem: Problem) -> Plan:
    """Plans a packing of trees.

    Raises:
        NoPlanError: the links between source and destinations do not span them.
    """
    started = time.perf_counter()
    network, vms = problem.network, problem.network.max_vms
    left = _Left(
        links=np.where(network.links, network.bandwidth_bps, 0.0) * vms[:, None],
        egress=network.egress_bps * vms,
        ingress=network.ingress_bps * vms,
    )
    rates: dict[Tree, float] = {}
    first = 0.0
    for _ in range(_MAX_TREES):
        tree, rate = _widest_tree(problem, left)
        first = first or rate
        if rate <= _LEAST_RATE * first:
            break
        left.take(tree, rate)
        rates[tree] = rates.get(tree, 0.0) + rate
    if not rates:
        raise no_tree(problem, NAME)
    return plan_with_most_vms(problem, rates, algorithm=NAME, started=started)


class _Left:
    """The bandwidth that is left, bit/s: of links [n, n], out of and into regions [n]."""

    def __init__(self, links: Floats, egress: Floats, ingress: Floats) -> None:
        self.links, self.egress, self.ingress = links, egress, ingress

    def take(self, tree: Tree, rate: float) -> None:
        """Takes what a tree of a rate needs."""
        for u, v in tree:
            self.links[u, v] = max(0.0, self.links[u, v] - rate)
            self.egress[u] = max(0.0, self.egress[u] - rate)
            self.ingress[v] = max(0.0, self.ingress[v] - rate)


def _widest_tree(problem: Problem, left: _Left) -> tuple[Tree, float]:
    """Grows a tree by the link that leaves it the highest rate; ties go to the less busy sender."""
    reached, outside = [problem.root], sorted(problem.terminals)
    children = dict.fromkeys([problem.root, *outside], 0)
    edges, rate = list[Edge](), float("inf")
    while outside:
        options = [
            (_rate(left, children, u, v), left.egress[u], -u, -v) for u in reached for v in outside
        ]
        best, _, u, v = max(options)
        rate = min(rate, best)
        children[-u] += 1
        edges.append((-u, -v))
        reached.append(-v)
        outside.remove(-v)
    return tuple(sorted(edges)), rate


def _rate(left: _Left, children: dict[int, int], u: int, v: int) -> float:
    """The rate at which a node can feed one more child as fast as those that it has."""
    return float(min(left.links[u, v], left.egress[u] / (children[u] + 1), left.ingress[v]))
