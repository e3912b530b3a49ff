"""Draws how long changes take before and during the congestion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure as Picture

from freshet.report.figures import PALETTE, new_figure

if TYPE_CHECKING:
    from benchmarks.multicast_congestion import Floats, Turn

_BIN_S = 2.0


def picture(turns: list[Turn]) -> Picture:
    """Median and p99 over two seconds of sending; solid with priorities, dashed without."""
    figure, axes = new_figure("from change to readable, s")
    for turn in turns:
        style = "--" if turn.priority_share == 0 else "-"
        spells = (turn.uncongested, turn.congested)
        sent_s = np.concatenate([spell.sent_s for spell in spells])
        lags_s = np.concatenate([spell.lags_s for spell in spells])
        is_top = np.concatenate([spell.is_top for spell in spells])
        for colour, (name, which) in zip(
            PALETTE, (("most significant", is_top), ("the rest", ~is_top)), strict=False
        ):
            at, p50, p99 = _quantiles(sent_s[which], lags_s[which])
            axes.plot(at, p50, style, color=colour, label=f"{name}, {turn.name}, p50")
            axes.plot(at, p99, style, color=colour, linewidth=0.7, alpha=0.6)
    axes.axvline(0, color="grey", linewidth=0.6)
    axes.set_yscale("log")
    axes.set_xlabel("sent, s after the congestion began (thin: p99)")
    axes.legend(fontsize=7)
    return figure


def _quantiles(sent_s: Floats, lags_s: Floats) -> tuple[Floats, Floats, Floats]:
    bins = np.floor(sent_s / _BIN_S)
    groups = [lags_s[bins == each] for each in np.unique(bins)]
    at = (np.unique(bins) + 0.5) * _BIN_S
    p50, p99 = (np.array([np.percentile(each, percent) for each in groups]) for percent in (50, 99))
    return at, p50, p99
