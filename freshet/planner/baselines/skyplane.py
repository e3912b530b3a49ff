"""Skyplane per destination: the best unicast plan to each, merged.

Jain, Kumar, Wooders, Patil, Gonzalez and Stoica, "Skyplane: Optimizing transfer cost and throughput
using cloud-aware overlays", NSDI 2023; merged as in Cloudcast, Table 2. Its program for one
destination is the planner's with one destination. Each destination's paths cut the data at other
places; between two cuts the paths to all destinations are known, and make a tree. The destinations'
plans do not know of each other, so what they share is the slower for it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from freshet.planner.baselines.common import no_tree, plan_with_most_vms
from freshet.planner.optimal import planner as optimal
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem
from freshet.planner.trees import Tree, arborescence_in

NAME = "skyplane"

_SLACK = 1.001
"""Over the fastest time, where the fastest plan is wanted at a sane price."""

_LEAST = 1e-9
"""Fraction of the data that is worth a stripe."""


def solve(problem: Problem, fastest: bool = False) -> Plan:
    """Plans each destination alone and merges the plans.

    Args:
        problem: to solve; each destination's plan heeds its deadline, if there is one.
        fastest: whether each destination's plan is the fastest, and not the cheapest.

    Raises:
        NoPlanError: a destination can't be reached, or not in time.
    """
    started = time.perf_counter()
    paths = [_paths(problem, destination, fastest) for destination in problem.destinations]
    cuts = {0.0, 1.0}
    for shares in paths:
        cuts.update(np.cumsum([share for _, share in shares]).tolist())
    ordered = sorted(cuts)
    weights: dict[Tree, float] = {}
    network = problem.network
    prices = np.where(network.links, network.price_usd_per_gb, np.inf)
    for begin, end in pairwise(ordered):
        if end - begin < _LEAST:
            continue
        middle = (begin + end) / 2
        edges = [edge for shares in paths for edge in _at(shares, middle)]
        tree = arborescence_in(edges, prices, problem.root, problem.terminals)
        if tree is None:
            raise no_tree(problem, NAME)
        weights[tree] = weights.get(tree, 0.0) + end - begin
    name = f"{NAME}-fastest" if fastest else NAME
    return plan_with_most_vms(problem, weights, algorithm=name, started=started)


fastest = partial(solve, fastest=True)
"""With the most throughput for each destination."""


def _paths(problem: Problem, destination: str, fastest: bool) -> list[tuple[Tree, float]]:
    one = replace(problem, destinations=(destination,), stripes=None)
    if fastest:
        one = one.with_deadline(optimal.fastest_possible(one).seconds * _SLACK)
    index = problem.network.index
    plan = optimal.solve(one)
    return [
        (tuple((index[u], index[v]) for u, v in stripe.edges), stripe.fraction)
        for stripe in plan.stripes
    ]


def _at(shares: list[tuple[Tree, float]], position: float) -> Tree:
    for tree, share in shares:
        if position < share:
            return tree
        position -= share
    return shares[-1][0]
