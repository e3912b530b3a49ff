"""Directed Steiner trees of least weight whose paths from the root all take at most a given delay.

The dynamic program of ``steiner``, with a price on each terminal's delay (Lagrange; Handler and
Zang, "A dual algorithm for the constrained shortest path problem", Networks 10, 1980, do so for one
path): an edge that leads to a set of terminals weighs its weight plus its delay times the prices of
the set. The lightest such tree, less the prices of the whole limit, is a weight that no tree in
time is below. Edges that are too late for one of their set's terminals are left out beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from freshet.planner.problem import Floats
from freshet.planner.steiner import Family, Level
from freshet.planner.trees import Edge

ROUNDING = 1e-9
"""Relative; a path may exceed the limit by so much."""

_HOP_WEIGHT = 1e-10
"""Of the heaviest edge; makes walks without weight and delay end."""

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Steps:
    """Edges that may lead to one of some sets of terminals: [e] for each set and edge."""

    sets: Indexes
    """Numbers of the sets [s]."""

    of_set: Indexes
    """Position of the set in ``sets``; edges are sorted by it and by their first node."""

    first: Indexes
    last: Indexes
    nodes: int

    @cached_property
    def tails(self) -> Indexes:
        """Sets with first nodes, as one number, in ascending order."""
        tails: Indexes = np.unique(self.of_set * self.nodes + self.first)
        return tails

    @cached_property
    def starts(self) -> Indexes:
        """Where the edges of each of ``tails`` begin."""
        starts: Indexes = np.searchsorted(self.of_set * self.nodes + self.first, self.tails)
        return starts

    @cached_property
    def heads(self) -> Indexes:
        """Sets with last nodes, as one number."""
        heads: Indexes = self.of_set * self.nodes + self.last
        return heads

    @cached_property
    def by_head(self) -> tuple[Indexes, Indexes, Indexes]:
        """The edges sorted by ``heads``, these in ascending order, and where each one's begin."""
        order = np.argsort(self.heads, kind="stable")
        heads, starts = np.unique(self.heads[order], return_index=True)
        return order, heads, starts


class Timetable:
    """What may be in time, whatever it weighs: it follows from delays alone.

    Args:
        delays: of edges [n, n], more than 0; infinite where there is none.
        limit: delay of a path.
        root: where trees begin.
        tails: terminals that they reach, each with the delay that counts for it behind its path.
        family: sets of terminals that trees are made of.
        distance: delays of the fastest paths [n, n].
    """

    def __init__(
        self,
        delays: Floats,
        limit: float,
        root: int,
        tails: Mapping[int, float],
        family: Family,
        distance: Floats,
    ) -> None:
        self.delays, self.limit, self.root = delays, limit, root
        self.terminals, self.family = tuple(tails), family
        self.tails = np.array(list(tails.values()))
        """Of the terminals [k]."""
        self.early = distance[root]
        """Least delay from the root [n]."""
        self.latest = limit * (1 + ROUNDING)
        far = np.full((family.count, len(delays)), np.inf)
        for single, (terminal, tail) in zip(family.singles, tails.items(), strict=True):
            far[single] = distance[:, terminal] + tail
        for level in family.levels:
            far[level.sets] = np.maximum(far[level.firsts[:, 0]], far[level.rests[:, 0]])
        self.possible = self.early + far <= self.latest
        """Whether a node can lead to a set in time [sets, n]."""
        groups = [np.array(family.singles), *(level.sets for level in family.levels)]
        self.steps = [self._steps(sets, far) for sets in groups]

    def _steps(self, sets: Indexes, far: Floats) -> Steps:
        until = self.early[:, None] + self.delays
        fits = until[None] + far[sets][:, None, :] <= self.latest
        of_set, first, last = np.nonzero(fits)
        return Steps(sets, of_set, first, last, len(self.delays))


@dataclass(frozen=True)
class Walk:
    """The lightest tree under prices; it may come to a node twice."""

    edges: frozenset[Edge]
    arrivals: Floats
    """Delay of each terminal's path, with its tail [k]."""


class Priced:
    """The lightest trees from each node to each set, for given weights and prices of delay.

    Args:
        timetable: of what may be in time.
        weights: of edges [n, n], not negative; infinite where there is none.
        prices: of each terminal's delay [k], not negative.
    """

    def __init__(self, timetable: Timetable, weights: Floats, prices: Floats) -> None:
        self.timetable, self.prices = timetable, prices
        family, n = timetable.family, len(weights)
        finite = weights[np.isfinite(weights)]
        self._hop_weight = _HOP_WEIGHT * (float(finite.max(initial=0.0)) or 1.0)
        self._weights = weights + self._hop_weight
        self.of_set = self._prices_of_sets(family)
        self.reach = np.full((family.count, n), np.inf)
        """Weight and priced delay of the tree from a node to a set [sets, n]."""
        self._joint = np.full((family.count, n), np.inf)
        for single, terminal in zip(family.singles, timetable.terminals, strict=True):
            self._joint[single, terminal] = 0.0
        self.costs: list[Floats] = []
        """Of the timetable's steps, a level at a time."""
        for number, steps in enumerate(timetable.steps):
            if number:
                self._join(family.levels[number - 1])
            self._extend(steps)

    @property
    def value(self) -> float:
        """A weight that no tree in time is below; infinite if there is none."""
        whole = self.reach[self.timetable.family.whole, self.timetable.root]
        hops = self._hop_weight * len(self._weights)
        return float(whole) - hops - self.constant

    @property
    def constant(self) -> float:
        """What the prices pay for the whole limit, less the tails."""
        return float(self.prices @ (self.timetable.latest - self.timetable.tails))

    def _prices_of_sets(self, family: Family) -> Floats:
        of_set = np.zeros(family.count)
        of_set[family.singles] = self.prices
        for level in family.levels:
            of_set[level.sets] = of_set[level.firsts[:, 0]] + of_set[level.rests[:, 0]]
        return of_set

    def _join(self, level: Level) -> None:
        best = np.full((len(level.sets), self.reach.shape[1]), np.inf)
        for firsts, rests in zip(level.firsts.T, level.rests.T, strict=True):
            np.minimum(best, self.reach[firsts] + self.reach[rests], out=best)
        best[~self.timetable.possible[level.sets]] = np.inf
        self._joint[level.sets] = best

    def _extend(self, steps: Steps) -> None:
        """Paths lead to where trees split."""
        cost = self._weights[steps.first, steps.last]
        cost += (
            self.of_set[steps.sets][steps.of_set] * self.timetable.delays[steps.first, steps.last]
        )
        self.costs.append(cost)
        reach = self._joint[steps.sets].ravel()
        while len(cost):
            best = np.minimum.reduceat(cost + reach[steps.heads], steps.starts)
            known = reach[steps.tails]
            if not (best < known).any():
                break
            reach[steps.tails] = np.minimum(best, known)
        self.reach[steps.sets] = reach.reshape(len(steps.sets), -1)

    def outside(self) -> Floats:
        """What a tree from a node to a set lacks at least to be a whole one [sets, n]."""
        timetable, family = self.timetable, self.timetable.family
        rest = np.full_like(self.reach, np.inf)
        rest[family.whole, timetable.root] = 0.0
        for number in reversed(range(len(timetable.steps))):
            steps, cost = timetable.steps[number], self.costs[number]
            order, heads, starts = steps.by_head
            tails, here = (
                (steps.of_set * steps.nodes + steps.first)[order],
                rest[steps.sets].ravel(),
            )
            while len(cost):
                best = np.minimum.reduceat(cost[order] + here[tails], starts)
                known = here[heads]
                if not (best < known).any():
                    break
                here[heads] = np.minimum(best, known)
            rest[steps.sets] = here.reshape(len(steps.sets), -1)
            if number:
                self._split(family.levels[number - 1], rest)
        return rest

    def _split(self, level: Level, rest: Floats) -> None:
        for firsts, others in zip(level.firsts.T, level.rests.T, strict=True):
            for part, other in ((firsts, others), (others, firsts)):
                np.minimum.at(rest, part, rest[level.sets] + self.reach[other])

    def walk(self) -> Walk:
        """The lightest tree: its choices are made again. There must be one."""
        timetable, family = self.timetable, self.timetable.family
        position = {single: i for i, single in enumerate(family.singles)}
        rows = {int(s): (0, i) for i, s in enumerate(family.singles)}
        for number, level in enumerate(family.levels, start=1):
            rows.update({int(s): (number, i) for i, s in enumerate(level.sets)})
        edges, arrivals = set[Edge](), timetable.tails.copy()
        pending = [(family.whole, timetable.root, 0.0)]
        while pending:
            number, node, since = pending.pop()
            level_number, row = rows[number]
            if self._joint[number, node] > self.reach[number, node]:
                following = self._following(number, level_number, row, node)
                edges.add((node, following))
                since += float(timetable.delays[node, following])
                pending.append((number, following, since))
            elif number in position:
                arrivals[position[number]] += since
            else:
                level = family.levels[level_number - 1]
                firsts, rests = level.firsts[row], level.rests[row]
                best = int((self.reach[firsts, node] + self.reach[rests, node]).argmin())
                pending += [(int(firsts[best]), node, since), (int(rests[best]), node, since)]
        return Walk(frozenset(edges), arrivals)

    def _following(self, number: int, level: int, row: int, node: int) -> int:
        steps, cost = self.timetable.steps[level], self.costs[level]
        at = int(np.searchsorted(steps.tails, row * steps.nodes + node))
        end = steps.starts[at + 1] if at + 1 < len(steps.starts) else len(cost)
        those = slice(int(steps.starts[at]), int(end))
        reached = cost[those] + self.reach[number, steps.last[those]]
        return int(steps.last[those][int(reached.argmin())])
