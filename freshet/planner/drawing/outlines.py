"""Rough outlines of the continents, for orientation: drawn by hand, a degree or two off."""

from __future__ import annotations

import csv
from functools import cache

from freshet.planner.drawing.places import Place
from freshet.resources import table_path


@cache
def continents() -> tuple[tuple[Place, ...], ...]:
    """Corners of each continent and large island, in order; longitudes may be beyond 180."""
    outlines: dict[str, list[Place]] = {}
    with table_path("continents.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            corner = Place(float(row["latitude"]), float(row["longitude"]))
            outlines.setdefault(row["name"], []).append(corner)
    return tuple(tuple(outline) for outline in outlines.values())
