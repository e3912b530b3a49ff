"""One map: ground, regions with their labels, and the links of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from freshet.planner.drawing.labels import Box, Placer, box_around
from freshet.planner.drawing.layout import Layout
from freshet.planner.drawing.marks import (
    BADGE_FONT,
    FONT,
    SMALL_FONT,
    mark,
    role_of,
    shape_of,
    size_of,
    write,
)
from freshet.planner.drawing.outlines import continents
from freshet.planner.drawing.ribbons import RADIUS, Coloured, Ribbon, draw_ribbon, ribbons_of
from freshet.planner.plan import Plan
from freshet.planner.stream import StreamPlan
from freshet.report.figures import INK

_LAND, _LAND_EDGE = "#f0efe9", "#d9d7cc"

REGION_GID, NUMBER_GID = "region", "number"
"""The gid of labels of regions and of numbers of links."""


@dataclass(frozen=True)
class View:
    """What a map shows."""

    plan: Plan | StreamPlan
    trees: Sequence[Coloured]
    numbers: Mapping[tuple[str, str], int]
    """Of links, written on them; those without are drawn without."""

    with_vms: bool
    """Whether labels of regions tell VMs and delays."""


def draw_map(axes: Axes, view: View, layout: Layout, left: float, bottom: float) -> None:
    """Draws a map with its lower left corner at a point.

    Args:
        axes: in points.
        view: what is shown; its regions must have positions.
        layout: positions of regions, and the size of the map.
        left: x of the corner.
        bottom: y of the corner.
    """
    used = {region for tree in view.trees for edge in tree.edges for region in edge}
    spots = {
        region: (left + x, bottom + y)
        for region, (x, y) in sorted(layout.positions.items())
        if region in used
    }
    room = Box(left, bottom, left + layout.width, bottom + layout.height)
    _draw_ground(axes, layout, room)
    ribbons = ribbons_of(view.trees, spots, room)
    for ribbon in ribbons:
        draw_ribbon(axes, ribbon)
    for region, spot in spots.items():
        mark(axes, spot, shape_of(region), role_of(view.plan, region))
    marks = [box_around(spot, 2 * RADIUS, 2 * RADIUS) for spot in spots.values()]
    placer = Placer(room, marks, np.concatenate([ribbon.middle for ribbon in ribbons]))
    _label_regions(axes, view, spots, placer)
    _number_links(axes, ribbons, view.numbers, placer)


def _draw_ground(axes: Axes, layout: Layout, room: Box) -> None:
    """The land behind the regions, and a frame."""
    projection = layout.projection
    if projection is None:
        return
    frame = Polygon(
        [
            (room.left, room.bottom),
            (room.left + layout.map_width, room.bottom),
            (room.left + layout.map_width, room.top),
            (room.left, room.top),
        ],
        closed=True,
        facecolor="none",
        edgecolor=_LAND_EDGE,
        linewidth=0.8,
    )
    axes.add_patch(frame)
    for outline in continents():
        for shape in projection.shapes(outline):
            moved = shape + np.array([room.left, room.bottom])
            land = Polygon(
                moved, closed=True, facecolor=_LAND, edgecolor=_LAND_EDGE, linewidth=0.6, zorder=0.5
            )
            axes.add_patch(land)
            land.set_clip_path(frame)


def _label_regions(
    axes: Axes, view: View, spots: Mapping[str, tuple[float, float]], placer: Placer
) -> None:
    for region in sorted(spots, key=lambda region: (_room(region, spots), region)):
        label = f"{region}\n{_below(view.plan, region)}" if view.with_vms else region
        font = FONT if view.with_vms else SMALL_FONT
        text = write(axes, 0.0, 0.0, label, font, ha="center", zorder=4)
        text.set_gid(REGION_GID)
        box = placer.beside(spots[region], RADIUS, size_of(text))
        text.set_position(box.middle)
        text.set_bbox({"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5})
        _lead(axes, spots[region], box)


def _below(plan: Plan | StreamPlan, region: str) -> str:
    """VMs of a region, and the largest delay until a chunk is there."""
    count = plan.vms.get(region, 0)
    vms = f"{count} VM" if count == 1 else f"{count} VMs"
    paths = plan.paths if isinstance(plan, StreamPlan) else ()
    delays = [path.delay_s for path in paths if path.destination == region]
    return f"{vms}, {max(delays):.3g} s" if delays else vms


def _room(region: str, spots: Mapping[str, tuple[float, float]]) -> float:
    """Distance to the nearest other region: labels where there is least room come first."""
    x, y = spots[region]
    others = [np.hypot(x - a, y - b) for other, (a, b) in spots.items() if other != region]
    return float(min(others, default=np.inf))


def _lead(axes: Axes, spot: tuple[float, float], box: Box) -> None:
    """A thin line from a region to its label, if that is away from it."""
    x = min(max(spot[0], box.left), box.right)
    y = min(max(spot[1], box.bottom), box.top)
    if np.hypot(x - spot[0], y - spot[1]) > RADIUS + 12.0:
        axes.plot([spot[0], x], [spot[1], y], color=INK, linewidth=0.4, zorder=1.5)


def _number_links(
    axes: Axes,
    ribbons: list[Ribbon],
    numbers: Mapping[tuple[str, str], int],
    placer: Placer,
) -> None:
    for ribbon in ribbons:
        if ribbon.link not in numbers:
            continue
        number = str(numbers[ribbon.link])
        text = write(axes, 0.0, 0.0, number, BADGE_FONT, ha="center", zorder=3)
        text.set_gid(NUMBER_GID)
        width, height = size_of(text)
        box = placer.along(ribbon.middle, (width + 3.0, height + 1.0))
        text.set_position(box.middle)
        _lead_to_line(axes, ribbon, box)
        text.set_bbox(
            {
                "boxstyle": "round,pad=0.15",
                "facecolor": "white",
                "edgecolor": ribbon.colour,
                "linewidth": 0.8,
            }
        )


def _lead_to_line(axes: Axes, ribbon: Ribbon, box: Box) -> None:
    """A thin line from a number to its link, if it is beside it."""
    middle = np.array(box.middle)
    nearest = ribbon.middle[np.hypot(*(ribbon.middle - middle).T).argmin()]
    if np.hypot(*(nearest - middle)) > ribbon.width + 4.0:
        axes.plot(*np.array([nearest, middle]).T, color=ribbon.colour, linewidth=0.6, zorder=2.5)
