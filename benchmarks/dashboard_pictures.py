"""Draws a dashboard's panels from a Prometheus, by the queries that Grafana would send."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.dashboard_files import Dashboard, Panel, Query
from benchmarks.prometheus import Prometheus, Series
from freshet.report.figures import PALETTE

_COLUMNS = 24
_ROW_INCHES = 0.36
_WIDTH_INCHES = 17.0
_STEPS = 150
_LEGEND_MAX = 8
_LEGEND_CHARACTERS = 44
_STEPS_OF_UNIT = {
    "ms": [(1, "ms"), (1e3, "s"), (6e4, "min"), (3.6e6, "h")],
    "s": [(1, "s"), (60, "min"), (3600, "h")],
    "µs": [(1, "µs"), (1e3, "ms"), (1e6, "s")],
    "bytes": [(1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")],
    "Bps": [(1, "B/s"), (1e3, "kB/s"), (1e6, "MB/s")],
    "short": [(1, ""), (1e3, "K"), (1e6, "Mil")],
    "ops": [(1, "ops/s"), (1e3, "K ops/s")],
}
"""Of Grafana's units, from the smallest: factor and name."""


def in_unit(value: float, unit: str) -> str:
    """A value as Grafana shows it, about."""
    if not math.isfinite(value):
        return "no data"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "currencyUSD":
        return f"${value:.3g}"
    steps = _STEPS_OF_UNIT[unit]
    factor, name = next((s for s in reversed(steps) if abs(value) >= s[0]), steps[0])
    number = value / factor
    return f"{number:.0f} {name}".strip() if number >= 100 else f"{number:.3g} {name}".strip()


def picture(
    prometheus: Prometheus,
    dashboard: Dashboard,
    variables: Mapping[str, str],
    start_s: float,
    end_s: float,
) -> Figure:
    """All panels at their places.

    Args:
        prometheus: that has the data.
        dashboard: whose panels.
        variables: values of its variables, and of Grafana's own.
        start_s: begin of the time that is shown, seconds since the epoch.
        end_s: its end.
    """
    rows = max(top + height for _, top, _, height in (panel.at for panel in dashboard.panels))
    figure = Figure(figsize=(_WIDTH_INCHES, rows * _ROW_INCHES + 0.6), layout="constrained")
    figure.suptitle(dashboard.title, fontsize=13)
    grid = figure.add_gridspec(rows, _COLUMNS)
    for panel in dashboard.panels:
        left, top, width, height = panel.at
        axes = figure.add_subplot(grid[top : top + height, left : left + width])
        axes.set_title(panel.title, fontsize=9, loc="left")
        if panel.kind == "stat":
            _stat(axes, prometheus, panel, variables, end_s)
        else:
            _lines(axes, prometheus, panel, variables, start_s, end_s)
    return figure


def _stat(
    axes: Axes, prometheus: Prometheus, panel: Panel, variables: Mapping[str, str], at_s: float
) -> None:
    (query,) = panel.queries
    found = prometheus.query_range(query.filled(variables), at_s, at_s, 1)
    value = float(found[0]["values"][-1][1]) if found else math.nan
    axes.text(0.5, 0.45, in_unit(value, panel.unit), ha="center", va="center", fontsize=17)
    axes.set_xticks([])
    axes.set_yticks([])


def _lines(
    axes: Axes,
    prometheus: Prometheus,
    panel: Panel,
    variables: Mapping[str, str],
    start_s: float,
    end_s: float,
) -> None:
    colours = itertools.cycle(PALETTE)
    step_s = (end_s - start_s) / _STEPS
    drawn = 0
    for query in panel.queries:
        for series in prometheus.query_range(query.filled(variables), start_s, end_s, step_s):
            minutes = [(float(time_s) - start_s) / 60 for time_s, _ in series["values"]]
            values = [float(value) for _, value in series["values"]]
            label = _legend(query, series) if drawn < _LEGEND_MAX else None
            axes.plot(minutes, values, color=next(colours), linewidth=1, label=label)
            drawn += 1
    axes.set_xlim(0, (end_s - start_s) / 60)
    axes.set_ylim(bottom=0)
    if axes.get_ylim()[1] <= 0:
        axes.set_ylim(top=1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: in_unit(value, panel.unit)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} min"))
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.2, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if drawn:
        axes.legend(fontsize=6, frameon=False, loc="upper left", ncols=2).set_in_layout(False)
    else:
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center")


def _legend(query: Query, series: Series) -> str:
    labels = series["metric"]
    text = re.sub(r"{{(\w+)}}", lambda match: str(labels.get(match[1], "")), query.legend)
    return textwrap.shorten(text, _LEGEND_CHARACTERS, placeholder=" ...")
