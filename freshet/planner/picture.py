"""Pictures of plans: trees over regions, and algorithms by cost and time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from freshet.planner.plan import Plan
from freshet.planner.problem import Network
from freshet.report.figures import INK, PALETTE, finish, new_figure

_PANEL_INCHES = 7.2
_LEAF_INCHES = 0.42
_TITLE_INCHES = 0.5
_MOST_PANELS = 8
"""Trees that are drawn: those with most of the data."""

_PANELS_IN_A_ROW = 2
_MARKERS = "os^vDP*X"

Edges = tuple[tuple[str, str], ...]


def draw_plan(plan: Plan, network: Network) -> Figure:
    """The trees of a plan, one panel each, from the source on the left to the last on the right.

    The colour of the lines is the tree's, that of a dot the region's provider. A dot is filled for
    the source and destinations, and hollow for waypoints. Each line tells its price and its load,
    each region the VMs that it has for all trees.

    Args:
        plan: to draw.
        network: with its prices.
    """
    shares: dict[Edges, float] = defaultdict(float)
    for stripe in plan.stripes:
        shares[stripe.edges] += stripe.fraction
    ordered = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    drawn = ordered[:_MOST_PANELS]
    columns = min(_PANELS_IN_A_ROW, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    height = _TITLE_INCHES + _LEAF_INCHES * max(_leaf_count(edges) for edges, _ in drawn)
    figure = Figure(
        figsize=(_PANEL_INCHES * columns, _TITLE_INCHES + height * rows), layout="constrained"
    )
    figure.patch.set_alpha(0)
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for number, axes in enumerate(panels):
        axes.set_axis_off()
        axes.patch.set_alpha(0)
        if number < len(drawn):
            _draw_tree(axes, plan, network, *drawn[number], PALETTE[number % len(PALETTE)])
    left_out = len(ordered) - len(drawn)
    figure.suptitle(
        f"{plan.algorithm}: {plan.predicted_time_s:.4g} s, ${plan.cost.total_usd:.2f} "
        f"(${plan.cost.egress_usd:.2f} egress, ${plan.cost.instance_usd:.2f} VMs)"
        + (f"; {left_out} smaller trees are not drawn" if left_out else ""),
        color=INK,
    )
    return figure


def draw_tradeoff(plans: Sequence[tuple[str, Plan]], curve: Sequence[Plan], knee: int) -> Figure:
    """Cost over time: algorithms as points, the frontier as a line with its knee.

    Args:
        plans: algorithms' plans by name.
        curve: the frontier.
        knee: index of its knee.
    """
    figure, axes = new_figure("cost, VMs billed as used ($)")
    axes.set_xlabel("predicted time (s)")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    times = [plan.predicted_time_s for plan in curve]
    costs = [plan.cost_as_used_usd for plan in curve]
    axes.plot(times, costs, color=PALETTE[0], marker="o", markersize=3, label="optimal")
    axes.annotate(
        f"knee: {times[knee]:.4g} s, ${costs[knee]:.2f}",
        (times[knee], costs[knee]),
        xytext=(8, 10),
        textcoords="offset points",
        color=INK,
    )
    axes.plot(times[knee], costs[knee], "o", color=PALETTE[0], markersize=9, fillstyle="none")
    for number, (name, plan) in enumerate(plans, start=1):
        axes.plot(
            plan.predicted_time_s,
            plan.cost_as_used_usd,
            _MARKERS[number // len(PALETTE) % len(_MARKERS)],
            color=PALETTE[number % len(PALETTE)],
            label=name,
        )
    finish(figure, axes, legend=False)
    axes.legend(frameon=False, labelcolor=INK, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _children(edges: Edges) -> dict[str, list[str]]:
    children: dict[str, list[str]] = defaultdict(list)
    for u, v in edges:
        children[u].append(v)
    return children


def _leaf_count(edges: Edges) -> int:
    return len({v for _, v in edges} - {u for u, _ in edges})


def _places(source: str, edges: Edges) -> dict[str, tuple[float, float]]:
    """Hops from the source, and a row: leaves one below the other, others amid their children."""
    children, hops = _children(edges), {source: 0}
    for u, v in edges:
        hops[v] = hops[u] + 1
    rows: dict[str, float] = {}
    pending = [source]
    while pending:
        region = pending[-1]
        below = sorted(children.get(region, []))
        missing = [child for child in below if child not in rows]
        if missing:
            pending.append(missing[0])
            continue
        middle = sum(rows[child] for child in below) / len(below) if below else None
        leaves = sum(1 for other in rows if not children.get(other))
        rows[pending.pop()] = float(leaves) if middle is None else middle
    return {region: (float(hops[region]), rows[region]) for region in rows}


def _draw_tree(
    axes: Axes, plan: Plan, network: Network, edges: Edges, share: float, colour: str
) -> None:
    places = _places(plan.source, edges)
    providers = sorted({region.partition(":")[0] for region in network.regions})
    for u, v in edges:
        (x, y), (to_x, to_y) = places[u], places[v]
        axes.plot([x, x + 0.25, to_x], [y, to_y, to_y], color=colour, linewidth=1.8, zorder=1)
        price = network.price_usd_per_gb[network.index[u], network.index[v]]
        text = f"${price:.4g}/GB, {share * plan.volume_gb:.4g} GB"
        axes.text(to_x - 0.37, to_y - 0.06, text, fontsize=6.5, color=INK, ha="center", va="bottom")
    for region, (x, y) in places.items():
        dot = PALETTE[-1 - providers.index(region.partition(":")[0]) % len(PALETTE)]
        is_end = region == plan.source or region in plan.destinations
        axes.plot(x, y, "o", color=dot, markersize=9, fillstyle="full" if is_end else "none")
        count = plan.vms[region]
        label = f"{region}\n{count} VM" if count == 1 else f"{region}\n{count} VMs"
        is_inner = region in {u for u, _ in edges}
        axes.annotate(
            label,
            (x, y),
            xytext=(-2, -6) if is_inner else (8, 0),
            textcoords="offset points",
            fontsize=7.5,
            color=INK,
            ha="right" if is_inner else "left",
            va="top" if is_inner else "center",
        )
    axes.set_title(f"{share:.1%} of {plan.volume_gb:g} GB", color=colour, fontsize=9)
    depth = max(x for x, _ in places.values())
    axes.set_xlim(-0.75, depth + 0.75)
    axes.set_ylim(_leaf_count(edges) - 0.5, -0.8)
