"""The plots of an evaluation's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from freshet.evaluation.variants import NONE, UNLIMITED
from freshet.report.figures import INK, PALETTE, Plot, finish, new_figure, rolling_mean

_SMOOTHING_DAYS = 1.0
_DAY_S = 86_400.0
_LEAST_STEPS = 5


def draw_plots(result: Mapping[str, Any]) -> list[Plot]:
    """Every plot that the result has data for.

    Args:
        result: as ``build_result`` makes it.
    """
    rows = [row for row in result["rows"] if row["loss"] is not None]
    colors = _colors(rows)
    budgets = sorted({row["budget"] for row in rows if row["budget"] is not None})
    shown = budgets[len(budgets) // 2] if budgets else None
    at = f"at a budget of {shown:g}" if shown is not None else ""
    return [
        Plot(
            "loss",
            "Loss against budget",
            f"Mean error over all queries ({result['unit']}) for the budget in updates "
            f"({result['budget_unit']}). Lower is better. The dashed line computes everything in "
            "every step, the dotted one nothing after the beginning.",
            _loss_by_budget(result, rows, colors),
        ),
        Plot(
            "time",
            "Loss over time",
            f"The same error {at}, averaged over the last day of event time.",
            _loss_over_time(result, rows, colors, shown),
        ),
        Plot(
            "updates",
            "Updates of each key",
            f"How often each key was computed {at}, keys in descending order for each policy.",
            _updates(result, rows, colors, shown),
        ),
        Plot(
            "staleness",
            "Staleness against loss",
            "Mean age of what was served, and what it cost in loss; a dot for each policy and "
            "budget. Fresher is not always better: what counts is which values are fresh.",
            _staleness(result, rows, colors),
        ),
    ]


def _colors(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names = list(dict.fromkeys(row["policy"] for row in rows if row["budget"] is not None))
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def _of(rows: Sequence[Mapping[str, Any]], policy: str) -> list[Mapping[str, Any]]:
    found = [row for row in rows if row["policy"] == policy]
    return sorted(found, key=lambda row: row["budget"] or 0.0)


def _loss_by_budget(
    result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], colors: Mapping[str, str]
) -> Figure:
    figure, axes = new_figure(result["unit"])
    for name, color in colors.items():
        part = _of(rows, name)
        axes.plot(
            [row["budget"] for row in part],
            [row["loss"] for row in part],
            color=color,
            marker="o",
            markersize=4,
            label=name,
        )
    for name, style in ((UNLIMITED, "--"), (NONE, ":")):
        for row in _of(rows, name):
            axes.axhline(row["loss"], color=INK, linestyle=style, linewidth=1.0, label=name)
    axes.set_xscale("log")
    budgets = sorted({row["budget"] for row in rows if row["budget"] is not None})
    axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    axes.minorticks_off()
    axes.set_xlabel(f"budget, updates {result['budget_unit']}")
    return finish(figure, axes)


def _loss_over_time(
    result: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    colors: Mapping[str, str],
    budget: float | None,
) -> Figure:
    figure, axes = new_figure(result["unit"])
    per_day = _DAY_S / result["step_seconds"]
    width = max(_LEAST_STEPS, round(_SMOOTHING_DAYS * per_day))
    for row in rows:
        if row["budget"] not in (None, budget):
            continue
        losses = result["loss_by_step"][_arm_name(row)]
        days = np.arange(1, len(losses) + 1) / per_day
        style = {UNLIMITED: "--", NONE: ":"}.get(row["policy"], "-")
        color = colors.get(row["policy"], INK)
        mean = rolling_mean(losses, width)
        axes.plot(days, mean, color=color, linestyle=style, linewidth=1.3, label=row["policy"])
    axes.set_xlabel("days of event time since the first query")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return finish(figure, axes)


def _updates(
    result: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    colors: Mapping[str, str],
    budget: float | None,
) -> Figure:
    figure, axes = new_figure("updates")
    for row in rows:
        if row["budget"] is None or row["budget"] != budget:
            continue
        counts = sorted(result["updates_by_key"][_arm_name(row)], reverse=True)
        edges = np.arange(len(counts) + 1) + 0.5
        color = colors[row["policy"]]
        axes.stairs(counts, edges, color=color, label=row["policy"], linewidth=1.6, baseline=None)
    axes.set_xlabel("keys, most often computed first")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    return finish(figure, axes)


def _staleness(
    result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], colors: Mapping[str, str]
) -> Figure:
    figure, axes = new_figure(result["unit"])
    for name, color in colors.items():
        part = [row for row in _of(rows, name) if row["staleness_mean"] is not None]
        hours = [row["staleness_mean"] / 3600 for row in part]
        losses = [row["loss"] for row in part]
        axes.plot(hours, losses, color=color, marker="o", markersize=5, linewidth=0.6, label=name)
    for name, marker in ((UNLIMITED, "*"), (NONE, "x")):
        for row in _of(rows, name):
            if row["staleness_mean"] is not None:
                hour = row["staleness_mean"] / 3600
                axes.plot([hour], [row["loss"]], marker, color=INK, label=name)
    axes.set_xlabel("mean staleness of what was served, hours of event time")
    axes.set_xlim(left=0)
    return finish(figure, axes)


def _arm_name(row: Mapping[str, Any]) -> str:
    return row["policy"] if row["budget"] is None else f"{row['policy']} at {row['budget']:g}"
