"""Branch and bound over the numbers of VMs, with the linear program over trees as the bound."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, replace

import numpy as np

from freshet.planner.model import (
    TIME_TOLERANCE,
    egress_usd,
    fewest_vms,
    instance_usd,
    predicted_time_s,
    shares_of,
    vm_seconds,
)
from freshet.planner.optimal.capacities import Capacities, striped_capacities, whole_capacities
from freshet.planner.optimal.column_generation import Pricing, Relaxed, generate_columns
from freshet.planner.optimal.fastest import Fastest
from freshet.planner.optimal.master import Master, Prices, Solution, UnsolvedError
from freshet.planner.optimal.restricted import choose_trees
from freshet.planner.optimal.whole_stripes import WholeStripes
from freshet.planner.problem import Floats, Ints, Problem
from freshet.planner.steiner import MAX_EXACT_TERMINALS
from freshet.planner.trees import Tree

TARGET_GAP = 5e-4
"""Relative gap at which the search ends."""

_MAX_NODES = {8: 150, MAX_EXACT_TERMINALS: 40}
"""Programs to solve, up to so many destinations: the more there are, the longer each takes.

A limit of work and not of time, so that the same input gives the same plan.
"""

_MAX_NODES_IF_STRIPED = 40
"""The same for equal stripes, where splitting ranges of VMs helps less."""

_MAX_NODES_IF_MANY = 8
"""The same for more destinations than trees are exact for."""

_MAX_STEPS = 60
"""Cheapest trees to look for while one plan of equal stripes is improved."""

_MAX_STARTS = 3
"""Plans of equal stripes that are improved, the cheapest ones."""

_WHOLE = 1e-6
_POLISH_ROUNDS = 4


@dataclass(frozen=True)
class Found:
    """A plan: its mix of trees, its VMs [n], and what it costs."""

    mix: dict[Tree, float]
    vms: Ints
    usd: float


@dataclass(order=True)
class _Node:
    """A part of the search: ranges of VMs, and a bound of what plans in it cost."""

    bound: float
    number: int
    low: Ints
    high: Ints


class Search:
    """The search for the cheapest plan of one problem.

    Args:
        problem: to solve.
        fastest: its fastest plan.
        pricing: finds light trees.
        any_tree: whether all trees are allowed, and not only those that pricing finds.
    """

    def __init__(
        self, problem: Problem, fastest: Fastest, pricing: Pricing, *, any_tree: bool = True
    ) -> None:
        self._problem = problem
        self._any_tree = any_tree
        self._pricing = pricing
        self._trees = dict.fromkeys(fastest.trees)
        allowed = [n for most, n in _MAX_NODES.items() if len(problem.terminals) <= most]
        self._max_nodes = allowed[0] if allowed else _MAX_NODES_IF_MANY
        if problem.stripes is not None:
            self._max_nodes = min(self._max_nodes, _MAX_NODES_IF_STRIPED)
        network = problem.network
        self._best: Found | None = None
        self._consider(fastest.mix)
        self._scale = self._cost_of_best() if 0 < self._cost_of_best() < np.inf else 1.0
        low, high = self._ranges()
        self._unit_s = problem.billed_s or fastest.seconds
        self._time_range = (1.0, 1.0)
        if problem.billed_s is None:
            latest = max(fastest.bound_s, self._latest_s(low))
            self._time_range = (fastest.bound_s / self._unit_s, latest / self._unit_s)
        self._whole = whole_capacities(problem, self._unit_s, max(self._time_range[0], 1e-9))
        self._prices = Prices(
            np.where(network.links, network.price_usd_per_gb, 0.0) * problem.volume_gb,
            network.vm_usd_per_s * self._unit_s,
        )
        self._master = Master(
            self._prices, self._capacities(low, high), low, high, self._time_range, self._scale
        )
        self._master.add(self._trees)
        self._numbers = itertools.count()
        self._root = _Node(-np.inf, next(self._numbers), low, high)

    def run(self) -> tuple[Found | None, float]:
        """The best plan found, and a bound that none is below."""
        relaxed = self._relax(self._root)
        self._try(relaxed)
        finished = np.inf  # least bound of the parts that need no more search
        if self._problem.stripes is not None and self._any_tree:
            relaxed = replace(relaxed, bound=max(relaxed.bound, self._bound_of_one_stripe()))
            self._place(relaxed)
        if not self._close(relaxed.bound):
            self._choose(self._root)
            self._improve()
        heap = [(relaxed.bound, self._root.number, self._root, relaxed)]
        visited = 1
        while heap and visited < self._max_nodes and heap[0][0] < self._cutoff():
            bound, _, node, relaxed = heapq.heappop(heap)
            region = self._region_to_split(relaxed, node)
            if region is None:
                finished = min(finished, bound)
                continue
            for child in self._split(node, region, relaxed):
                result = self._relax(child)
                visited += 1
                if result.bound >= self._cutoff():
                    finished = min(finished, result.bound)
                    continue
                self._try(result)
                entry = (max(bound, result.bound), child.number, child, result)
                heapq.heappush(heap, entry)
        if visited > 1 and not self._close(min([finished, *(entry[0] for entry in heap)])):
            self._choose(self._root)
            self._improve()
        bound = min([finished, *(entry[0] for entry in heap)])
        return self._best, min(bound, self._best.usd if self._best else np.inf)

    def _close(self, bound: float) -> bool:
        return self._best is not None and bound >= self._best.usd * (1 - TARGET_GAP)

    def _cutoff(self) -> float:
        return np.inf if self._best is None else self._best.usd * (1 - TARGET_GAP)

    def _ranges(self) -> tuple[Ints, Ints]:
        """VMs that every plan has at least and at most."""
        problem, network = self._problem, self._problem.network
        ends = [problem.root, *problem.terminals]
        low = np.zeros(len(network.regions), np.int64)
        low[ends] = network.min_vms[ends]
        if problem.deadline_s is not None:
            rate = problem.bits / problem.deadline_s
            needed = np.ceil(rate / network.ingress_bps * (1 - TIME_TOLERANCE))
            for v in problem.terminals:
                low[v] = max(low[v], needed[v])
            root = problem.root
            out = np.ceil(rate / network.egress_bps[root] * (1 - TIME_TOLERANCE))
            low[root] = max(low[root], out)
        return np.minimum(low, network.max_vms), network.max_vms.copy()

    def _latest_s(self, low: Ints) -> float:
        """Seconds that no plan worth having takes more than."""
        latest = min(self._problem.deadline_s or np.inf, _slowest_s(self._problem))
        usd_per_s = float(self._problem.network.vm_usd_per_s @ low)
        if self._best is not None and usd_per_s > 0:
            latest = min(latest, self._best.usd / usd_per_s)
        return latest

    def _capacities(self, low: Ints, high: Ints) -> Capacities:
        stripes = self._problem.stripes
        if stripes is None or self._problem.billed_s is None:
            return self._whole
        return striped_capacities(self._whole, stripes, low, high)

    def _relax(self, node: _Node) -> Relaxed:
        self._master.restrict(self._capacities(node.low, node.high), node.low, node.high)
        cutoff = self._cutoff()
        return generate_columns(
            self._master, self._pricing, lambda tree: self._trees.setdefault(tree), cutoff=cutoff
        )

    def _region_to_split(self, relaxed: Relaxed, node: _Node) -> int | None:
        """The region whose number of VMs is farthest from being whole, by its price."""
        solution = relaxed.solution
        counts = solution.vm_time / max(solution.time, 1e-12)
        up = self._rounded_up(counts)
        away = np.where(node.low < node.high, up - counts, 0.0)
        away = np.where((counts > _WHOLE) & (away > _WHOLE), away, 0.0)
        value = away * np.minimum(1.0, counts) * (self._prices.vms + 1e-9)
        return int(value.argmax()) if value.max() > 0 else None

    def _rounded_up(self, counts: Floats) -> Ints:
        up = np.ceil(counts - _WHOLE).astype(np.int64)
        return np.where(counts > _WHOLE, np.maximum(up, self._problem.network.min_vms), 0)

    def _split(self, node: _Node, region: int, relaxed: Relaxed) -> list[_Node]:
        count = relaxed.solution.vm_time[region] / max(relaxed.solution.time, 1e-12)
        fewest = int(self._problem.network.min_vms[region])
        below = int(np.floor(count + _WHOLE))
        above = below + 1
        if above <= fewest and node.low[region] == 0:
            below, above = 0, fewest
        children = []
        if below >= node.low[region]:
            high = node.high.copy()
            high[region] = below
            children.append(_Node(relaxed.bound, next(self._numbers), node.low, high))
        if above <= node.high[region]:
            low = node.low.copy()
            low[region] = above
            children.append(_Node(relaxed.bound, next(self._numbers), low, node.high))
        return children

    def _try(self, relaxed: Relaxed) -> None:
        """Makes a plan of a relaxed one: VMs are rounded up."""
        solution = relaxed.solution
        if not solution.complete or self._problem.stripes is not None:
            return
        if self._problem.billed_s is not None:
            self._consider(solution.mix)
        else:
            self._polish(solution.mix)

    def _polish(self, mix: dict[Tree, float]) -> None:
        """Where the time is open: improves the mix for the VMs, and the VMs for the mix."""
        for _ in range(_POLISH_ROUNDS):
            before = self._cost_of_best()
            self._consider(mix)
            if self._cost_of_best() >= before:
                return
            assert self._best is not None
            vms = self._best.vms
            fixed = Master(
                self._prices, self._whole, vms, vms, (0.0, self._time_range[1]), self._scale
            )
            fixed.add(tree for tree in self._trees if all(vms[v] for edge in tree for v in edge))
            solution = _solved(fixed)
            if not solution.complete:
                return
            mix = solution.mix

    def _cost_of_best(self) -> float:
        return np.inf if self._best is None else self._best.usd

    def _choose(self, node: _Node) -> None:
        """Makes a plan of the known trees with whole VMs and stripes."""
        problem, trees = self._problem, list(self._trees)
        if problem.billed_s is not None:
            choice = choose_trees(
                problem, trees, node.low, node.high, self._unit_s, seconds=problem.billed_s
            )
            if choice is not None:
                self._consider(choice.mix)
        elif problem.stripes is not None:
            self._choose_stripes(trees)

    def _choose_stripes(self, trees: list[Tree]) -> None:
        """Where the time is open: whole stripes for a few likely numbers of VMs."""
        problem = self._problem
        solution = _solved(self._master)
        counts = solution.vm_time / max(solution.time, 1e-12)
        for vms in (self._rounded_up(counts), problem.network.max_vms):
            for _ in range(_POLISH_ROUNDS):
                before = self._cost_of_best()
                usable = [t for t in trees if all(vms[v] for edge in t for v in edge)]
                choice = choose_trees(problem, usable, vms, vms, self._unit_s)
                if choice is not None:
                    self._consider(choice.mix)
                if self._cost_of_best() >= before or self._best is None:
                    break
                vms = self._best.vms

    def _place(self, relaxed: Relaxed) -> None:
        """Makes plans of whole stripes, one stripe at a time."""
        weights = self._master.weights(relaxed.duals)
        for seconds in self._likely_times(relaxed):
            stripes = self._stripes_until(seconds)
            known = {} if self._best is None else self._best.mix
            starts: list[list[Tree]] = []
            for trees in stripes.starts(known, relaxed.solution.mix, weights):
                starts.append(trees)
                self._keep(stripes, trees)
                if self._close(relaxed.bound):
                    return
            for trees in stripes.cheapest_of(starts)[:_MAX_STARTS]:
                self._keep(stripes, stripes.improved(trees, _MAX_STEPS))
                if self._close(relaxed.bound):
                    return

    def _improve(self) -> None:
        """Gives the best plan's stripes better places, one at a time."""
        if self._problem.stripes is None or not self._any_tree or self._best is None:
            return
        for seconds in self._likely_times(None):
            stripes = self._stripes_until(seconds)
            trees = stripes.trees_of(self._best.mix)
            if trees is not None:
                self._keep(stripes, stripes.improved(trees, _MAX_STEPS))

    def _keep(self, stripes: WholeStripes, trees: list[Tree]) -> None:
        self._trees.update(dict.fromkeys(trees))
        self._consider(stripes.mix(trees))

    def _stripes_until(self, seconds: float) -> WholeStripes:
        return WholeStripes(self._problem, seconds, next(iter(self._trees)))

    def _likely_times(self, relaxed: Relaxed | None) -> list[float]:
        """Seconds that a plan may take: where they are open, those of plans that are known."""
        problem = self._problem
        if problem.billed_s is not None:
            return [problem.billed_s]
        times = dict[float, None]()
        if self._best is not None:
            shares = shares_of(problem, self._best.mix)
            times[predicted_time_s(problem, shares, self._best.vms)] = None
        if relaxed is not None:
            times[relaxed.solution.time * self._unit_s] = None
            times[problem.deadline_s or self._time_range[1] * self._unit_s] = None
        return [seconds for seconds in times if seconds > 0]

    def _bound_of_one_stripe(self) -> float:
        problem = self._problem
        if problem.stripes != 1 or problem.billed_s is None:
            return -np.inf
        return self._stripes_until(problem.billed_s).one_tree_bound()

    def _consider(self, mix: dict[Tree, float]) -> None:
        """Keeps a mix if it is the cheapest so far, with the VMs that are cheapest for it."""
        problem = self._problem
        total = sum(mix.values())
        mix = {tree: fraction / total for tree, fraction in mix.items()}
        if problem.stripes is not None and not _whole_stripes(mix, problem.stripes):
            return
        shares = shares_of(problem, mix)
        chosen = cheapest_vms(problem, shares)
        if chosen is None:
            return
        vms, seconds = chosen
        usd = egress_usd(problem, shares) + instance_usd(problem, vms, seconds)
        if self._best is None or usd < self._best.usd * (1 - 1e-12):
            self._best = Found(mix, vms, usd)


def _solved(master: Master) -> Solution:
    try:
        return master.solve()
    except UnsolvedError:
        return master.unsolved()


def cheapest_vms(problem: Problem, shares: Floats) -> tuple[Ints, float] | None:
    """The VMs that bring given shares most cheaply, and the time that is billed; None if too late.

    Billed as used, the cost only falls, as the time grows, where a region can do with one VM less:
    at the VM-seconds that it needs, divided by a whole number.
    """
    network = problem.network
    if problem.billed_s is not None:
        vms = fewest_vms(problem, shares, problem.billed_s)
        return None if (vms > network.max_vms).any() else (vms, problem.billed_s)
    needed = vm_seconds(problem, shares)
    busy = np.flatnonzero(needed > 0)
    least = float((needed[busy] / network.max_vms[busy]).max())
    times = {
        max(least, needed[v] / count)
        for v in busy.tolist()
        for count in range(int(network.min_vms[v]), int(network.max_vms[v]) + 1)
    }
    best: tuple[float, float, Ints] | None = None
    latest = np.inf if problem.deadline_s is None else problem.deadline_s * (1 + TIME_TOLERANCE)
    for seconds in sorted(time for time in times if time <= latest):
        vms = fewest_vms(problem, shares, seconds)
        usd = instance_usd(problem, vms, seconds)
        if best is None or usd < best[0] * (1 - 1e-12):
            best = (usd, seconds, vms)
    return None if best is None else (best[2], predicted_time_s(problem, shares, best[2]))


def _whole_stripes(mix: dict[Tree, float], stripes: int) -> bool:
    return all(abs(x * stripes - round(x * stripes)) < _WHOLE for x in mix.values())


def _slowest_s(problem: Problem) -> float:
    """Seconds in which one VM in each region brings everything along any tree."""
    network, n = problem.network, len(problem.network.regions)
    rates = [
        float(network.bandwidth_bps[network.links].min()),
        float(network.egress_bps.min()) / n,
        float(network.ingress_bps.min()),
    ]
    return problem.bits / min(rates)
