"""Figures for reports: they read on light and on dark pages, and need no other file."""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK = "#010203"
"""Text and axes are drawn in a colour that nothing else has, which becomes the page's own."""

PALETTE = ("#2f86d2", "#df7a26", "#3a9b5c", "#b0569f", "#c9a227", "#6d6fd0", "#3aa3a8", "#a0552d")
"""Told apart by colour-blind readers too as far as eight can be; readable on white and black."""

_SIZE_INCHES = (8.6, 3.4)
_PNG_DPI = 110


class Plot(NamedTuple):
    """A figure with its place in the report."""

    name: str
    """Of its PNG, without the suffix."""

    title: str
    caption: str
    """How to read it."""

    figure: Figure

    on_white: bool = False
    """Whether it has a ground of its own, instead of the page's."""


def new_figure(y_label: str) -> tuple[Figure, Axes]:
    """An empty figure of a report's width."""
    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    axes.set_ylabel(y_label)
    return figure, axes


def finish(figure: Figure, axes: Axes, *, legend: bool = True) -> Figure:
    """Gives the figure its grid, colours and legend."""
    axes.grid(color=INK, alpha=0.15, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(which="both", colors=INK)
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)
    if legend:
        axes.legend(frameon=False, labelcolor=INK)
    return figure


def to_svg(figure: Figure) -> str:
    """The figure as an SVG element, to be put into a page as it is."""
    out = io.StringIO()
    # Names of shapes follow from the shapes alone, so that the same figure is the same text.
    with rc_context({"svg.hashsalt": "freshet"}):
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def to_png(figure: Figure) -> bytes:
    """The figure as a PNG on white."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_PNG_DPI, facecolor="white")
    return out.getvalue()


def rolling_mean(values: npt.ArrayLike, width: int) -> npt.NDArray[np.float64]:
    """Mean of the last ``width`` values at each point, of fewer at the beginning [n]."""
    filled = np.asarray([np.nan if v is None else v for v in np.atleast_1d(values)], np.float64)
    known = np.isfinite(filled)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, filled, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    last = np.arange(1, len(filled) + 1)
    first = np.maximum(0, last - width)
    count = counts[last] - counts[first]
    mean: npt.NDArray[np.float64] = np.where(
        count > 0, (sums[last] - sums[first]) / np.maximum(count, 1), np.nan
    )
    return mean
