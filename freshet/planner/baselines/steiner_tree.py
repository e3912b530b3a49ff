"""Steiner tree: the tree with the least egress price, waypoints allowed (Cloudcast, Table 2)."""

from __future__ import annotations

import time

import numpy as np

from freshet.planner.baselines.common import no_tree, plan_with_most_vms
from freshet.planner.optimal.pricing import light_trees
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem

NAME = "steiner"


def solve(problem: Problem) -> Plan:
    """Plans one tree: the lightest for few destinations, a light one for many.

    Raises:
        NoPlanError: a destination can't be reached.
    """
    started = time.perf_counter()
    network = problem.network
    prices = np.where(network.links, network.price_usd_per_gb, np.inf)
    trees, _ = light_trees(prices, problem.root, problem.terminals)
    if not trees:
        raise no_tree(problem, NAME)
    return plan_with_most_vms(problem, {trees[0]: 1.0}, algorithm=NAME, started=started)
