"""The lightest Steiner tree in time, exactly, where a bound and a tree leave little in between.

Labels are trees from a node to a set of terminals: of each, its weight and its slowest path. One
that is neither lighter nor faster than another goes. So does one that can't become a whole tree
lighter than the best known: the priced program of ``steiner_in_time`` says what it lacks at least.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from freshet.planner.steiner import Level
from freshet.planner.steiner_in_time import Priced, Steps
from freshet.planner.trees import Edge

_ROUNDING = 1e-9


class Label(NamedTuple):
    """A tree from a node to a set."""

    weight: float
    slowest: float
    """Seconds of its slowest path, with its terminal's tail."""

    priced: float
    """Weight and priced delays."""

    edge: Edge | None
    parts: tuple[Label, ...]
    """What it is made of: one tree behind an edge, or two that meet."""


class _TooManyError(Exception):
    pass


class Labels:
    """The search for a tree lighter than one that is known.

    Args:
        priced: the program, at good prices.
        weights: of edges, as the program got them [n, n].
        lightest: weight of the known tree.
        most: labels that the search may make.
    """

    def __init__(self, priced: Priced, weights: np.ndarray, lightest: float, most: int) -> None:
        self._priced, self._timetable = priced, priced.timetable
        self._weights, self._most, self.made = weights, most, 0
        self._below = lightest * (1 - _ROUNDING) + priced.constant
        self._outside = priced.outside()
        possible = np.isfinite(self._outside)
        self._left = np.where(possible, self._below - np.where(possible, self._outside, 0), -np.inf)
        self._kept: dict[tuple[int, int], list[Label]] = {}

    def search(self) -> tuple[set[Edge] | None, bool]:
        """Edges of the lightest tree that is lighter; and whether the search came to its end."""
        timetable, family = self._timetable, self._timetable.family
        try:
            for number, steps in enumerate(timetable.steps):
                begun = self._singles() if number == 0 else self._met(family.levels[number - 1])
                edges = self._edges_into(steps, self._priced.costs[number])
                for set_number, labels in begun.items():
                    self._extend(set_number, labels, edges[set_number])
        except _TooManyError:
            return None, False
        found = self._kept.get((family.whole, timetable.root))
        return (_edges(min(found)) if found else None), True

    def _singles(self) -> dict[int, list[tuple[int, Label]]]:
        timetable = self._timetable
        tails = timetable.tails.tolist()
        ends = zip(timetable.family.singles, timetable.terminals, tails, strict=True)
        return {single: [(t, Label(0.0, tail, 0.0, None, ()))] for single, t, tail in ends}

    def _met(self, level: Level) -> dict[int, list[tuple[int, Label]]]:
        """Pairs of trees that meet in a node."""
        nodes_of = defaultdict[int, set[int]](set)
        for number, node in self._kept:
            nodes_of[number].add(node)
        begun = dict[int, list[tuple[int, Label]]]()
        for number, firsts, rests in zip(
            level.sets.tolist(), level.firsts.tolist(), level.rests.tolist(), strict=True
        ):
            begun[number] = [
                (node, label)
                for first, rest in zip(firsts, rests, strict=True)
                for node in sorted(nodes_of[first] & nodes_of[rest])
                for label in self._pairs(number, first, rest, node)
            ]
        return begun

    def _pairs(self, number: int, first: int, rest: int, node: int) -> list[Label]:
        most = self._left[number, node]
        found = []
        for one in self._kept[first, node]:
            for other in self._kept[rest, node]:
                priced = one.priced + other.priced
                if priced <= most:
                    slowest = max(one.slowest, other.slowest)
                    weight = one.weight + other.weight
                    found.append(Label(weight, slowest, priced, None, (one, other)))
        self._count(len(found))
        return found

    def _edges_into(
        self, steps: Steps, cost: np.ndarray
    ) -> dict[int, dict[int, list[tuple[int, float, float, float]]]]:
        """Of each set and node the edges (from, weight, delay, cost) that a good tree may have."""
        numbers = steps.sets[steps.of_set]
        total = self._priced.reach[numbers, steps.last] + cost
        total += self._outside[numbers, steps.first]
        good = np.flatnonzero(total <= self._below)
        first, last = steps.first[good], steps.last[good]
        edges = defaultdict[int, dict[int, list[tuple[int, float, float, float]]]](
            lambda: defaultdict(list)
        )
        for number, u, v, weight, delay, priced in zip(
            numbers[good].tolist(),
            first.tolist(),
            last.tolist(),
            self._weights[first, last].tolist(),
            self._timetable.delays[first, last].tolist(),
            cost[good].tolist(),
            strict=True,
        ):
            edges[number][v].append((u, weight, delay, priced))
        return edges

    def _extend(
        self,
        number: int,
        begun: list[tuple[int, Label]],
        edges: dict[int, list[tuple[int, float, float, float]]],
    ) -> None:
        """Light trees first: one is kept if it is faster than all lighter ones."""
        latest = (self._timetable.latest - self._timetable.early).tolist()
        most = self._left[number].tolist()
        fastest = defaultdict[int, float](lambda: float("inf"))
        heap = [(label.weight, label.slowest, i, node, label)
                for i, (node, label) in enumerate(begun)]  # fmt: skip
        heapq.heapify(heap)
        order = len(heap)
        while heap:
            weight, slowest, _, node, label = heapq.heappop(heap)
            if slowest >= fastest[node]:
                continue
            fastest[node] = slowest
            self._kept.setdefault((number, node), []).append(label)
            self._count(1)
            for u, more, delay, cost in edges.get(node, ()):
                later, priced = slowest + delay, label.priced + cost
                if later <= latest[u] and priced <= most[u] and later < fastest[u]:
                    longer = Label(weight + more, later, priced, (u, node), (label,))
                    heapq.heappush(heap, (longer.weight, later, order, u, longer))
                    order += 1

    def _count(self, labels: int) -> None:
        self.made += labels
        if self.made > self._most:
            raise _TooManyError


def _edges(label: Label) -> set[Edge]:
    edges, pending = set[Edge](), [label]
    while pending:
        label = pending.pop()
        if label.edge is not None:
            edges.add(label.edge)
        pending.extend(label.parts)
    return edges
