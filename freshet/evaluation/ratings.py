"""The ``als`` workload: predict users' ratings from their embeddings (RALF §2.5.1)."""

from __future__ import annotations

import csv
import io
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import numpy as np

from freshet.errors import ConfigError
from freshet.evaluation.workload import Features, Floats, Ints, Step, Workload
from freshet.functions import ALSUserEmbedding, FeatureFunction, Window
from freshet.functions.als import AlsPrior
from freshet.functions.als_training import train_als
from freshet.functions.item_factors import UNKNOWN
from freshet.replay import Recording, ReplayError, parse_time_ms, read_bytes
from freshet.table.checks import suggestion

RATINGS_PER_STEP = 50
RATING_MS = 60_000
"""Event time from one rating to the next, milliseconds."""

TRAINING_RIDGE = 2.0
"""Of the model; that of users' vectors is an option."""

_BEGIN_MS = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp() * 1000)
"""About when the replay begins; long ago, so that none of its events is in the future."""

_COLUMNS = "user_id,movie_id,rating,timestamp"


@dataclass(frozen=True, eq=False)
class Ratings:
    """Who rated what, in order of time."""

    users: list[str]
    """Ids of the users [k]."""

    movies: list[str]
    """Ids of the movies [m]."""

    user: Ints
    """Index of each rating's user [n]."""

    movie: Ints
    """Index of each rating's movie [n]."""

    rating: Floats
    """[n]."""

    def __len__(self) -> int:
        """Number of ratings."""
        return len(self.rating)


def load_ratings(location: str) -> Ratings:
    """Reads ratings, and sorts them by time; those of one time keep their order.

    Args:
        location: path, or URL that smart-open reads, of a CSV of user_id, movie_id, rating and
            timestamp, with or without a line of headings; ``.gz`` and the like are unpacked. Ids
            are any text; timestamps are numbers of any unit, or ISO 8601.

    Raises:
        ReplayError: it can't be read, or is of another form.
    """
    users, movies = dict[str, int](), dict[str, int]()
    user, movie, rating, time = list[int](), list[int](), list[float](), list[float]()
    for number, row in _lines(location):
        try:
            user_id, movie_id, stars, moment = _fields(row)
            rating.append(_number(stars, "rating"))
            time.append(_time(moment))
        except ValueError as e:
            raise ReplayError(f"{location}, line {number}: {e}; a line is {_COLUMNS}") from e
        user.append(users.setdefault(user_id, len(users)))
        movie.append(movies.setdefault(movie_id, len(movies)))
    order = np.argsort(np.array(time, np.float64), kind="stable")
    return Ratings(
        list(users),
        list(movies),
        np.array(user, np.int64)[order],
        np.array(movie, np.int64)[order],
        np.array(rating, np.float64)[order],
    )


def _lines(location: str) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line but a heading and empty ones."""
    try:
        lines = csv.reader(io.StringIO(read_bytes(location).decode("utf-8-sig"), newline=""))
        for number, row in enumerate(lines, start=1):
            if row and not (number == 1 and _is_heading(row)):
                yield number, row
    except (UnicodeDecodeError, csv.Error) as e:
        raise ReplayError(f"{location} is no CSV of {_COLUMNS}: {e}") from e


def _is_heading(row: list[str]) -> bool:
    try:
        float(row[2])
    except ValueError:
        return True
    except IndexError:
        pass
    return False


def _fields(row: list[str]) -> list[str]:
    fields = [field.strip() for field in row]
    if len(fields) != 4:
        raise ValueError(f"it has {len(fields)} field(s)")
    if not (fields[0] and fields[1]):
        raise ValueError("user or movie is empty")
    return fields


def _number(text: str, what: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the {what} is {text}")
    return value


def _time(text: str) -> float:
    try:
        return _number(text, "timestamp")
    except ValueError:
        return float(parse_time_ms(text))


class _ByUser:
    """Ratings, those of one user after those of the other, so that a window is a cut.

    Args:
        user: index of each rating's user [n], in order of time.
        count: users.
        times: [n], ascending for each user.
        values: what a window is made of [n, 2].
    """

    def __init__(self, user: Ints, count: int, times: Ints, values: Floats) -> None:
        order = np.argsort(user, kind="stable")
        self._bounds = np.searchsorted(user[order], np.arange(count + 1))
        self._times, self._values = times[order], values[order]
        self.most = int(np.diff(self._bounds).max())
        """Most ratings of one user."""

    def through(self, user: int, through_ms: int) -> tuple[Ints, Floats]:
        """Times [c] and values [c, 2] of a user's ratings up to a time, which the caller owns."""
        first, end = self._bounds[user : user + 2].tolist()
        count = int(np.searchsorted(self._times[first:end], through_ms, "right"))
        cut = slice(first, first + count)
        return self._times[cut].copy(), self._values[cut].copy()


class RatingsWorkload(Workload):
    """Predictions of every rating just before it is known.

    The first half of the ratings trains a model, whose movies' factors are fixed from then on. The
    second half is at once the events, the queries and the feedback: before each rating the model
    predicts it with the user's vector, and learns the squared error. Only the order of the ratings
    counts, so event time is their ordinal, a minute each: a step is a number of ratings.

    A user without a vector has the cold start's. A movie that the model does not know has no
    factors: it is predicted to be rated as the mean of the first half, plus the user's bias if the
    model has biases, whatever the policy; it is data of nobody's vector.

    Args:
        ratings: in order of time.
        seed: of the training.
        steps: how many steps to replay at most; None for all.
        ratings_per_step: length of a step; None for 50.
        ridge: of users' vectors, above 0.
        dimensions: length of the vectors, at least 1, or 2 with biases.
        cold_start: vector of a new user, and what vectors of little data are drawn to: ``mean``,
            that of the users of the first half, or ``zero``.
        biases: whether the model takes the mean rating and the movies' biases off first, and has
            users' biases; without it a new user of vector zero is predicted to rate 0.
        clip: whether predictions are kept within the smallest and the largest rating of the first
            half. Without it a few vectors that were fitted to hardly more data than they have
            numbers make most of a loss with little ridge.

    Raises:
        ConfigError: an option is out of range, or there is nothing to replay.
    """

    name = "als"
    unit = "mean squared error"
    budget_unit = "of the ratings in a step"
    # New users are predicted, too, and the errors say how urgent their first vectors are.
    missing_regret = 0.0

    def __init__(
        self,
        ratings: Ratings,
        *,
        seed: int = 0,
        steps: int | None = None,
        ratings_per_step: int | None = None,
        ridge: float = 2.0,
        dimensions: int = 16,
        cold_start: str = "mean",
        biases: bool = True,
        clip: bool = True,
    ) -> None:
        per_step = ratings_per_step or RATINGS_PER_STEP
        half = len(ratings) // 2
        available = (len(ratings) - half) // per_step if half else 0
        _check(ratings, available, per_step, ridge, dimensions, cold_start, biases)
        self._per_step, self._ridge = per_step, ridge
        self._cold_start: AlsPrior = "mean" if cold_start == "mean" else "zero"
        self._biases = biases
        self.step_ms = per_step * RATING_MS
        self.steps = available if steps is None else min(available, steps)
        self._first = half
        replayed = half + self.steps * per_step
        self.keys = ratings.users
        self._user, self._movie = ratings.user[:replayed], ratings.movie[:replayed]
        self._rating = ratings.rating[:replayed]
        self._model = train_als(
            self._user[:half],
            self._movie[:half],
            self._rating[:half],
            dimensions,
            ridge=TRAINING_RIDGE,
            seed=seed,
            biases=biases,
        ).items
        self._factors, self._base = self._of_movies(len(ratings.movies))
        self._prior = self._model.mean_user if cold_start == "mean" else np.zeros(dimensions)
        trained = self._rating[:half]
        self._scale = (trained.min(), trained.max()) if clip else None
        # Begins with a step, so that the warm-up ends with one.
        self._begin_ms = -(-_BEGIN_MS // self.step_ms) * self.step_ms
        self._times = self._event_times()
        values = np.column_stack((self._movie, self._rating))
        self._by_user = _ByUser(self._user, len(self.keys), self._times, values)
        self._function = ALSUserEmbedding(self._model, ridge=ridge, prior=self._cold_start)
        self._file: Path | None = None
        self.notes = self._say()

    def describe(self) -> dict[str, Any]:
        return {
            "ratings_per_step": self._per_step,
            "ridge": self._ridge,
            "dimensions": self.dimension(),
            "cold_start": self._cold_start,
            "biases": self._biases,
            "clip": self._scale is not None,
        }

    def updates_per_step(self, budget: float) -> float:
        return budget * self._per_step

    def definition(self) -> dict[str, Any]:
        return {
            "source": {"kind": "vector"},
            "window": {"points": self._by_user.most},
            "function": {
                "name": "als",
                "factors": str(self._model_file()),
                "ridge": self._ridge,
                "prior": self._cold_start,
            },
        }

    def function(self) -> FeatureFunction:
        return self._function

    def dimension(self) -> int:
        return self._model.dimensions

    def warm_up(self) -> Recording:
        return self._recording(0, self._first)

    def warm_up_end_ms(self) -> int:
        return self._begin_ms

    def step(self, index: int) -> Step:
        first = self._first + index * self._per_step
        last = first + self._per_step
        return Step(
            index=index,
            begin_ms=self._begin_ms + index * self.step_ms,
            end_ms=self._begin_ms + (index + 1) * self.step_ms,
            events=self._recording(first, last),
            keys=self._user[first:last],
            times_ms=self._times[first:last],
            detail=np.arange(first, last),
        )

    def errors(self, step: Step, features: Features) -> Floats:
        served = features.present[step.keys]
        vectors = np.where(served[:, None], features.values[step.keys], self._prior)
        movies = self._movie[step.detail]
        predicted = self._base[movies] + np.einsum("qd,qd->q", vectors, self._factors[movies])
        if self._scale is not None:
            predicted = np.clip(predicted, *self._scale)
        errors: Floats = np.square(predicted - self._rating[step.detail])
        return errors

    def window(self, key: int, through_ms: int) -> Window | None:
        times, values = self._by_user.through(key, through_ms)
        return Window(self.keys[key], times, values, int(times[-1])) if len(times) else None

    def _of_movies(self, count: int) -> tuple[Floats, Floats]:
        """Factors [m, d] of every movie, and the rest of its predictions [m]."""
        model = self._model
        rows = model.rows_of(range(count))
        known = rows != UNKNOWN
        stranger = np.zeros(model.dimensions)
        if self._biases:
            stranger[-1] = 1  # times the user's bias
        factors = np.where(known[:, None], model.factors[rows], stranger)
        mean = self._rating[: self._first].mean()
        base = np.where(known, model.global_mean + model.item_bias[rows], mean)
        return factors, base

    def _event_times(self) -> Ints:
        """Event time of every rating [n], epoch milliseconds; ascending from the second half on.

        The first half is in one step, so that each of its users is computed once. There, each
        user's own ratings are a millisecond apart: those of different users need no order.
        """
        later = np.arange(1, len(self._user) - self._first + 1) * RATING_MS
        user = self._user[: self._first]
        order = np.argsort(user, kind="stable")
        counts = np.bincount(user)
        before_end = np.cumsum(counts)[user[order]] - 1 - np.arange(len(user))
        times = np.concatenate([np.zeros(len(user), np.int64), later])
        times[order] = -before_end
        if counts.max() > self.step_ms:
            raise ConfigError(
                [
                    f"a user has {counts.max()} ratings in the first half, and a step has time for "
                    f"{self.step_ms}; give a longer --step"
                ],
                "als",
            )
        moved: Ints = self._begin_ms + times
        return moved

    def _recording(self, first: int, last: int) -> Recording:
        rows = first + np.argsort(self._times[first:last], kind="stable")
        values = list(zip(self._movie[rows].tolist(), self._rating[rows].tolist(), strict=True))
        return Recording(list(self.keys), self._times[rows], self._user[rows], values)

    def _model_file(self) -> Path:
        """The model where a job on this machine reads it; it goes with this object."""
        if self._file is None:
            folder = Path(tempfile.mkdtemp(prefix="freshet-als-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._model.save(folder / "movies.npz")
            self._file = folder / "movies.npz"
        return self._file

    def _say(self) -> list[str]:
        half = self._first
        user, movie = self._user[half:], self._movie[half:]
        step = np.arange(len(user)) // self._per_step
        pairs = len(np.unique(step * len(self.keys) + user))
        known_users = np.unique(self._user[:half])
        new = ~np.isin(user, known_users)
        unknown = self._model.rows_of(movie.tolist()) == UNKNOWN
        return [
            f"{half:,} ratings train the model, {len(user):,} are replayed; {new.mean():.0%} of "
            f"these are of {len(np.unique(user[new])):,} users who are new.",
            f"{unknown.sum():,} of the replayed ratings ({unknown.mean():.0%}) are of movies that "
            "the model does not know; they are predicted without the movie.",
            f"In a step of {self._per_step} ratings, {pairs / self.steps:.2g} users rate on "
            f"average: a budget above {pairs / len(user):.2g} is more than there is to compute.",
        ]


def _check(
    ratings: Ratings,
    steps: int,
    per_step: int,
    ridge: float,
    dimensions: int,
    cold_start: str,
    biases: bool,
) -> None:
    problems = []
    if steps < 1:
        problems.append(
            f"there are {len(ratings)} ratings, and a model and a step of {per_step} need "
            f"{2 * per_step}; give more ratings or a shorter --step"
        )
    if not (math.isfinite(ridge) and ridge > 0):
        problems.append(f"--ridge must be above 0, not {ridge}")
    if dimensions < 1 + biases:
        why = ", one of them for the users' biases" if biases else ""
        problems.append(f"--dimensions must be at least {1 + biases}{why}, not {dimensions}")
    names = list(get_args(AlsPrior))
    if cold_start not in names:
        hint = suggestion(cold_start, names)
        problems.append(f"--cold-start must be mean or zero, not {cold_start!r}{hint}")
    if problems:
        raise ConfigError(problems, "als")
