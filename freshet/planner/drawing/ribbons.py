"""The lines of links: one ribbon each, with a stripe for each tree that uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from freshet.planner.drawing.labels import Box
from freshet.planner.drawing.marks import colour_of
from freshet.planner.flow import Edges, Flow
from freshet.planner.problem import Floats

RADIUS = 6.0
"""Of a region's marker, points."""

_CURVE_POINTS = 60
_THINNEST, _WIDTH_OF_ALL = 1.0, 3.5
"""Points: of the line of the smallest share of the data, and how much more for all of it."""

_BENDS = (0.16, 0.1, 0.22, 0.05, 0.3, 0.0)
"""Of a line, over its length; those that are tried, the best first."""

_LONG = 310.0
"""Longer lines bend no more than this one, points."""

_CLEAR = 4.0
"""Points between a line and the marker of a region that it does not belong to."""


class Coloured(NamedTuple):
    """A tree with its share of the data, in its colour."""

    edges: Edges
    share: float
    colour: str


@dataclass(frozen=True)
class Ribbon:
    """A link's lines, side by side."""

    link: tuple[str, str]
    middle: Floats
    """Its points, from the sender to the receiver [n, 2]."""

    stripes: tuple[tuple[str, float], ...]
    """Colour and width of each tree's line, from left to right."""

    @property
    def width(self) -> float:
        """Of all lines together."""
        return sum(width for _, width in self.stripes)

    @property
    def colour(self) -> str:
        """The largest tree's."""
        return self.stripes[0][0]


def coloured_trees(flow: Flow) -> list[Coloured]:
    """A plan's trees in their colours, largest first."""
    return [
        Coloured(edges, share, colour_of(number))
        for number, (edges, share) in enumerate(flow.trees)
    ]


def ribbons_of(
    trees: Sequence[Coloured], spots: Mapping[str, tuple[float, float]], room: Box
) -> list[Ribbon]:
    """The ribbon of each link that trees use.

    Args:
        trees: largest first.
        spots: positions of all regions.
        room: that ribbons should not leave.
    """
    shares: dict[tuple[str, str], dict[str, float]] = {}
    for tree in trees:
        for edge in tree.edges:
            drawn = shares.setdefault(edge, {})
            drawn[tree.colour] = drawn.get(tree.colour, 0.0) + tree.share
    return [
        Ribbon(
            link,
            _bent(spots[link[0]], spots[link[1]], _all_but(link, spots), room),
            tuple((colour, _THINNEST + _WIDTH_OF_ALL * x) for colour, x in drawn.items()),
        )
        for link, drawn in shares.items()
    ]


def _all_but(link: tuple[str, str], spots: Mapping[str, tuple[float, float]]) -> Floats:
    others = [spot for region, spot in spots.items() if region not in link]
    return np.array(others, np.float64).reshape(-1, 2)


def _bent(
    start: tuple[float, float], end: tuple[float, float], others: Floats, room: Box
) -> Floats:
    """An arc to the right of the straight line that meets no other region, if there is one [n, 2].

    To the right of each direction, so that there and back do not cover each other.
    """
    arcs = [_arc(start, end, bend) for bend in _BENDS]
    return min(arcs, key=lambda arc: _obstacles(arc, others, room))


def _arc(start: tuple[float, float], end: tuple[float, float], bend: float) -> Floats:
    """A parabola from marker to marker [n, 2]."""
    a, b = np.array(start), np.array(end)
    across = b - a
    length = float(np.hypot(*across))
    normal = np.array([across[1], -across[0]]) / length
    middle = (a + b) / 2 + normal * 2 * bend * min(length, _LONG)
    t = np.linspace(0.0, 1.0, _CURVE_POINTS)[:, None]
    points = (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
    near = np.minimum(np.hypot(*(points - a).T), np.hypot(*(points - b).T))
    outside: Floats = points[near > RADIUS + 2.0]
    return outside if len(outside) >= 3 else points


def _obstacles(arc: Floats, others: Floats, room: Box) -> int:
    """Points of an arc that are outside, or at another region."""
    x, y = arc.T
    outside = (x < room.left) | (x > room.right) | (y < room.bottom) | (y > room.top)
    gaps = np.hypot(x[:, None] - others[None, :, 0], y[:, None] - others[None, :, 1])
    return int(np.count_nonzero(outside | (gaps < RADIUS + _CLEAR).any(axis=1)))


def _shifted(points: Floats, aside: float) -> Floats:
    """The parallel of a curve, to its right [n, 2]."""
    along = np.gradient(points, axis=0)
    along /= np.hypot(*along.T)[:, None]
    parallel: Floats = points + aside * np.column_stack([along[:, 1], -along[:, 0]])
    return parallel


def draw_ribbon(axes: Axes, ribbon: Ribbon) -> None:
    """Draws the lines of a link, and a head at its end; each line's gid names the link."""
    aside = -ribbon.width / 2
    for colour, width in ribbon.stripes:
        axes.plot(
            *_shifted(ribbon.middle, aside + width / 2).T,
            color=colour,
            linewidth=width,
            solid_capstyle="butt",
            gid=" > ".join(ribbon.link),
            zorder=1,
        )
        aside += width
    forward = ribbon.middle[-1] - ribbon.middle[-2]
    forward /= np.hypot(*forward)
    sideward = np.array([-forward[1], forward[0]]) * (ribbon.width / 2 + 2.2)
    tip, base = ribbon.middle[-1] + 2.0 * forward, ribbon.middle[-1] - 5.5 * forward
    head = [tip, base + sideward, base - sideward]
    axes.add_patch(Polygon(head, closed=True, color=ribbon.colour, linewidth=0, zorder=1.2))
