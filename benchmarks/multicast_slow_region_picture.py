"""Draws the regions' freshness in each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure as Picture

from freshet.report.figures import PALETTE, new_figure

if TYPE_CHECKING:
    from benchmarks.multicast_slow_region import Turn


def picture(turns: list[Turn]) -> Picture:
    """Shares of the probes that took longer: a region a colour, dashed where the slow one is."""
    figure, axes = new_figure("share of the probes that took longer")
    for turn in turns:
        named = {region.partition(":")[2]: lags_s for region, lags_s in turn.lags_s.items()}
        if turn.slow is not None:
            named["the slow region"] = turn.slow.lags_s
        for colour, (name, lags_s) in zip(PALETTE, named.items(), strict=False):
            ordered = np.sort(lags_s)
            longer = 1 - np.arange(len(ordered)) / len(ordered)
            style = "-" if turn.slow is None else "--"
            axes.plot(ordered, longer, style, color=colour, linewidth=1, label=_label(turn, name))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("from change to readable, s")
    axes.legend(fontsize=7)
    return figure


def _label(turn: Turn, name: str) -> str | None:
    """Each kind of turn is told once."""
    if turn.number >= 2:
        return None
    return f"{name}, {'without' if turn.slow is None else 'with'} the slow region"
