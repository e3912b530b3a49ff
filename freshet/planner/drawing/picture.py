"""The picture of a plan: its trees on maps, and a table of its links."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from freshet.planner.drawing.layout import lay_out
from freshet.planner.drawing.marks import MOST_TREES, canvas, write
from freshet.planner.drawing.places import Place
from freshet.planner.drawing.plan_map import View, draw_map
from freshet.planner.drawing.ribbons import Coloured, coloured_trees
from freshet.planner.drawing.tables import draw_legend, draw_table, legend_height, table_height
from freshet.planner.flow import Flow, flow_of
from freshet.planner.plan import Plan
from freshet.planner.problem import Network
from freshet.planner.stream import StreamPlan

_WIDTH, _EDGE = 1000.0, 12.0
_TITLE, _SMALL_TITLE = 30.0, 18.0
_TITLE_FONT, _SMALL_TITLE_FONT = 11.0, 9.0
_MOST_NUMBERS = 30
"""Links that one map can show with their numbers; where there are more, each tree has its map."""

_IN_A_ROW = 2


def draw_plan(
    plan: Plan | StreamPlan, network: Network, places: Mapping[str, Place] | None = None
) -> Figure:
    """The trees of a plan on a map of the regions that they use, above a table of the links.

    A colour is a tree's, a marker's shape the region's provider. Numbers on links are those of the
    rows of the table. Where there are many links, each tree has a map of its own too. Regions
    without a place are beside the map, in columns by hops.

    Args:
        plan: to draw.
        network: with its prices and bandwidths.
        places: of regions, as far as they are known.
    """
    flow, width = flow_of(plan, network), _WIDTH - 2 * _EDGE
    trees, hops = coloured_trees(flow), _hops(plan)
    numbers = {link: number for number, link in enumerate(_in_order(flow), start=1)}
    alone = trees[:MOST_TREES] if len(numbers) > _MOST_NUMBERS and len(trees) > 1 else []
    layout = lay_out(hops, places or {}, width)
    small = lay_out(hops, places or {}, (width - _EDGE) / _IN_A_ROW)
    row_height = small.height + _SMALL_TITLE
    panels_height = row_height * -(-len(alone) // _IN_A_ROW)
    legend, table = legend_height(flow), table_height(flow)
    y = _TITLE + layout.height + legend + panels_height + table + _EDGE
    figure, axes = canvas(_WIDTH, y)
    write(axes, _EDGE, y - _TITLE / 2, _title(plan), _TITLE_FONT)
    y -= _TITLE + layout.height
    view = View(plan, trees, {} if alone else numbers, with_vms=True)
    draw_map(axes, view, layout, _EDGE, y)
    draw_legend(axes, plan, flow, _EDGE, y, width)
    y -= legend
    for number, tree in enumerate(alone):
        left = _EDGE + number % _IN_A_ROW * (small.width + _EDGE)
        top = y - number // _IN_A_ROW * row_height
        title = write(axes, left, top - _SMALL_TITLE / 2, _name(number, tree), _SMALL_TITLE_FONT)
        title.set_color(tree.colour)
        view = View(plan, [tree], numbers, with_vms=False)
        draw_map(axes, view, small, left, top - row_height)
    draw_table(axes, flow, numbers, _EDGE, y - panels_height, width)
    return figure


def _name(number: int, tree: Coloured) -> str:
    return f"tree {number + 1}: {tree.share:.1%}"


def _title(plan: Plan | StreamPlan) -> str:
    if isinstance(plan, StreamPlan):
        cost = plan.cost
        return (
            f"{plan.gb_per_s:.4g} GB/s from {plan.source}, delay at most "
            f"{plan.predicted_delay_s:.3g} s, ${cost.total_usd_per_h:.2f} per hour "
            f"(${cost.egress_usd_per_h:.2f} egress, ${cost.instance_usd_per_h:.2f} VMs)"
        )
    return (
        f"{plan.volume_gb:.4g} GB from {plan.source} in {plan.predicted_time_s:.4g} s, "
        f"${plan.cost.total_usd:.2f} (${plan.cost.egress_usd:.2f} egress, "
        f"${plan.cost.instance_usd:.2f} VMs), {plan.algorithm}"
    )


def _hops(plan: Plan | StreamPlan) -> dict[str, int]:
    """Hops from the source to each region, in the tree where they are fewest."""
    fewest = {plan.source: 0}
    for stripe in plan.stripes:
        hops = {plan.source: 0}
        for u, v in stripe.edges:
            hops[v] = hops[u] + 1
            fewest[v] = min(hops[v], fewest.get(v, hops[v]))
    return fewest


def _in_order(flow: Flow) -> list[tuple[str, str]]:
    """Links in the order of the trees, largest first, from the source on."""
    return list(dict.fromkeys(edge for edges, _ in flow.trees for edge in edges))
