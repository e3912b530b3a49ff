"""CloudMPCast: the cheapest spanning tree of links that are fast enough.

García-Dorado and Rao, "Cost-aware multi data-center bulk transfers in the cloud from a
customer-side perspective", IEEE Transactions on Cloud Computing 7(1), 2015. Links slower than alpha
times the best bottleneck of any tree are left out; alpha = 1 is the fastest, less is cheaper.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from freshet.planner.baselines.common import no_tree, plan_with_most_vms
from freshet.planner.plan import Plan
from freshet.planner.problem import Floats, Problem
from freshet.planner.spanning import lightest_spanning_tree

NAME = "cloudmpcast"


def solve(problem: Problem, alpha: float = 1.0) -> Plan:
    """Plans one tree.

    Args:
        problem: to solve.
        alpha: the least bandwidth of a link, over the best bottleneck of a tree; at most 1.

    Raises:
        NoPlanError: the links between source and destinations do not span them.
    """
    started = time.perf_counter()
    network = problem.network
    rates = np.minimum(network.bandwidth_bps, network.egress_bps[:, None])
    rates = np.where(network.links, np.minimum(rates, network.ingress_bps), 0.0)
    rates = rates * network.max_vms[:, None]
    best = _best_bottleneck(problem, rates)
    fast = network.links & (rates >= alpha * best)
    prices = np.where(fast, network.price_usd_per_gb, np.inf)
    tree = lightest_spanning_tree(prices, problem.root, problem.terminals)
    if tree is None or best <= 0:
        raise no_tree(problem, NAME)
    name = NAME if alpha == 1.0 else f"{NAME}-{alpha:g}"
    return plan_with_most_vms(problem, {tree: 1.0}, algorithm=name, started=started)


half = partial(solve, alpha=0.5)
"""With half of the best bottleneck."""

tenth = partial(solve, alpha=0.1)
"""With a tenth of the best bottleneck."""


def _best_bottleneck(problem: Problem, rates: Floats) -> float:
    """The largest rate of which all destinations are reached along links that have it."""
    reached, outside = [problem.root], list(problem.terminals)
    bottleneck = float("inf")
    while outside:
        between = rates[np.ix_(reached, outside)].max(axis=0)
        fastest = int(between.argmax())
        bottleneck = min(bottleneck, float(between[fastest]))
        reached.append(outside.pop(fastest))
    return bottleneck
