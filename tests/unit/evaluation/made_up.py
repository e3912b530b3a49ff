"""Small made-up series and ratings for the tests of this folder."""

from __future__ import annotations

import numpy as np

from freshet.evaluation.ratings import Ratings
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


def ratings(count: int = 400, seed: int = 0, *, users: int = 12, movies: int = 20) -> Ratings:
    """Ratings by tastes of two dimensions, in bursts; some users and movies come late.

    A movie that has come may be rated again.
    """
    rng = np.random.default_rng(seed)
    taste, kind = rng.normal(size=(users, 2)), rng.normal(size=(movies, 2))
    come = np.linspace(0.4, 1, count)  # share of users and movies that there are
    user = np.repeat(rng.random(count // 4 + 1), 4)[:count] * come * users
    movie = rng.random(count) * come * movies
    user, movie = user.astype(np.int64), movie.astype(np.int64)
    liking = 3 + np.einsum("nd,nd->n", taste[user], kind[movie]) + rng.normal(0, 0.2, count)
    stars = np.clip(np.rint(2 * liking) / 2, 0.5, 5)
    return Ratings(
        [f"u{i}" for i in range(users)], [f"m{i}" for i in range(movies)], user, movie, stars
    )
