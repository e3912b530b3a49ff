"""The demo's model: forecasts the next hour from the served features, and measures its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from freshet.functions import STLDecomposition

if TYPE_CHECKING:
    from freshet.client import Client
    from freshet.version import Version

Floats = npt.NDArray[np.float64]


def naive_errors(history: Floats) -> Floats:
    """Mean absolute error of the naive one-step forecast within a history, for each key.

    Dividing by it makes errors of quiet and of busy machines comparable; it is the denominator of
    the mean absolute scaled error (Hyndman and Koehler, 2006).

    Args:
        history: readings [n, k], n at least 2.

    Returns:
        [k], in units of the readings.

    Raises:
        ValueError: a key's readings never change, so nothing can be measured in units of that.
    """
    errors: Floats = np.abs(np.diff(history, axis=0)).mean(axis=0)
    if not (errors > 0).all():
        raise ValueError(
            f"the readings of column {int(np.argmin(errors))} never change; leave this key out"
        )
    return errors


def forecast(features: npt.ArrayLike, ages: npt.NDArray[np.int64], horizon: int) -> Floats:
    """Forecasts of the next readings: the last trend plus the season.

    Args:
        features: values as STLDecomposition makes them [k, 1 + period].
        ages: readings that came since each feature's newest one [k], 0 or more.
        horizon: number of readings to forecast, h.

    Returns:
        [h, k], in units of the readings.
    """
    steps_ahead = ages[:, None] + np.arange(1, horizon + 1)
    return STLDecomposition.predict(np.asarray(features)[:, None, :], steps_ahead).T


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a model says about one step, from the features that it was served."""

    versions: Sequence[Version | None]
    """Version of each key's feature [k]; None where there was none to serve."""

    staleness_ms: Floats
    """Event time of the query minus that of the value [k], milliseconds; NaN where none."""

    values: Floats
    """Forecasts [h, k]; NaN where no feature was served."""


class Model:
    """A model that reads one table; it is what a user of Freshet would write."""

    def __init__(
        self,
        client: Client,
        table: str,
        keys: Sequence[str],
        scale: Floats,
        step_ms: int,
        horizon: int,
    ) -> None:
        """Describes the model.

        Args:
            client: where it reads features and posts feedback; its clock is event time.
            table: feature table.
            keys: entity keys [k].
            scale: naive error of each key [k], in units of the readings.
            step_ms: distance of readings, milliseconds.
            horizon: readings that it forecasts at a time, h.
        """
        self.table = table
        self._client = client
        self._keys = keys
        self._scale = scale
        self._step_ms = step_ms
        self._horizon = horizon

    def predict(self) -> Forecast:
        """Reads every key's feature in one round trip, and forecasts the readings that follow."""
        served = self._client.get_many(self.table, self._keys)
        present = np.flatnonzero(served.present)
        values = np.full((self._horizon, len(served)), np.nan)
        if present.size:
            ages = (served.staleness_ms[present] // self._step_ms).astype(np.int64)
            values[:, present] = forecast(served.values[present], ages, self._horizon)
        return Forecast(served.versions, served.staleness_ms, values)

    def learn(self, said: Forecast, actual: Floats, times_ms: Sequence[int]) -> Floats:
        """Compares a forecast with the readings, and posts each error as feedback.

        What is fed back is the scaled error: regret is compared between keys, so it must be in one
        unit for all of them.

        Args:
            said: the forecast.
            actual: the readings [h, k].
            times_ms: their event times [h], epoch milliseconds.

        Returns:
            Absolute errors in units of each key's naive error [h, k]; NaN where none was served.
        """
        errors: Floats = np.abs(said.values - actual) / self._scale
        for time_ms, row in zip(times_ms, errors.tolist(), strict=True):
            self._client.feedback_many(
                self.table, self._keys, said.versions, row, ts=time_ms, model="demo"
            )
        return errors
