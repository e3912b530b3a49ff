"""Draws cost over the SLO, with what came too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure as Picture

from benchmarks.figures import percentile
from freshet.report.figures import PALETTE, new_figure

if TYPE_CHECKING:
    from benchmarks.multicast_cost import Measured


def picture(found: list[Measured]) -> Picture:
    """Our ways as curves over the SLO, MirrorMaker's as lines at what they cost."""
    figure, axes = new_figure("$ for a million changes")
    colours = iter(PALETTE)
    for name, direct in (("multicast", False), ("direct", True)):
        curve = [
            each
            for each in found
            if each.variant.slo_s is not None and each.variant.direct is direct
        ]
        slos = [each.variant.slo_s for each in curve]
        costs = [each.usd_per_million for each in curve]
        axes.plot(slos, costs, marker="o", color=next(colours), label=name)
        for each in curve:
            axes.annotate(
                f"p99 {percentile(each.lags_s, 99):.2g} s\n{each.late:.1%} late",
                (each.variant.slo_s, each.usd_per_million),
                textcoords="offset points",
                xytext=(0, 7),
                ha="center",
                fontsize=7,
            )
    for each in found:
        if each.variant.slo_s is None:
            label = f"{each.variant.name}: p99 {percentile(each.lags_s, 99):.1f} s"
            axes.axhline(each.usd_per_million, ls="--", color=next(colours), label=label)
    axes.set_xscale("log")
    slos = sorted({each.variant.slo_s for each in found if each.variant.slo_s is not None})
    axes.set_xticks(slos, [f"{slo:g}" for slo in slos], minor=False)
    axes.minorticks_off()
    axes.margins(x=0.12)
    axes.set_xlabel("SLO, s")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    return figure
