"""Draws how a region fills, and the others' freshness meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure as Picture

from freshet.report.figures import PALETTE, new_figure

if TYPE_CHECKING:
    from benchmarks.multicast_bootstrap import Bootstrap, Course


def picture(found: list[Bootstrap], course: Course) -> Picture:
    """Keys in the new region's store over time, and a point for each probe of the others."""
    figure, axes = new_figure("others: from change to readable, s")
    for colour, (region, lags) in zip(PALETTE[1:], course.lags.items(), strict=False):
        name = region.partition(":")[2]
        axes.scatter(*zip(*lags, strict=True), s=2, color=colour, alpha=0.5, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("after the first live change, s")
    keys = axes.twinx()
    keys.plot(*zip(*course.keys, strict=True), color=PALETTE[0], label="keys in the new region")
    keys.set_ylabel("keys")
    for each in found:
        keys.axvspan(each.began_s, each.began_s + each.took_s, color=PALETTE[0], alpha=0.12)
    figure.legend(fontsize=7, loc="outside upper center", ncols=4)
    return figure
