"""Light trees that bring every chunk of a stream within a freshness bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from freshet.planner.ascent_in_time import Paths, ascend
from freshet.planner.delays import Delays
from freshet.planner.exact_in_time import Labels
from freshet.planner.optimal.pricing import pricing_for
from freshet.planner.problem import Floats, Problem
from freshet.planner.shortest_paths import all_shortest_paths, path_edges
from freshet.planner.steiner import all_sets, runs
from freshet.planner.steiner_bound import leaf_order
from freshet.planner.steiner_cuts import CutProgram
from freshet.planner.steiner_in_time import ROUNDING, Priced, Timetable, Walk
from freshet.planner.trees import Edge, Tree, arborescence_in

MAX_EXACT_TERMINALS = 8
"""Up to so many, trees are found exactly; the time grows as 3^k."""

_CLOSE = 1e-7
"""Relative; a tree so near to the bound counts as the lightest."""

_PRICINGS = 12
"""Prices of delay that one call tries at most, and in one of ``_PRICINGS_IF_MANY`` terminals."""

_PRICINGS_IF_MANY = 4
_PATIENCE = 2
_MOST_TREES = 4
_MAX_LABELS = 300_000
"""That one object makes, and of these in one call at most ``_MAX_LABELS_AT_ONCE``: some seconds.

A limit of work and not of time, so that the same input gives the same plan.
"""

_MAX_LABELS_AT_ONCE = 60_000


class FreshTrees:
    """The search for light trees in time: a pricing for one column generation.

    Calls learn from earlier ones, and find less once they have done much work; a search begins with
    an object of its own.

    Args:
        problem: whose destinations are to be reached.
        delays: of hops.
        bounds_s: seconds until a destination has a chunk, at most, of each of the problem's
            terminals; None for no limit.
    """

    def __init__(self, problem: Problem, delays: Delays, bounds_s: Sequence[float] | None) -> None:
        self._root, self._terminals = problem.root, problem.terminals
        self._delays, self._limit = delays, None if bounds_s is None else max(bounds_s)
        # All paths have the longest limit: a terminal with a shorter one has some way behind it.
        self._tails = {
            terminal: (self._limit or 0.0) - bound
            for terminal, bound in zip(self._terminals, bounds_s or (), strict=bounds_s is not None)
        }
        self._whenever = pricing_for(problem)
        self._labels_left = _MAX_LABELS
        self._prices = np.zeros(len(self._terminals))
        self._seen: set[Tree] = set()
        links = map(tuple, np.argwhere(np.isfinite(delays.hops)).tolist())
        self.freshest = arborescence_in(links, delays.hops, self._root, self._terminals)
        """The tree of least delays; None if a destination can't be reached."""

    def allows(self, tree: Tree) -> bool:
        """Whether the tree is in time."""
        if self._limit is None:
            return True
        arrivals, latest = self._delays.arrivals(tree, self._root), self._limit * (1 + ROUNDING)
        return all(arrivals[terminal] + tail <= latest for terminal, tail in self._tails.items())

    def __call__(self, weights: Floats) -> tuple[list[Tree], float]:
        """Light trees that are in time, lightest first, and a weight that none of them is below."""
        if self._limit is None:
            return self._whenever(weights)
        if len(self._terminals) <= MAX_EXACT_TERMINALS:
            known, bound = self._few(weights)
        else:
            known, bound = self._many(weights)
        ordered = sorted(known, key=lambda tree: (known[tree], tree))[:_MOST_TREES]
        self._seen.update(ordered)
        return ordered, bound

    @cached_property
    def _hops(self) -> Floats:
        hops = self._delays.hops.copy()
        np.fill_diagonal(hops, np.inf)
        return hops

    @cached_property
    def _distances(self) -> tuple[Floats, np.ndarray]:
        return all_shortest_paths(self._hops)

    @cached_property
    def _paths(self) -> Paths:
        assert self._limit is not None
        return Paths.within(self._hops, self._limit, self._root, self._tails)

    @cached_property
    def _cuts(self) -> CutProgram:
        return CutProgram(self._paths)

    @cached_property
    def _timetable(self) -> Timetable:
        return self._timetable_of(self._terminals)

    def _timetable_of(self, terminals: Sequence[int]) -> Timetable:
        assert self._limit is not None
        few = len(terminals) <= MAX_EXACT_TERMINALS
        family = all_sets(len(terminals)) if few else runs(len(terminals))
        tails = {terminal: self._tails[terminal] for terminal in terminals}
        return Timetable(self._hops, self._limit, self._root, tails, family, self._distances[0])

    def _few(self, weights: Floats) -> tuple[dict[Tree, float], float]:
        known = self._trees_of([self.freshest or ()], weights)
        best = self._improve(self._timetable, weights, known, _PRICINGS)
        if best is None:
            return {}, np.inf
        bound, lightest = max(best.value, 0.0), min(known.values(), default=np.inf)
        if bound >= lightest * (1 - _CLOSE):
            return known, bound
        if known and min(known, key=lambda tree: (known[tree], tree)) not in self._seen:
            return known, bound  # it may help, and what is lightest need not be known yet
        labels = Labels(best, weights, lightest, min(self._labels_left, _MAX_LABELS_AT_ONCE))
        edges, complete = labels.search()
        self._labels_left -= labels.made
        if edges is not None:
            known.update(self._trees_of([edges], weights))
            lightest = min(known.values())
        if complete:
            bound = max(bound, lightest * (1 - _CLOSE)) if known else np.inf
        elif known:
            enough = lightest * (1 - _CLOSE)
            bound = max(
                bound, self._cuts.bound(weights, ascend(weights, self._paths), enough).bound
            )
        return known, bound

    def _many(self, weights: Floats) -> tuple[dict[Tree, float], float]:
        ascent = ascend(weights, self._paths)
        if not np.isfinite(ascent.bound):
            return {}, np.inf
        known = self._trees_of([_edges(ascent.paid), self.freshest or ()], weights)
        self._turn(weights, known)
        best = min(known, key=lambda tree: (known[tree], tree))
        enough = known[best] * (1 - _CLOSE)
        if best in self._seen and ascent.bound < enough:
            ascent = self._cuts.bound(weights, ascent, enough)
            known.update(self._trees_of([_edges(ascent.paid)], weights))
            if min(known.values()) < known[best]:
                self._turn(weights, known)
        return known, ascent.bound

    def _turn(self, weights: Floats, known: dict[Tree, float]) -> None:
        """Adds trees whose leaves are in the order of the lightest one's."""
        place = {terminal: i for i, terminal in enumerate(self._terminals)}
        for backwards in (False, True):
            tree = min(known, key=lambda t: (known[t], t))
            order = leaf_order(tree, self._root, self._terminals, backwards=backwards)
            chosen = [place[terminal] for terminal in order]
            prices, self._prices = self._prices, self._prices[chosen]
            self._improve(self._timetable_of(order), weights, known, _PRICINGS_IF_MANY)
            prices[chosen] = self._prices
            self._prices = prices

    def _improve(
        self, timetable: Timetable, weights: Floats, known: dict[Tree, float], most: int
    ) -> Priced | None:
        """Raises the bound by subgradients, and notes the trees that come along.

        Steps are Polyak's, shorter where they lead nowhere.

        Returns:
            The program at the best prices; None if there is no tree.
        """
        best, prices, step, waited = None, self._prices, 1.0, 0
        for _ in range(most):
            priced = Priced(timetable, weights, prices)
            if not np.isfinite(priced.value):
                return None
            walk = priced.walk()
            known.update(self._trees_of(self._repairs(walk, timetable), weights))
            if best is None or priced.value > best.value:
                best, best_walk, waited = priced, walk, 0
            else:
                waited += 1
            lightest = min(known.values(), default=np.inf)
            if best.value >= lightest * (1 - _CLOSE):
                break
            if waited >= _PATIENCE:
                step, waited, walk, prices = step / 2, 0, best_walk, best.prices
            moved = _moved(prices, walk, timetable.latest, step, lightest - best.value)
            if moved is None:
                break
            prices = moved
        assert best is not None
        self._prices = best.prices
        return best

    def _repairs(self, walk: Walk, timetable: Timetable) -> list[set[Edge]]:
        """Edges that hold a tree in time: the walk's, with fast paths to late terminals."""
        late = np.flatnonzero(walk.arrivals > timetable.latest)
        edges, following = set(walk.edges), self._distances[1]
        for i in late.tolist():
            edges.update(path_edges(following, self._root, timetable.terminals[i]))
        return [edges]

    def _trees_of(self, candidates: Iterable[Iterable[Edge]], weights: Floats) -> dict[Tree, float]:
        """Trees in time inside sets of edges, with their weights, as far as they are finite."""
        found: dict[Tree, float] = {}
        for edges in candidates:
            tree = arborescence_in(edges, self._delays.hops, self._root, self._terminals)
            if tree is not None and self.allows(tree):
                weight = float(sum(weights[u, v] for u, v in tree))
                if np.isfinite(weight):
                    found[tree] = weight
        return found


def _edges(chosen: np.ndarray) -> set[Edge]:
    return set(map(tuple, np.argwhere(chosen).tolist()))


def _moved(prices: Floats, walk: Walk, latest: float, step: float, missing: float) -> Floats | None:
    """Higher prices for late terminals, lower ones for early ones; None if none can change."""
    late = walk.arrivals - latest
    late = np.where((prices > 0) | (late > 0), late, 0.0)
    square = float(late @ late)
    if square <= 0:
        return None
    missing = missing if np.isfinite(missing) else float(prices.sum() * latest) + 1.0
    moved: Floats = np.maximum(0.0, prices + step * missing / square * late)
    return moved
