"""What pictures of plans are made of: a canvas in points, texts, markers, colours."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from freshet.planner.plan import Plan
from freshet.planner.stream import StreamPlan
from freshet.report.figures import INK, PALETTE

FONT, SMALL_FONT, BADGE_FONT = 8.0, 7.5, 7.0

MOST_TREES = len(PALETTE)
"""Trees that have a colour of their own: those with most of the data."""

REST = "#9a9a9a"
"""The colour of all other trees."""

_POINTS_PER_INCH = 72.0
_SHAPES = {"aws": "o", "azure": "s", "gcp": "^"}
_OTHER_SHAPES = "DPvXph8"


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure whose one axes covers all of it, with points as units."""
    figure = Figure(
        figsize=(width / _POINTS_PER_INCH, height / _POINTS_PER_INCH),
        dpi=_POINTS_PER_INCH,
        facecolor="white",
    )
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0.0, width)
    axes.set_ylim(0.0, height)
    return figure, axes


def colour_of(number: int) -> str:
    """The colour of a tree by its place among all, largest first."""
    return PALETTE[number] if number < MOST_TREES else REST


def shape_of(region: str) -> str:
    """The shape of the marker of a region: its provider's."""
    provider = region.partition(":")[0]
    # Any provider's shape must not depend on which others there are.
    other = _OTHER_SHAPES[sum(provider.encode()) % len(_OTHER_SHAPES)]
    return _SHAPES.get(provider, other)


def role_of(plan: Plan | StreamPlan, region: str) -> str:
    """What a region is to a plan."""
    if region == plan.source:
        return "source"
    return "destination" if region in plan.destinations else "waypoint"


def mark(axes: Axes, spot: tuple[float, float], shape: str, role: str) -> None:
    """Draws the marker of a region."""
    if role == "source":
        _mark(axes, spot, shape, "source ring")
    _mark(axes, spot, shape, role)


def _mark(axes: Axes, spot: tuple[float, float], shape: str, role: str) -> None:
    size = {"source ring": 15.0, "source": 9.0, "destination": 10.0, "waypoint": 8.5}[role]
    hollow = role in ("source ring", "waypoint")
    axes.plot(
        *spot,
        marker=shape,
        markersize=size,
        markerfacecolor="white" if hollow else INK,
        markeredgecolor=INK,
        markeredgewidth=1.2,
        linestyle="none",
        zorder=2,
    )


def write(
    axes: Axes, x: float, y: float, text: str, size: float, ha: str = "left", zorder: float = 3
) -> Text:
    """Writes a text; y is that of its middle."""
    # A price's dollar sign begins no formula.
    return axes.text(
        x, y, text, fontsize=size, color=INK, ha=ha, va="center", zorder=zorder, parse_math=False
    )


def size_of(text: Text) -> tuple[float, float]:
    """Width and height of a text, in points: of the renderer, at 72 dots an inch."""
    box = text.get_window_extent()
    return float(box.width), float(box.height)


def right_of(text: Text) -> float:
    """Where a text ends, points."""
    return float(text.get_window_extent().x1)
