"""Whether a quantity stays as it is over time, by a slope that outliers do not move.

The slope is Theil's and Sen's: the median of the slopes of all pairs of samples, with its interval
of 95 %. What counts is how much the quantity grew, on that line, over the time that was watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import theilslopes

SAMPLES_MIN = 10
"""Fewer say nothing about a trend."""


@dataclass(frozen=True)
class Tolerance:
    """Growth over the time that was watched which is not taken for a leak."""

    share: float
    """Of the median."""

    least: float
    """In the quantity's own unit, for small ones."""


@dataclass(frozen=True)
class Trend:
    """How a quantity moved while it was watched."""

    begin: float
    """On the fitted line, in the quantity's own unit."""

    growth: float
    """From the line's begin to its end."""

    growth_low: float
    """The same for the lower end of the slope's interval."""

    growth_high: float
    per_hour: float
    tolerated: float

    @property
    def is_flat(self) -> bool:
        """Not flat: it grew by more than is tolerated, and surely grew at all."""
        return self.growth <= self.tolerated or self.growth_low <= 0


def trend(times_s: Sequence[float], values: Sequence[float], tolerance: Tolerance) -> Trend:
    """Fits a line.

    Args:
        times_s: of the samples, ascending, seconds.
        values: as many; in any unit.
        tolerance: what is not taken for a leak.

    Raises:
        ValueError: fewer than ``SAMPLES_MIN`` samples.
    """
    if len(values) < SAMPLES_MIN:
        raise ValueError(
            f"{len(values)} samples say nothing of a trend, {SAMPLES_MIN} are needed; soak longer"
        )
    slope, intercept, low, high = theilslopes(values, times_s)
    watched_s = times_s[-1] - times_s[0]
    return Trend(
        begin=float(intercept + slope * times_s[0]),
        growth=float(slope * watched_s),
        growth_low=float(low * watched_s),
        growth_high=float(high * watched_s),
        per_hour=float(slope * 3_600),
        tolerated=max(tolerance.share * float(np.median(values)), tolerance.least),
    )
