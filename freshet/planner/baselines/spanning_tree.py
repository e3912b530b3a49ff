"""MDST: the directed spanning tree of source and destinations with the least egress price.

Cloudcast, Table 2; the tree is Edmonds' ("Optimum branchings", 1967).
"""

from __future__ import annotations

import time

import numpy as np

from freshet.planner.baselines.common import no_tree, plan_with_most_vms
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem
from freshet.planner.spanning import lightest_spanning_tree

NAME = "mdst"


def solve(problem: Problem) -> Plan:
    """Plans one tree.

    Raises:
        NoPlanError: the links between source and destinations do not span them.
    """
    started = time.perf_counter()
    network = problem.network
    prices = np.where(network.links, network.price_usd_per_gb, np.inf)
    tree = lightest_spanning_tree(prices, problem.root, problem.terminals)
    if tree is None:
        raise no_tree(problem, NAME)
    return plan_with_most_vms(problem, {tree: 1.0}, algorithm=NAME, started=started)
