"""Small made-up series for the tests of this folder."""

from __future__ import annotations

import numpy as np

from freshet.evaluation.series import SeriesGrid

PERIOD = 4
READING_MS = 900_000
START_MS = 1_704_067_200_000 + READING_MS  # so that the last reading of an hour is on the hour


def grid(
    keys: int = 5, readings: int = 64, seed: int = 0, *, late: bool = False, gaps: bool = False
) -> SeriesGrid:
    """Series with a season of four readings, a drifting level and jumps."""
    rng = np.random.default_rng(seed)
    season = np.tile(rng.normal(0, 1, (PERIOD, keys)), (readings // PERIOD + 1, 1))[:readings]
    jumps = np.cumsum(rng.normal(0, 3, (readings, keys)) * (rng.random((readings, keys)) < 0.1), 0)
    values = season + jumps + rng.normal(0, 0.2, (readings, keys))
    if late:
        values[: readings // 3, 0] = np.nan
    if gaps:
        values[readings // 2, 1] = np.nan
    return SeriesGrid([f"s{i}" for i in range(keys)], values, START_MS, READING_MS, PERIOD)
