"""What the colours, shapes and numbers of a plan's picture mean: a legend, and a table of links."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from freshet.planner.drawing.marks import (
    FONT,
    MOST_TREES,
    REST,
    SMALL_FONT,
    colour_of,
    mark,
    right_of,
    shape_of,
    write,
)
from freshet.planner.flow import Flow
from freshet.planner.plan import Plan
from freshet.planner.stream import StreamPlan

_LINE, _ROW = 15.0, 13.0
_LEGEND_COLUMNS = 4
_TABLE_COLUMNS = 2
_ENDS = (14.0, 20.0, 275.0, 318.0, 368.0, 382.0)
"""Where cells of the table end, or begin if they are text."""


def legend_height(flow: Flow) -> float:
    """Points that the legend takes."""
    lines = min(len(flow.trees), MOST_TREES + 1)
    return _LINE * (2 + -(-lines // _LEGEND_COLUMNS))


def table_height(flow: Flow) -> float:
    """Points that the table takes."""
    return _ROW * (2 + -(-len(flow.links) // _TABLE_COLUMNS))


def draw_legend(
    axes: Axes, plan: Plan | StreamPlan, flow: Flow, left: float, top: float, width: float
) -> None:
    """What markers and colours mean."""
    x, y = left, top - _LINE
    roles = ["source", "destination"]
    if set(flow.regions) - {plan.source, *plan.destinations}:
        roles.append("waypoint")
    for role in roles:
        mark(axes, (x + 7, y), "o", role)
        x = right_of(write(axes, x + 19, y, role, FONT)) + 18
    x += 18
    for provider in sorted({region.partition(":")[0] for region in flow.regions}):
        mark(axes, (x + 7, y), shape_of(provider), "waypoint")
        x = right_of(write(axes, x + 19, y, provider, FONT)) + 18
    for number, (colour, text) in enumerate(_tree_lines(flow)):
        column, row = number % _LEGEND_COLUMNS, number // _LEGEND_COLUMNS + 1
        x = left + column * width / _LEGEND_COLUMNS
        axes.plot([x, x + 22], [y - row * _LINE] * 2, color=colour, linewidth=3.0, zorder=1)
        write(axes, x + 28, y - row * _LINE, text, FONT)


def _tree_lines(flow: Flow) -> list[tuple[str, str]]:
    """Colour and share of each tree."""
    lines = [
        (
            colour_of(number - 1),
            f"tree {number}: {share:.1%}, {share * flow.amount:.4g} {flow.unit}",
        )
        for number, (_, share) in enumerate(flow.trees[:MOST_TREES], start=1)
    ]
    rest = flow.trees[MOST_TREES:]
    if rest:
        share = sum(share for _, share in rest)
        lines.append((REST, f"{len(rest)} smaller trees: {share:.1%}, not told apart"))
    return lines


def draw_table(
    axes: Axes,
    flow: Flow,
    numbers: Mapping[tuple[str, str], int],
    left: float,
    top: float,
    width: float,
) -> None:
    """All links, in two columns: price, what is sent, how full the link is, and by which trees."""
    rows, half = -(-len(numbers) // _TABLE_COLUMNS), width / _TABLE_COLUMNS
    top -= _ROW
    trees = _trees_of_links(flow)
    for column in range(min(_TABLE_COLUMNS, len(numbers))):
        heads = ("", "link", "$/GB", flow.unit, "link full", "trees")
        _write_row(axes, left + column * half, top, heads, bold=True)
    for link, number in numbers.items():
        begin = left + (number - 1) // rows * half
        y = top - _ROW * ((number - 1) % rows + 1)
        use = flow.links[link]
        price = "?" if use.price_usd_per_gb is None else f"{use.price_usd_per_gb:.4g}"
        load = "?" if use.load is None else f"{use.load:.0%}"
        cells = (str(number), f"{link[0]} → {link[1]}", price, f"{use.amount:.4g}", load, "")
        _write_row(axes, begin, y, cells)
        for place, tree in enumerate(sorted({min(t, MOST_TREES) for t in trees[link]})):
            x = begin + _ENDS[-1] + 4 + 9 * place
            axes.plot(x, y, "s", color=colour_of(tree), markersize=5.5)


def _write_row(
    axes: Axes, left: float, y: float, cells: tuple[str, ...], *, bold: bool = False
) -> None:
    for number, (cell, x) in enumerate(zip(cells, _ENDS, strict=True)):
        aligned = "left" if number in (1, 5) else "right"
        text = write(axes, left + x, y, cell, SMALL_FONT, ha=aligned)
        text.set_fontweight("bold" if bold else "normal")


def _trees_of_links(flow: Flow) -> dict[tuple[str, str], list[int]]:
    trees: dict[tuple[str, str], list[int]] = {}
    for number, (edges, _) in enumerate(flow.trees):
        for edge in edges:
            trees.setdefault(edge, []).append(number)
    return trees
