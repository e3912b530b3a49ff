"""The model of time and cost of every algorithm and report: Cloudcast §3.3, equations 1 to 8.

A plan is described by its *shares*, a matrix [n, n] of how much of the volume crosses each link
(the equations' ``SIZE_STRIPES * sum_s P_s``, over the volume), and by its VMs in each region [n].
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from freshet.planner.plan import Cost, Plan, Stripe
from freshet.planner.problem import Floats, Ints, Problem, edge_names
from freshet.planner.trees import Tree, from_root

Mix = Mapping[Tree, float]
"""Trees with the fraction of the volume that takes each."""

TIME_TOLERANCE = 1e-6
"""Relative; a plan may exceed its deadline by so much, for rounding."""


class Limit(NamedTuple):
    """A limit, and the time that the data needs because of it."""

    seconds: float
    description: str


@dataclass(frozen=True)
class Requirements:
    """Seconds that the data needs with one VM in each region: eq. 4, 6, 8 solved for TIME."""

    links: Floats
    """Because of the links' bandwidths [n, n]."""

    egress: Floats
    """Because of VMs' egress limits [n]."""

    ingress: Floats
    """Because of VMs' ingress limits [n]."""


def shares_of(problem: Problem, mix: Mix) -> Floats:
    """How much of the volume crosses each link [n, n]."""
    n = len(problem.network.regions)
    shares = np.zeros((n, n))
    for tree, fraction in mix.items():
        for u, v in tree:
            shares[u, v] += fraction
    return shares


def requirements(problem: Problem, shares: Floats) -> Requirements:
    """VM-seconds that the data needs on each link and in each region (eq. 3 to 8)."""
    network, bits = problem.network, problem.bits * shares
    links = np.zeros_like(shares)
    # Equations 3 and 4: the sender's VMs multiply a link's bandwidth.
    np.divide(bits, network.bandwidth_bps, out=links, where=bits > 0)
    return Requirements(
        links=links,
        egress=bits.sum(axis=1) / network.egress_bps,  # equations 5 and 6
        ingress=bits.sum(axis=0) / network.ingress_bps,  # equations 7 and 8
    )


def vm_seconds(problem: Problem, shares: Floats) -> Floats:
    """VM-seconds that each region needs for its links, its egress and its ingress [n]."""
    needed = requirements(problem, shares)
    return np.maximum(needed.links.max(axis=1), np.maximum(needed.egress, needed.ingress))


def fewest_vms(problem: Problem, shares: Floats, seconds: float) -> Ints:
    """VMs that bring the shares in time [n]: 0 where nothing passes; may exceed the limits."""
    exact = vm_seconds(problem, shares) / seconds
    counts = np.ceil(exact * (1 - TIME_TOLERANCE)).astype(np.int64)
    return np.where(used_regions(problem, shares), np.maximum(counts, problem.network.min_vms), 0)


def used_regions(problem: Problem, shares: Floats) -> np.ndarray:
    """Whether data passes a region, or ends or begins there [n]."""
    used: np.ndarray = (shares.sum(axis=0) > 0) | (shares.sum(axis=1) > 0)
    used[[problem.root, *problem.terminals]] = True
    return used


def predicted_time_s(problem: Problem, shares: Floats, vms: Ints) -> float:
    """Seconds until the last destination has everything: the least TIME that eq. 4, 6, 8 allow."""
    needed = vm_seconds(problem, shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(needed > 0, needed / vms, 0.0)
    return float(seconds.max())


def egress_usd(problem: Problem, shares: Floats) -> float:
    """Cost of the data sent (eq. 2)."""
    return problem.volume_gb * float((problem.network.price_usd_per_gb * shares).sum())


def instance_usd(problem: Problem, vms: Ints, seconds: float) -> float:
    """Cost of the VMs for a time (eq. 1)."""
    return seconds * float(problem.network.vm_usd_per_s @ vms)


def slowest_limits(problem: Problem, shares: Floats, vms: Ints) -> list[Limit]:
    """The limits in the order of the time that the data needs because of them, slowest first."""
    needed, names = requirements(problem, shares), problem.network.regions
    found = [
        Limit(
            needed.links[u, v] / vms[u],
            f"the bandwidth from {names[u]} to {names[v]} with {_vm_count(vms[u])}",
        )
        for u, v in np.argwhere(needed.links > 0).tolist()
    ]
    for kind, seconds in (("egress", needed.egress), ("ingress", needed.ingress)):
        found.extend(
            Limit(
                seconds[v] / vms[v],
                f"the {kind} limit of {_vm_count(vms[v])} in {names[v]}",
            )
            for v in np.flatnonzero(seconds > 0).tolist()
        )
    return sorted(found, key=lambda limit: (-limit.seconds, limit.description))


def describe_plan(
    problem: Problem,
    stripes: Sequence[tuple[Tree, float]],
    vms: Ints,
    *,
    algorithm: str,
    started: float,
    lower_bound_usd: float = 0.0,
) -> Plan:
    """Describes a solution as a plan, its time and cost by the model.

    Args:
        problem: that it solves.
        stripes: tree and fraction of each.
        vms: in each region [n].
        algorithm: that found it.
        started: ``time.perf_counter()`` when it began.
        lower_bound_usd: what it has proven that no plan can cost less than.
    """
    network = problem.network
    mix: dict[Tree, float] = {}
    for tree, fraction in stripes:
        mix[tree] = mix.get(tree, 0.0) + fraction
    shares = shares_of(problem, mix)
    predicted = predicted_time_s(problem, shares, vms)
    budget = predicted if problem.billed_s is None else problem.billed_s
    egress, instances = egress_usd(problem, shares), instance_usd(problem, vms, budget)
    total = egress + instances
    bound = min(lower_bound_usd, total)
    return Plan(
        source=problem.source,
        destinations=problem.destinations,
        volume_gb=problem.volume_gb,
        stripes=tuple(
            Stripe(fraction, tuple(edge_names(network, from_root(tree, problem.root))))
            for tree, fraction in stripes
        ),
        vms={network.regions[v]: int(vms[v]) for v in np.flatnonzero(vms).tolist()},
        time_budget_s=budget,
        cost=Cost(
            egress_usd=egress,
            instance_usd=instances,
            total_usd=total,
            lower_bound_usd=bound,
            gap=(total - bound) / total if total > 0 else 0.0,
        ),
        predicted_time_s=predicted,
        cost_as_used_usd=egress + instance_usd(problem, vms, predicted),
        algorithm=algorithm,
        solve_time_s=time.perf_counter() - started,
    )


def _vm_count(count: int) -> str:
    return f"{count} VM" if count == 1 else f"{count} VMs"
