"""The fastest possible plan: the time that no plan is below, and what keeps it from being less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from freshet.planner.errors import NoPlanError
from freshet.planner.model import predicted_time_s, shares_of, slowest_limits
from freshet.planner.optimal.capacities import striped_capacities, whole_capacities
from freshet.planner.optimal.column_generation import Pricing, Relaxed, generate_columns
from freshet.planner.optimal.master import Master, Prices
from freshet.planner.optimal.restricted import choose_trees
from freshet.planner.optimal.whole_stripes import WholeStripes
from freshet.planner.problem import Floats, Problem
from freshet.planner.trees import Tree

_STRIPE_ROUNDS = 8
_ABOVE_ALL = 1.0
_NO_TIME = 1e-9
_CLOSE = 1e-3
"""Relative; a time for whole stripes is known well enough."""


@dataclass(frozen=True)
class Fastest:
    """The fastest plan that was found."""

    seconds: float
    bound_s: float
    """No plan is faster."""

    mix: dict[Tree, float]
    trees: list[Tree]
    """All that were tried."""

    binding: str
    """The limit that binds."""


def fastest_plan(problem: Problem, pricing: Pricing, *, any_tree: bool = True) -> Fastest:
    """Finds the fastest plan, with as many VMs as allowed.

    Args:
        problem: to solve.
        pricing: finds light trees.
        any_tree: whether all trees are allowed, and not only those that pricing finds.

    Raises:
        NoPlanError: a destination can't be reached.
    """
    network = problem.network
    n, trees = len(network.regions), dict[Tree, None]()
    weights = np.where(network.links, 1.0, np.inf)
    first, hops = pricing(weights)
    if not np.isfinite(hops):
        raise NoPlanError(_unreachable(problem))
    trees.update(dict.fromkeys(first))
    most = network.max_vms
    unit_s = predicted_time_s(problem, shares_of(problem, {first[0]: 1.0}), most)
    prices = Prices(np.zeros((n, n)), np.zeros(n), time=1.0)
    # The first tree takes one unit of time, so no more is of interest.
    capacities = whole_capacities(problem, unit_s, _NO_TIME)
    master = Master(prices, capacities, most, most, (0.0, 1.0))
    master.add(trees)
    relaxed = generate_columns(master, pricing, lambda tree: trees.setdefault(tree))
    mix = relaxed.solution.mix or {first[0]: 1.0}
    shares = shares_of(problem, mix)
    seconds = predicted_time_s(problem, shares, most)
    found = Fastest(
        seconds=seconds,
        bound_s=min(seconds, max(0.0, relaxed.bound * unit_s)),
        mix=mix,
        trees=list(trees),
        binding=_binding(problem, relaxed),
    )
    return found if problem.stripes is None else _with_stripes(problem, pricing, found, any_tree)


def _with_stripes(problem: Problem, pricing: Pricing, free: Fastest, any_tree: bool) -> Fastest:
    """The fastest plan of equal stripes, found by bisection between a bound and a plan."""
    most, trees = problem.network.max_vms, dict.fromkeys(free.trees)
    bound_s = free.bound_s
    hops = np.where(problem.network.links, 1.0, np.inf)
    placed = None
    if any_tree:
        placed = _placed(problem, bound_s * (1 + _CLOSE), free, free.mix, hops)
    best = placed or _best_stripes(problem, list(trees), free)
    rng = np.random.default_rng(0)
    for _ in range(_STRIPE_ROUNDS):
        if best.seconds <= bound_s * (1 + _CLOSE):
            break
        middle = (bound_s + best.seconds) / 2
        known = len(trees)
        # Arbitrary prices make trees that differ: whole stripes need more to choose from.
        master = _stripes_master(problem, middle, trees, rng)
        relaxed = generate_columns(
            master, pricing, lambda tree: trees.setdefault(tree), cutoff=_ABOVE_ALL
        )
        if not relaxed.solution.complete and relaxed.bound >= _ABOVE_ALL:
            bound_s = middle
            continue
        if any_tree:
            if problem.stripes == 1 and _no_single_tree(problem, middle, free):
                bound_s = middle
                continue
            weights = master.weights(relaxed.duals)
            placed = _placed(problem, middle, free, relaxed.solution.mix, weights)
        if placed is not None and placed.seconds < best.seconds:
            best = placed
        elif len(trees) > known:
            found = _best_stripes(problem, list(trees), free)
            best = min(best, found, key=lambda plan: plan.seconds)
    trees.update(dict.fromkeys(best.mix))
    binding = free.binding
    if best.seconds > free.seconds * (1 + _CLOSE):
        slowest = slowest_limits(problem, shares_of(problem, best.mix), most)[0].description
        binding = f"{slowest}, in {problem.stripes} equal stripes,"
    return replace(best, bound_s=min(bound_s, best.seconds), trees=list(trees), binding=binding)


def _stripes_master(
    problem: Problem, seconds: float, trees: Iterable[Tree], rng: np.random.Generator
) -> Master:
    """The program of trees that bring everything in a time, if whole stripes may be cut."""
    assert problem.stripes is not None
    most, n = problem.network.max_vms, len(problem.network.regions)
    prices = Prices(rng.random((n, n)) / n, np.zeros(n))  # any tree costs less than 1
    whole = whole_capacities(problem, seconds, 1.0)
    striped = striped_capacities(whole, problem.stripes, most, most)
    master = Master(prices, striped, most, most, (1.0, 1.0))
    master.add(trees)
    return master


def _placed(
    problem: Problem, seconds: float, free: Fastest, mix: Mapping[Tree, float], weights: Floats
) -> Fastest | None:
    """A plan within a time, made one stripe at a time."""
    stripes = WholeStripes(problem, seconds, free.trees[0])
    for trees in stripes.starts({}, mix, weights):
        return _with_mix(problem, stripes.mix(trees), free)
    return None


def _no_single_tree(problem: Problem, seconds: float, free: Fastest) -> bool:
    return bool(np.isinf(WholeStripes(problem, seconds, free.trees[0]).one_tree_bound()))


def _best_stripes(problem: Problem, trees: list[Tree], free: Fastest) -> Fastest:
    most = problem.network.max_vms
    choice = choose_trees(problem, trees, most, most, free.seconds, fastest=True)
    return _with_mix(problem, {trees[0]: 1.0} if choice is None else choice.mix, free)


def _with_mix(problem: Problem, mix: dict[Tree, float], free: Fastest) -> Fastest:
    most = problem.network.max_vms
    seconds = predicted_time_s(problem, shares_of(problem, mix), most)
    return replace(free, seconds=seconds, mix=mix)


def _binding(problem: Problem, relaxed: Relaxed) -> str:
    """The limit whose price is highest: more of it makes the plan faster."""
    network, duals = problem.network, relaxed.duals
    rates = np.where(np.isfinite(network.egress_bps), network.egress_bps, 0.0) * network.max_vms
    found = [(duals.egress[v] * rates[v], "egress", v) for v in range(len(rates))]
    rates = np.where(np.isfinite(network.ingress_bps), network.ingress_bps, 0.0) * network.max_vms
    found += [(duals.ingress[v] * rates[v], "ingress", v) for v in range(len(rates))]
    price, kind, v = max(found)
    name = f"the {kind} limit of {_vms(network.max_vms[v])} in {network.regions[v]}"
    links = duals.links * network.bandwidth_bps * network.max_vms[:, None]
    if links.max() > price:
        u, v = divmod(int(links.argmax()), len(links))
        name = (
            f"the bandwidth from {network.regions[u]} to {network.regions[v]} with "
            f"{_vms(network.max_vms[u])}"
        )
    return name


def _vms(count: int) -> str:
    return f"{count} VM" if count == 1 else f"{count} VMs"


def _unreachable(problem: Problem) -> str:
    reached, pending = {problem.root}, [problem.root]
    while pending:
        for v in np.flatnonzero(problem.network.links[pending.pop()]).tolist():
            if v not in reached:
                reached.add(v)
                pending.append(v)
    names = problem.network.regions
    lost = ", ".join(names[v] for v in problem.terminals if v not in reached)
    return (
        f"no path of links leads from {problem.source} to {lost}; give the missing links a "
        "bandwidth of more than 0, or the regions in between VMs"
    )
