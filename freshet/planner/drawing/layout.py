"""Where regions are drawn: on a map that shows what is used, or in columns if it isn't known where.

All coordinates are points (1/72 inch), y upwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from freshet.planner.drawing.places import Place, place_of
from freshet.planner.problem import Floats

_MARGIN, _LEAST_HEIGHT, _MOST_HEIGHT = 0.07, 0.3, 0.56
"""Parts of the width."""

_LEAST_DEGREES = 24.0
"""That a map shows at least, from side to side."""

_COLUMN, _ROW = 0.19, 0.055
"""Room of a region whose place isn't known, parts of the width."""

_APART, _APART_POINTS = 0.038, 22.0
"""Regions closer than this part of the width, or than this, are moved apart: clouds have regions in
the same cities."""

_ROUNDS = 200


@dataclass(frozen=True)
class Projection:
    """Mercator's, cut open where nothing is, scaled to fit."""

    west: float
    """Degrees of longitude at x = 0."""

    bottom: float
    """Mercator's y at y = 0, in degrees at the equator."""

    points_per_degree: float

    def __call__(self, place: Place) -> tuple[float, float]:
        """Position of a place."""
        x = (place.longitude - self.west) % 360.0
        y = mercator(place.latitude) - self.bottom
        return x * self.points_per_degree, y * self.points_per_degree

    def shapes(self, outline: Sequence[Place]) -> list[Floats]:
        """An outline's corners [n, 2], as often as it may be seen: the map may begin anywhere."""
        shapes = []
        for turn in (-360.0, 0.0, 360.0):
            x = np.array([corner.longitude for corner in outline]) - self.west % 360.0 + turn
            y = np.array([mercator(corner.latitude) for corner in outline]) - self.bottom
            shapes.append(np.column_stack([x, y]) * self.points_per_degree)
        return shapes


@dataclass(frozen=True)
class Layout:
    """Positions of regions, and the room that they take."""

    positions: dict[str, tuple[float, float]]
    width: float
    height: float
    map_width: float
    """Of the part of the width, from the left, that is a map; 0 if there is none."""

    projection: Projection | None


def mercator(latitude: float) -> float:
    """Mercator's y, in degrees at the equator."""
    clipped = math.radians(min(max(latitude, -80.0), 80.0))
    return math.degrees(math.asinh(math.tan(clipped)))


def lay_out(hops: Mapping[str, int], places: Mapping[str, Place], width: float) -> Layout:
    """Finds a position for each region.

    Args:
        hops: of each region, from the source.
        places: of regions, as far as they are known.
        width: that may be used.
    """
    found = {region: place_of(region, places) for region in sorted(hops)}
    known = {region: place for region, place in found.items() if place is not None}
    unknown = {region: hops[region] for region, place in found.items() if place is None}
    columns = _columns(unknown)
    beside = width if not known else min(0.5 * width, _COLUMN * width * len(columns))
    map_width = width - beside
    projection, height = _fitted(list(known.values()), map_width) if known else (None, 0.0)
    height = max(height, width * max(_LEAST_HEIGHT, _ROW * max(map(len, columns), default=0)))
    positions: dict[str, tuple[float, float]] = {}
    if projection is not None:
        names = list(known)
        spots = np.array([projection(known[region]) for region in names])
        moved = apart(spots, max(_APART * width, _APART_POINTS), map_width, height)
        positions.update(
            {name: (float(x), float(y)) for name, (x, y) in zip(names, moved, strict=True)}
        )
    for number, column in enumerate(columns):
        x = map_width + beside * (number + 0.5) / len(columns)
        for row, region in enumerate(column):
            positions[region] = (x, height * (1 - (row + 0.5) / len(column)))
    return Layout(positions, width, height, map_width, projection)


def _columns(hops: Mapping[str, int]) -> list[list[str]]:
    """Regions by hops from the source, and then by provider and name."""
    return [
        sorted(region for region, count in hops.items() if count == depth)
        for depth in sorted(set(hops.values()))
    ]


def _fitted(places: Sequence[Place], width: float) -> tuple[Projection, float]:
    """The projection that shows the places as large as possible, and its height."""
    west, degrees = _window([place.longitude for place in places])
    heights = [mercator(place.latitude) for place in places]
    middle, tall = (max(heights) + min(heights)) / 2, max(heights) - min(heights)
    across = max(degrees, _LEAST_DEGREES)
    west -= (across - degrees) / 2
    margins = 2 * _MARGIN * width
    scale = min((width - margins) / across, (_MOST_HEIGHT * width - margins) / max(tall, 1.0))
    height = max(_LEAST_HEIGHT * width, tall * scale + margins)
    left = west - (width / scale - across) / 2
    return Projection(left, middle - height / 2 / scale, scale), height


def _window(longitudes: Sequence[float]) -> tuple[float, float]:
    """The west end and the width of the smallest arc that holds all longitudes."""
    ordered = sorted({longitude % 360.0 for longitude in longitudes})
    gaps = [
        ((after - before) % 360.0 or 360.0, after)
        for before, after in zip(ordered, ordered[1:] + ordered[:1], strict=True)
    ]
    gap, west = max(gaps)
    return west, 360.0 - gap


def apart(spots: Floats, distance: float, width: float, height: float) -> Floats:
    """Moves spots as little as it takes for none to be closer than a distance [n, 2]."""
    # Equal spots need a direction to go; the golden angle gives each its own.
    angles = np.arange(len(spots)) * 2.39996
    moved = spots + 0.01 * np.column_stack([np.cos(angles), np.sin(angles)])
    edge = _MARGIN * width / 3
    for _ in range(_ROUNDS):
        between = moved[:, None, :] - moved[None, :, :]
        lengths = np.sqrt((between**2).sum(axis=2))
        np.fill_diagonal(lengths, np.inf)
        lacking = np.maximum(0.0, distance - lengths)
        if lacking.max() < 1e-3 * distance:
            break
        moved = moved + (between / lengths[:, :, None] * lacking[:, :, None] / 2).sum(axis=1)
        moved = np.clip(moved, edge, [width - edge, height - edge])
    return moved
