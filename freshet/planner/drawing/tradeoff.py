"""Picture of algorithms by the cost and the time of their plans."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from freshet.planner.plan import Plan
from freshet.report.figures import INK, PALETTE, finish, new_figure

_MARKERS = "os^vDP*X"


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
