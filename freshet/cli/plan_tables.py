"""What ``freshet plan`` prints for people: trees, costs, changes, tables."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.tree import Tree

from freshet.planner import ConfidentPlan, Network, Plan, StreamPlan
from freshet.planner.changes import Changes, TreeChange
from freshet.planner.flow import Edges, Flow, flow_of

_MOST_TREES = 12
"""That are printed; the JSON has all."""


def shown_trees(plan: Plan | StreamPlan, network: Network) -> list[RenderableType]:
    """Each tree with its share; each link with its price, its traffic and its load."""
    flow = flow_of(plan, network)
    shown: list[RenderableType] = [
        _shown_tree(plan, flow, number, edges, share)
        for number, (edges, share) in enumerate(flow.trees[:_MOST_TREES], start=1)
    ]
    left_out = flow.trees[_MOST_TREES:]
    if left_out:
        share = sum(share for _, share in left_out)
        shown.append(f"{len(left_out)} smaller trees with {share:.2%} are in the JSON.")
    counts = ", ".join(f"{region} {count}" for region, count in plan.vms.items())
    return [*shown, f"VMs: {counts}."]


def _shown_tree(
    plan: Plan | StreamPlan, flow: Flow, number: int, edges: Edges, share: float
) -> Tree:
    root = Tree(f"Tree {number}, {share:.2%}: from {plan.source}")
    nodes, delays = {plan.source: root}, _delays(plan, edges)
    for u, v in edges:
        use = flow.links[u, v]
        parts = [v if v in plan.destinations else f"{v} (waypoint)"]
        if use.price_usd_per_gb is not None:
            parts.append(f"${use.price_usd_per_gb:.4g}/GB")
        parts.append(f"{share * flow.amount:.4g} {flow.unit}")
        if use.load is not None:
            parts.append(f"link {use.load:.0%} full")
        if v in delays:
            parts.append(f"after {delays[v]:.3g} s")
        nodes[v] = nodes[u].add(", ".join(parts))
    return root


def _delays(plan: Plan | StreamPlan, edges: Edges) -> dict[str, float]:
    """Delay of each destination along a tree."""
    if not isinstance(plan, StreamPlan):
        return {}
    number = [stripe.edges for stripe in plan.stripes].index(edges)
    return {path.destination: path.delay_s for path in plan.paths if path.stripe == number}


def cost_lines(plan: Plan) -> list[str]:
    """Time and cost of a batch, and how near the best it is."""
    cost = plan.cost
    lines = [
        f"Predicted time {plan.predicted_time_s:.4g} s; VMs billed for {plan.time_budget_s:.4g} s.",
        f"Cost ${cost.total_usd:.4f}: ${cost.egress_usd:.4f} egress and ${cost.instance_usd:.4f} "
        f"VMs; ${plan.cost_as_used_usd:.4f} were VMs billed as used.",
    ]
    if cost.lower_bound_usd > 0:
        lines.append(
            f"No plan costs less than ${cost.lower_bound_usd:.4f}: this one is within "
            f"{cost.gap:.3%} of the best. Solved in {plan.solve_time_s:.2f} s."
        )
    return lines


def stream_lines(plan: StreamPlan) -> list[str]:
    """Delay, rate and hourly cost of a stream, and how near the best it is."""
    cost = plan.cost
    slowest = max(plan.paths, key=lambda path: path.delay_s)
    asked = "" if plan.freshness_s is None else f" of the {plan.freshness_s:g} s allowed"
    lines = [
        f"Predicted delay of a chunk at most {plan.predicted_delay_s:.3g} s{asked}: "
        f"{' → '.join(slowest.regions)}.",
        f"Carries up to {plan.capacity_gb_per_s:.4g} GB/s at the load that is allowed; "
        f"{plan.gb_per_s:g} GB/s are asked for.",
        f"Cost ${cost.total_usd_per_h:.4f} per hour: ${cost.egress_usd_per_h:.4f} egress and "
        f"${cost.instance_usd_per_h:.4f} VMs.",
    ]
    if cost.lower_bound_usd_per_h > 0:
        lines.append(
            f"No plan costs less than ${cost.lower_bound_usd_per_h:.4f} per hour: this one is "
            f"within {cost.gap:.3%} of the best. Solved in {plan.solve_time_s:.2f} s."
        )
    return lines


def confidence_lines(found: ConfidentPlan, usual: Plan, usual_probability: float) -> list[str]:
    """How sure a plan is, and what that costs more than the plan without."""
    asked = _percent(found.confidence)
    more = max(0.0, found.plan.cost.total_usd - usual.cost.total_usd)
    ratio = more / usual.cost.total_usd if usual.cost.total_usd > 0 else 0.0
    price = f"the price of certainty is ${more:.4f} ({ratio:.2%})" if more else "certainty is free"
    return [
        f"In time with probability {_percent(found.probability)} (asked for: {asked}); done within "
        f"{found.time_at_confidence_s:.4g} s with {asked}.",
        f"Without the spread the plan costs ${usual.cost.total_usd:.4f}, and is in time with "
        f"{_percent(usual_probability)}: {price}.",
    ]


def change_lines(changed: Changes, trees_kept: float, vms_kept: float) -> list[RenderableType]:
    """What stays of the running plan, and what does not."""
    lines: list[RenderableType] = [
        f"Kept: {trees_kept:.2%} of the data on its tree, {vms_kept:.0%} of the VMs."
    ]
    moved = [tree for tree in changed.trees if abs(tree.after - tree.before) > 1e-6]
    if moved:
        table = Table("tree", "before", "now")
        for tree in moved:
            table.add_row(_one_line(tree), f"{tree.before:.2%}", f"{tree.after:.2%}")
        lines.append(table)
    if changed.vms:
        counts = (f"{region} {old} → {new}" for region, (old, new) in changed.vms.items())
        lines.append(f"VMs that change: {', '.join(counts)}.")
    return lines


def _one_line(tree: TreeChange) -> str:
    return ", ".join(f"{u} → {v}" for u, v in tree.edges)


def frontier_table(plans: tuple[Plan, ...], knee: int) -> Table:
    """The cheapest plan for each of a row of times."""
    shown = Table("time (s)", "cost ($)", "egress ($)", "VMs ($)", "trees", "gap", "")
    for number, plan in enumerate(plans):
        shown.add_row(
            f"{plan.predicted_time_s:.4g}",
            f"{plan.cost_as_used_usd:.4f}",
            f"{plan.cost.egress_usd:.4f}",
            f"{plan.cost_as_used_usd - plan.cost.egress_usd:.4f}",
            str(len({stripe.edges for stripe in plan.stripes})),
            f"{plan.cost.gap:.3%}",
            "knee" if number == knee else "",
        )
    return shown


def algorithms_table(plans: Mapping[str, Plan | str]) -> Table:
    """All algorithms' plans, or why they have none."""
    shown = Table(
        "algorithm", "time (s)", "cost as used ($)", "egress ($)", "trees", "solved in (s)"
    )
    for name, plan in plans.items():
        if isinstance(plan, str):
            shown.add_row(name, "-", "-", "-", "-", plan)
            continue
        shown.add_row(
            name,
            f"{plan.predicted_time_s:.4g}",
            f"{plan.cost_as_used_usd:.4f}",
            f"{plan.cost.egress_usd:.4f}",
            str(len({stripe.edges for stripe in plan.stripes})),
            f"{plan.solve_time_s:.2f}",
        )
    return shown


def _percent(probability: float) -> str:
    """A probability, cut and not rounded, so that only certainty is 100 %."""
    return f"{math.floor(probability * 1e4 + 1e-6) / 1e2:g} %"
