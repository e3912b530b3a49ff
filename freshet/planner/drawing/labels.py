"""Finds places for labels beside what they name, so that none covers another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from freshet.planner.problem import Floats

_DIRECTIONS = 16
_DISTANCES = (3.0, 7.0, 13.0, 21.0, 32.0, 46.0, 65.0, 90.0, 120.0, 160.0, 210.0, 280.0)
_ASIDE = (0.0, 9.0, -9.0, 15.0, -15.0, 23.0, -23.0, 33.0, -33.0)
_COVERED = 1e4
"""How bad it is to cover another label; covering lines is bad, and going far away a little."""

_CROSSED = 3.0
_GAP_POINTS = 1.5


@dataclass(frozen=True)
class Box:
    """A rectangle, points."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def middle(self) -> tuple[float, float]:
        """Its middle."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2

    def overlaps(self, other: Box) -> bool:
        """Whether they have more than an edge in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def grown(self, by: float) -> Box:
        """The box with a margin."""
        return Box(self.left - by, self.bottom - by, self.right + by, self.top + by)


def box_around(middle: tuple[float, float], width: float, height: float) -> Box:
    """The box of a size around a point."""
    x, y = middle
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


class Placer:
    """Places one box after the other.

    Args:
        room: that no box leaves.
        taken: boxes that none may cover.
        lines: points of lines, which boxes should not cover [n, 2].
    """

    def __init__(self, room: Box, taken: Iterable[Box], lines: Floats) -> None:
        self._room, self._taken, self._lines = room, list(taken), lines

    def beside(self, spot: tuple[float, float], radius: float, size: tuple[float, float]) -> Box:
        """The best box beside a spot that has a radius."""
        candidates = []
        for distance in _DISTANCES:
            for step in range(_DIRECTIONS):
                angle = 2 * math.pi * step / _DIRECTIONS
                candidates.append((distance, _beside(spot, radius + distance, angle, size)))
        return self._take(candidates)

    def along(self, curve: Floats, size: tuple[float, float]) -> Box:
        """The best box on a curve [n, 2], as near to its middle as possible, else beside it."""
        count = len(curve)
        forward = np.gradient(curve, axis=0)
        forward /= np.maximum(np.hypot(*forward.T), 1e-9)[:, None]
        candidates = []
        for number in range(count // 8, count - count // 8):
            for aside in _ASIDE:
                x, y = curve[number] + aside * np.array([-forward[number, 1], forward[number, 0]])
                far = 40.0 * abs(number / (count - 1) - 0.5) + 4.0 * abs(aside)
                candidates.append((far, box_around((float(x), float(y)), *size)))
        return self._take(candidates)

    def _take(self, candidates: Sequence[tuple[float, Box]]) -> Box:
        best, least = candidates[0][1], math.inf
        for far, box in sorted(candidates, key=lambda item: item[0]):
            if far >= least:
                break
            bad = far + self._badness(box)
            if bad < least:
                best, least = box, bad
        self._taken.append(best)
        return best

    def _badness(self, box: Box) -> float:
        grown, room = box.grown(_GAP_POINTS), self._room
        bad = _COVERED * sum(grown.overlaps(other) for other in self._taken)
        if not (room.left <= box.left and box.right <= room.right):
            bad += _COVERED
        if not (room.bottom <= box.bottom and box.top <= room.top):
            bad += _COVERED
        x, y = self._lines[:, 0], self._lines[:, 1]
        inside = (x > grown.left) & (x < grown.right) & (y > grown.bottom) & (y < grown.top)
        return bad + _CROSSED * float(np.count_nonzero(inside))


def _beside(
    spot: tuple[float, float], distance: float, angle: float, size: tuple[float, float]
) -> Box:
    """The box that touches a circle around the spot, seen at an angle."""
    x, y = spot[0] + distance * math.cos(angle), spot[1] + distance * math.sin(angle)
    width, height = size
    return box_around((x + width / 2 * math.cos(angle), y + height / 2 * math.sin(angle)), *size)
