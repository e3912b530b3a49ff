"""The report's plots: each a figure that reads on light and on dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from freshet.demo.regions import PROFILES
from freshet.demo.tables import REGRET_PROPORTIONAL, ROUND_ROBIN
from freshet.report.figures import INK, Plot, finish, new_figure, rolling_mean

COLORS = {REGRET_PROPORTIONAL: "#2f86d2", ROUND_ROBIN: "#df7a26"}
"""Told apart by colour-blind readers too, and readable on white and on near-black."""

ROLLING_STEPS = 24

PLAN = "plan"
"""Name of the plot that belongs to the regions; the others are of the policies."""

_DAY_MS = 86_400_000


def draw_plots(report: Mapping[str, Any]) -> list[Plot]:
    """Every plot for which the report has data."""
    measured = {n: p for n, p in report["policies"].items() if p["loss_by_step"]}
    return (_policy_plots(report, measured) if measured else []) + _plan_plots(report)


def _policy_plots(report: Mapping[str, Any], measured: Mapping[str, Any]) -> list[Plot]:
    steps_per_day = _DAY_MS / report["steps"]["step_ms"]
    days = np.arange(1, report["steps"]["count"] + 1) / steps_per_day
    plots = [
        Plot(
            "loss",
            "Prediction loss over time",
            "Mean absolute error of the forecasts in units of each machine's naive error, over the"
            " last 24 hours of event time. Lower is better. Both policies begin with the same"
            " features, so the lines part as the budget is spent differently.",
            _loss(measured, days),
        ),
        Plot(
            "updates",
            "Updates per machine",
            "How often each machine's feature was computed, machines in descending order for each"
            " policy. Round-robin gives all the same; regret-proportional gives most to the few"
            " machines whose stale features predict badly.",
            _updates(measured),
        ),
        Plot(
            "staleness",
            "Staleness",
            "Age, in event time, of the features that answered the queries, averaged over machines."
            " A policy that minimises regret lets features age that still predict well, so the"
            " lower line is not the better one.",
            _staleness(measured, days),
        ),
    ]
    if len(measured) == len(COLORS):
        plots.append(
            Plot(
                "machines",
                "Loss of each machine",
                "Each dot is a machine. Below the diagonal regret-proportional predicts it better,"
                " above it worse. Both axes are logarithmic.",
                _machines(measured),
            )
        )
    return plots


def _plan_plots(report: Mapping[str, Any]) -> list[Plot]:
    """The plan in force; none before one was computed."""
    # Imported late: the planner takes a second.
    from freshet.planner import StreamPlan, load_network
    from freshet.planner.drawing.picture import draw_plan
    from freshet.planner.drawing.places import load_places

    try:
        plan = StreamPlan.from_dict(report["plan"])
    except KeyError:  # the plan that is in force until the first is computed says less
        return []
    network, places = load_network(str(PROFILES)), load_places(str(PROFILES))
    return [
        Plot(
            PLAN,
            "The plan",
            "How the changes were sent in the end, as the planner in the multicast job had decided"
            " from the volume and the speeds that it saw. Costs are those of an hour like that.",
            draw_plan(plan, network, places),
            on_white=True,
        )
    ]


def _loss(policies: Mapping[str, Any], days: npt.NDArray[np.float64]) -> Figure:
    figure, axes = new_figure("times the naive error")
    for name, policy in policies.items():
        mean = rolling_mean(policy["loss_by_step"], ROLLING_STEPS)
        axes.plot(days[: len(mean)], mean, color=COLORS[name], label=_label(name, policy))
    _time_axis(axes)
    return finish(figure, axes)


def _updates(policies: Mapping[str, Any]) -> Figure:
    figure, axes = new_figure("updates")
    for name, policy in policies.items():
        counts = sorted(policy["updates_by_key"].values(), reverse=True)
        edges = np.arange(len(counts) + 1) + 0.5
        axes.stairs(counts, edges, color=COLORS[name], label=name, linewidth=1.8, baseline=None)
    axes.set_xlabel("machines, most often computed first")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    return finish(figure, axes)


def _staleness(policies: Mapping[str, Any], days: npt.NDArray[np.float64]) -> Figure:
    figure, axes = new_figure("hours")
    for name, policy in policies.items():
        series = policy["staleness_hours_by_step"]
        mean = policy["staleness_hours"]["mean"]
        label = f"{name} (mean {mean:.0f} h)"
        axes.plot(days[: len(series)], series, color=COLORS[name], label=label)
    _time_axis(axes)
    return finish(figure, axes)


def _machines(policies: Mapping[str, Any]) -> Figure:
    figure, axes = new_figure(f"loss with {REGRET_PROPORTIONAL}")
    robin, regret = (policies[name]["loss_by_key"] for name in (ROUND_ROBIN, REGRET_PROPORTIONAL))
    pairs = [(robin[key], regret[key]) for key in robin if robin[key] and regret[key]]
    x, y = np.array(pairs).reshape(-1, 2).T
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = min(x.min(), y.min()) * 0.9, max(x.max(), y.max()) * 1.1
    axes.plot([low, high], [low, high], color=INK, linewidth=0.8, alpha=0.6)
    axes.scatter(x, y, s=14, color=COLORS[REGRET_PROPORTIONAL], alpha=0.75, linewidths=0)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"loss with {ROUND_ROBIN}")
    figure.set_size_inches(4.6, 4.4)
    return finish(figure, axes, legend=False)


def _label(name: str, policy: Mapping[str, Any]) -> str:
    return f"{name} ({policy['loss']:.3f} overall)"


def _time_axis(axes: Axes) -> None:
    axes.set_xlabel("days of event time since the first forecast")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
