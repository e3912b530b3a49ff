"""Plans of equal stripes made one stripe at a time, with whole VMs and whole stripes.

The linear program over trees may cut stripes, and with few of them its trees are of little use:
a region whose VMs send one and a half stripes can't split a stripe that is whole. Here each stripe
gets the tree that is cheapest beside the others (``one_stripe``), first one after the other, then
again and again in their places until none can be improved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from freshet.planner.model import TIME_TOLERANCE
from freshet.planner.optimal.one_stripe import Room, cheapest_edges, vm_counts
from freshet.planner.problem import Floats, Ints, Problem
from freshet.planner.steiner import all_sets, runs
from freshet.planner.steiner_bound import leaf_order, weight_of
from freshet.planner.trees import Edge, Tree, arborescence_in

_MAX_TERMINALS = 8
"""Up to so many the cheapest tree is found among all; beyond, among those with some order."""

_MAX_PLACED = 32
"""Trees that one plan places at most; of more stripes, some take the same."""

_REPAIRS = 12
_BETTER = 1e-9


@dataclass(frozen=True)
class Cheapest:
    """The cheapest tree that was found for a stripe."""

    tree: Tree | None
    """None if there is no place."""

    bound_usd: float
    """No tree costs less beside what is there; infinite if there is none."""


class WholeStripes:
    """Trees for equal stripes until a fixed time.

    Args:
        problem: with a number of stripes.
        seconds: that everything takes.
        order: a tree whose leaves give an order of the destinations, where there are many.
    """

    def __init__(self, problem: Problem, seconds: float, order: Tree) -> None:
        assert problem.stripes is not None
        self._problem, network = problem, problem.network
        self._stripes = problem.stripes
        per_vm = seconds / problem.bits * problem.stripes / (1 - TIME_TOLERANCE)
        self._links = np.where(network.links, network.bandwidth_bps, 0.0) * per_vm
        self._egress = np.minimum(network.egress_bps * per_vm, len(self._links) * problem.stripes)
        self._ingress = network.ingress_bps * per_vm
        self._usd = np.where(network.links, network.price_usd_per_gb, np.inf)
        self._usd = self._usd * problem.volume_gb / problem.stripes
        self._vm_usd = network.vm_usd_per_s * seconds
        self._order = order
        self.steps = 0
        """Programs solved so far: the work."""

    def starts(
        self, incumbent: Mapping[Tree, float], relaxed: Mapping[Tree, float], weights: Floats
    ) -> Iterator[list[Tree]]:
        """Trees for all stripes, made in several ways; nothing where a stripe finds no place.

        Args:
            incumbent: shares of whole stripes that are known.
            relaxed: shares of the linear program's trees, which may cut stripes.
            weights: of links under the program's prices of capacity [n, n].
        """
        known = self.trees_of(incumbent)
        if known is not None:
            yield known
        whole: list[Tree] = []
        load = self._load(whole)
        for tree, share in sorted(relaxed.items(), key=lambda item: (-item[1], item[0])):
            for _ in range(int(share * self._stripes * (1 + _BETTER))):
                more = load + self._load([tree])
                if np.isfinite(self.usd(more)):
                    whole.append(tree)
                    load = more
        sizes = [-(-self._stripes // 2**i) for i in range(self._stripes.bit_length())]
        sizes = [size for size in dict.fromkeys(sizes) if self._stripes <= size * _MAX_PLACED]
        begins: list[tuple[list[Tree], Floats | None, int]] = [(whole, None, 1)]
        begins += [([], None, size) for size in sizes]
        begins += [(whole, weights, 1), ([], weights, 1)]
        for begun, beside, size in begins:
            if self._stripes - len(begun) <= size * _MAX_PLACED:
                trees = self._filled(begun, beside, size)
                if trees is not None:
                    yield trees

    def one_tree_bound(self) -> float:
        """What no plan with all data on one tree can cost less than."""
        nothing = np.zeros(self._links.shape, np.int64)
        return self.usd(nothing) + self.cheapest(nothing, size=self._stripes).bound_usd

    def _filled(self, begun: list[Tree], weights: Floats | None, size: int) -> list[Tree] | None:
        """Places what is missing, one after the other; None if a stripe finds no place.

        Args:
            begun: trees of the first stripes.
            weights: of links [n, n], beside which VMs cost nothing; None for the true costs.
            size: stripes that are placed together, on one tree; fewer where there is no place.
        """
        trees, load = list(begun), self._load(begun)
        while len(trees) < self._stripes:
            size = min(size, self._stripes - len(trees))
            tree = self.cheapest(load, weights, size).tree
            if tree is None and size == 1:
                return None
            if tree is None:
                size = -(-size // 2)
                continue
            trees += [tree] * size
            load += size * self._load([tree])
        return trees

    def improved(self, trees: Sequence[Tree], max_steps: int) -> list[Tree]:
        """Gives one stripe after the other a cheaper tree beside the rest, until none has any.

        Args:
            trees: of all stripes.
            max_steps: programs to solve at most.
        """
        trees, load, last = list(trees), self._load(trees), self.steps + max_steps
        tried: set[Tree] = set()
        i = 0
        while len(tried) < len(set(trees)) and self.steps < last:
            tree = trees[i % len(trees)]
            if tree not in tried:
                rest = load - self._load([tree])
                other = self.cheapest(rest, order=tree).tree
                if other is not None and self._gain(rest, tree, other) > 0:
                    trees[i % len(trees)] = other
                    load = rest + self._load([other])
                    tried.clear()
                tried.add(trees[i % len(trees)])
            i += 1
        return trees

    def cheapest_of(self, plans: Sequence[list[Tree]]) -> list[list[Tree]]:
        """Plans that differ, cheapest first."""
        differ = {tuple(sorted(trees)): trees for trees in plans}
        return sorted(differ.values(), key=lambda trees: self.usd(self._load(trees)))

    def usd(self, load: Ints) -> float:
        """Cost of whole stripes on links [n, n]; infinite if VMs do not suffice."""
        vms = self._needed(load)
        if (vms > self._problem.network.max_vms).any():
            return np.inf
        return float(self._usd[load > 0] @ load[load > 0] + self._vm_usd @ vms)

    def mix(self, trees: Sequence[Tree]) -> dict[Tree, float]:
        """Trees with their shares."""
        return {tree: count / self._stripes for tree, count in Counter(trees).items()}

    def trees_of(self, mix: Mapping[Tree, float]) -> list[Tree] | None:
        """The trees of a mix, one for each stripe; None if they are too slow."""
        trees = [t for t, share in mix.items() for _ in range(round(share * self._stripes))]
        whole = len(trees) == self._stripes and np.isfinite(self.usd(self._load(trees)))
        return trees if whole else None

    def _load(self, trees: Sequence[Sequence[Edge]]) -> Ints:
        load = np.zeros(self._links.shape, np.int64)
        for tree in trees:
            for edge in tree:
                load[edge] += 1
        return load

    def _gain(self, rest: Ints, tree: Tree, other: Tree) -> float:
        before = self.usd(rest + self._load([tree]))
        return before * (1 - _BETTER) - self.usd(rest + self._load([other]))

    def _needed(self, load: Ints) -> Ints:
        """VMs that stripes need [n]; more than allowed where a link carries none."""
        problem = self._problem
        with np.errstate(divide="ignore", invalid="ignore"):
            links = np.where(load > 0, load / self._links, 0.0).max(axis=1)
            out, into = load.sum(axis=1), load.sum(axis=0)
            exact = np.maximum(links, np.maximum(out / self._egress, into / self._ingress))
        counts = np.ceil(np.minimum(exact, problem.network.max_vms + 1.0)).astype(np.int64)
        used = (out > 0) | (into > 0)
        used[[problem.root, *problem.terminals]] = True
        return np.where(used, np.maximum(counts, problem.network.min_vms), 0)

    def _room(self, load: Ints, size: int, free_vms: bool) -> Room:
        network, root = self._problem.network, self._problem.root
        present = self._needed(load)
        into = load.sum(axis=0) + size
        into[root] -= size
        fewest = np.maximum(np.ceil(into / self._ingress).astype(np.int64), network.min_vms)
        vms, complete = vm_counts(np.maximum(present, fewest), network.max_vms)
        usd = np.zeros(vms.shape) if free_vms else (vms - present) * self._vm_usd
        return Room(
            vm_usd=np.where(vms <= network.max_vms, usd, np.inf),
            branches=np.floor((vms * self._egress - load.sum(axis=1)) / size).astype(np.int64),
            open=(load + size <= vms[:, :, None] * self._links) & network.links,
            complete=complete,
        )

    def cheapest(
        self,
        load: Ints,
        weights: Floats | None = None,
        size: int = 1,
        order: Tree | None = None,
    ) -> Cheapest:
        """The cheapest tree beside a load.

        Args:
            load: whole stripes on links [n, n].
            weights: of links [n, n], beside which VMs cost nothing; None for the true costs.
            size: stripes that take it, all of them.
            order: a tree whose leaves give an order of the destinations, where there are many.
        """
        problem = self._problem
        terminals: Sequence[int] = problem.terminals
        if exact := len(terminals) <= _MAX_TERMINALS:
            family = all_sets(len(terminals))
        else:
            terminals = leaf_order(order or self._order, problem.root, terminals)
            family = runs(len(terminals))
        room = self._room(load, size, free_vms=weights is not None)
        own: Floats = self._usd * float(size) if weights is None else weights
        most = room.branches[-1]
        before = self.usd(load)
        prices = np.zeros(len(load))
        best: tuple[float, Tree] | None = None
        bound = -np.inf
        for _ in range(_REPAIRS):
            self.steps += 1
            priced = own + prices[:, None]
            edges, value = cheapest_edges(priced, room, problem.root, terminals, family)
            tree = arborescence_in(edges, own, problem.root, terminals) if edges else None
            if tree is None:
                bound = np.inf
                break
            value -= float(prices @ np.maximum(most, 0))
            bound = max(bound, value)
            total = self.usd(load + size * self._load([tree]))
            if np.isfinite(total):
                usd = total - before if weights is None else weight_of(own, tree)
                best = min(best or (usd, tree), (usd, tree))
            excess = self._load([edges]).sum(axis=1) - most
            excess[(excess <= 0) & (prices <= 0)] = 0
            if not (excess > 0).any() or (best is not None and best[0] <= value):
                break
            step = (best[0] - value) / float(excess @ excess) if best else value / len(tree) / 4
            prices = np.maximum(prices + step * excess, 0.0)
        complete = exact and room.complete and weights is None
        return Cheapest(best[1] if best else None, bound if complete else -np.inf)
