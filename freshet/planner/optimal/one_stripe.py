"""The cheapest tree for one more whole stripe beside others, with the VMs that it adds.

Dreyfus and Wagner's program over sets of destinations (``steiner``) for trees in which regions
cost, too: with so many VMs a region has so many links out of it at most, and only those links that
carry a whole stripe more. So each region is taken with each number of VMs, and its branches are
counted. VMs that the other stripes need anyway are free.

A region may occur on two branches of what the program finds, each within its limits. Such a tree
is repaired by a price on the region's links, raised until the tree holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from freshet.planner.problem import Floats, Ints
from freshet.planner.shortest_paths import all_shortest_paths, path_edges
from freshet.planner.steiner import Family, Level
from freshet.planner.trees import Edge

_MAX_COUNTS = 6
"""Numbers of VMs that a region is taken with; of more possible ones some are left out."""


@dataclass(frozen=True, eq=False)
class Room:
    """What is left for one more stripe, with each number of VMs.

    The first axis of all arrays is the number of VMs' position.
    """

    vm_usd: Floats
    """Cost of the VMs beside those that are needed anyway [c, n]; infinite for too few."""

    branches: Ints
    """Most links out of the region [c, n]."""

    open: npt.NDArray[np.bool_]
    """Whether a link carries one more stripe [c, n, n]."""

    complete: bool
    """Whether all possible numbers of VMs are there."""


def vm_counts(fewest: Ints, most: Ints) -> tuple[Ints, bool]:
    """Numbers of VMs to take each region with [c, n], fewest first, and whether these are all."""
    span = np.maximum(most - fewest, 0)
    widest = int(span.max(initial=0))
    steps = list(range(widest + 1))
    if sparse := widest >= _MAX_COUNTS:
        steps = [0, *(2**i for i in range(widest.bit_length() + 1))]
    return fewest + np.minimum(np.array(steps)[:, None], span), not sparse


def cheapest_edges(
    weights: Floats, room: Room, root: int, terminals: Sequence[int], family: Family
) -> tuple[list[Edge], float]:
    """Edges of the cheapest tree.

    Args:
        weights: of links [n, n], not negative; infinite where there is none.
        room: what is left.
        root: where the tree begins.
        terminals: that it must reach.
        family: sets of terminals to go through.

    Returns:
        The edges, where a region may occur on two branches, and their weight with VMs: no tree
        costs less if the family has all sets and all numbers of VMs are there. No edges, and
        infinity, if there is no tree.
    """
    program = _Program(weights, room, root, terminals, family)
    value = float(program.reach[family.whole, root])
    return (program.edges(root) if np.isfinite(value) else []), value


class _Program:
    def __init__(
        self, weights: Floats, room: Room, root: int, terminals: Sequence[int], family: Family
    ) -> None:
        self._room, self._family = room, family
        counts, n = room.vm_usd.shape
        self._set_of = dict(zip(terminals, family.singles, strict=True))
        self._terminal_of = {number: t for t, number in self._set_of.items()}
        self._row_of = {
            int(s): (level, i) for level in family.levels for i, s in enumerate(level.sets)
        }
        weights = weights.copy()
        weights[:, root] = np.inf
        self._links = np.where(room.open, weights, np.inf)
        # One link out of a region, with the number of VMs that is cheapest for it.
        usable = np.where(room.branches >= 1, room.vm_usd, np.inf)
        passing = (self._links + usable[:, :, None]).min(axis=0)
        self._distance, self._following = all_shortest_paths(passing)
        most = int(min(len(terminals), room.branches.max(initial=0)))
        # By the region, its VMs and its branches: what they cost without its VMs.
        self._split = np.full((family.count, n, counts, most + 1), np.inf)
        self._leave = np.full((family.count, n, counts), np.inf)
        self._ends = np.full((family.count, n), np.inf)  # where the tree splits or ends here
        self._choice = np.zeros((family.count, n), np.int64)
        self.reach = np.full((family.count, n), np.inf)
        allowed = np.arange(most + 1) <= room.branches.T[:, :, None]
        self._vm_usd = np.where(allowed, room.vm_usd.T[:, :, None], np.inf)
        for terminal, single in self._set_of.items():
            self._split[single, terminal, :, 0] = 0.0
        self._close(np.array(family.singles))
        for level in family.levels:
            self._join(level)
            self._close(level.sets)

    def _join(self, level: Level) -> None:
        """Splits sets: one branch takes the rest."""
        best = np.full((len(level.sets), *self._split.shape[1:]), np.inf)
        for firsts, rests in zip(level.firsts.T, level.rests.T, strict=True):
            taken = self._split[firsts, :, :, :-1] + self._leave[rests][..., None]
            np.minimum(best[..., 1:], taken, out=best[..., 1:])
            for i, rest in enumerate(rests.tolist()):
                t = self._terminal_of.get(rest)
                if t is not None:  # the region itself is the rest
                    np.minimum(best[i, t], self._split[firsts[i], t], out=best[i, t])
        self._split[level.sets] = best

    def _close(self, sets: npt.NDArray[np.int64]) -> None:
        """The way from each region to where the tree splits, or ends."""
        here = self._split[sets] + self._vm_usd
        flat = here.reshape(len(sets), here.shape[1], -1)
        self._choice[sets] = flat.argmin(axis=2)
        ends = self._ends[sets] = flat.min(axis=2)
        reach = (self._distance[None] + ends[:, None, :]).min(axis=2)
        self.reach[sets] = reach
        for count, links in enumerate(self._links):
            self._leave[sets, :, count] = (links[None] + reach[:, None, :]).min(axis=2)
        if self._split.shape[3] > 1:
            one = np.minimum(self._split[sets, :, :, 1], self._leave[sets])
            self._split[sets, :, :, 1] = one

    def edges(self, root: int) -> list[Edge]:
        """The edges of the best tree: choices are made again."""
        found: list[Edge] = []
        pending = [(self._family.whole, root)]
        while pending:
            number, node = pending.pop()
            split = int((self._distance[node] + self._ends[number]).argmin())
            found += path_edges(self._following, node, split)
            count, branches = divmod(int(self._choice[number, split]), self._split.shape[3])
            for part in self._parts(number, split, count, branches):
                child = int((self._links[count, split] + self.reach[part]).argmin())
                found.append((split, child))
                pending.append((part, child))
        return found

    def _parts(self, number: int, node: int, count: int, branches: int) -> list[int]:
        """The sets of destinations of the branches of a region in which the tree splits."""
        parts: list[int] = []
        while number in self._row_of:
            level, i = self._row_of[number]
            firsts, rests = level.firsts[i], level.rests[i]
            values = np.full(len(firsts), np.inf)
            if branches:
                values = self._split[firsts, node, count, branches - 1]
                values = values + self._leave[rests, node, count]
            here = np.flatnonzero(rests == self._set_of.get(node, -1))
            last = int(values.argmin())
            if len(here) and self._split[firsts[here[0]], node, count, branches] <= values[last]:
                last = int(here[0])
            else:
                parts.append(int(rests[last]))
                branches -= 1
            number = int(firsts[last])
            if branches == 1 and (
                self._leave[number, node, count] <= self._split[number, node, count, 1]
            ):
                return [*parts, number]
        return parts
