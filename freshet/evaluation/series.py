"""The ``stl`` workload: forecast time series from their decompositions (RALF §2.5.1)."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from freshet.durations import parse_duration_ms
from freshet.errors import ConfigError
from freshet.evaluation.queries import Queries, query_counts, query_rates
from freshet.evaluation.workload import Features, Floats, Step, Workload
from freshet.functions import FeatureFunction, STLDecomposition, Window
from freshet.replay import Recording, load_recording, read_bytes

SEASONS = 3
"""The window, in seasons (RALF §2.5.2)."""

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_START = datetime(2024, 1, 1, tzinfo=UTC)
"""Of series that come without times."""

MAX_CELLS = 500_000_000
"""Readings and gaps that fit into memory, 8 bytes each."""


@dataclass(frozen=True, eq=False)
class SeriesGrid:
    """Series on a common grid of time."""

    ids: list[str]
    values: Floats
    """Readings [t, k]; NaN where one is missing."""

    start_ms: int
    """Event time of the first row, epoch milliseconds."""

    reading_ms: int
    """Distance of the rows, milliseconds."""

    period: int
    """Rows in one season."""


def load_series(location: str, period: int | None = None) -> SeriesGrid:
    """Reads series.

    Args:
        location: path or URL of an ``.npz`` (``values`` [time, keys], ``ids``, ``step_seconds``,
            ``period``) or a CSV of ``series,timestamp,value``; the distance of a CSV's readings is
            their median.
        period: readings in a season; None takes the file's, or a day.

    Raises:
        ReplayError: it can't be read.
        ConfigError: a season would be shorter than two readings.
    """
    if location.endswith(".npz"):
        recording = load_recording(location, start_ms=int(_START.timestamp() * 1000))
        reading_ms, stored_period = _npz_facts(location)
        period = period or stored_period
        # A reading covers the time up to its own, so the last one of an hour is on the hour.
        recording = replace(recording, timestamps=recording.timestamps + reading_ms)
    else:
        recording = load_recording(location)
        reading_ms = _median_distance_ms(recording, location)
    if not len(recording):
        raise ConfigError(["it holds no readings"], f"data {location}")
    period = period or max(1, round(_DAY_MS / reading_ms))
    if period < 2:
        raise ConfigError(
            [f"a season of {period} reading(s) has no shape; give --period"], f"data {location}"
        )
    first_ms = int(recording.timestamps[0])
    rows = np.rint((recording.timestamps - first_ms) / reading_ms).astype(np.int64)
    cells = (int(rows[-1]) + 1) * len(recording.ids)
    if cells > MAX_CELLS:
        raise ConfigError(
            [
                f"its {len(recording):,} readings span a grid of {cells:,} cells of {reading_ms} "
                f"ms, more than {MAX_CELLS:,}; check the times of the first and the last reading"
            ],
            f"data {location}",
        )
    values = np.full((int(rows[-1]) + 1, len(recording.ids)), np.nan)
    # Of several readings in one cell the last stays.
    values[rows, recording.series] = recording.values
    return SeriesGrid(recording.ids, values, first_ms, reading_ms, period)


def _npz_facts(location: str) -> tuple[int, int | None]:
    """Distance of the readings, milliseconds, and of a season; the file was read before."""
    with np.load(io.BytesIO(read_bytes(location)), allow_pickle=False) as data:
        period = int(data["period"]) if "period" in data else None
        return round(float(data["step_seconds"]) * 1000), period


def _median_distance_ms(recording: Recording, location: str) -> int:
    order = np.lexsort((recording.timestamps, recording.series))
    same = np.diff(recording.series[order]) == 0
    distances = np.diff(recording.timestamps[order])[same]
    distances = distances[distances > 0]
    if not len(distances):
        raise ConfigError(["no series has two readings"], f"data {location}")
    return int(np.median(distances))


class SeriesWorkload(Workload):
    """Forecasts of every series for the step ahead, from trend and season of its last readings.

    The error of a query is the absolute error of the forecast in units of the series' naive error:
    the mean absolute difference of neighbours in its first window (the denominator of the mean
    absolute scaled error, Hyndman and Koehler, 2006). A series without a feature is forecast with
    its last reading.

    Args:
        grid: the series.
        queries: which series are queried how often.
        seed: of the queries.
        step: length of a step, such as "1h"; None is one hour, or one reading if that is longer.
        steps: how many steps to replay at most; None for all.

    Raises:
        ConfigError: there is nothing to replay.
    """

    name = "stl"
    unit = "mean absolute error / naive error"
    budget_unit = "of keys in a step"

    def __init__(
        self,
        grid: SeriesGrid,
        *,
        queries: Queries = Queries.UNIFORM,
        seed: int = 0,
        step: str | None = None,
        steps: int | None = None,
    ) -> None:
        self._queries = queries
        self._seed = seed
        self._window = SEASONS * grid.period
        reading_ms = grid.reading_ms
        self.step_ms = _step_ms(step) if step else max(_HOUR_MS, reading_ms)
        if self.step_ms < reading_ms or self.step_ms % reading_ms:
            raise ConfigError(
                [f"--step of {self.step_ms} ms is no multiple of the readings' {reading_ms} ms"],
                "evaluation",
            )
        self._rows_per_step = self.step_ms // reading_ms
        self._period = grid.period
        self._reading_ms = reading_ms
        # The last row of a step ends it.
        self._start_ms, self._first_row = self._align(grid)
        kept, scale = _usable(grid.values, self._window)
        if not kept.any():
            raise ConfigError(
                [
                    f"no series has {self._window} readings ({SEASONS} seasons of {grid.period}) "
                    "that change; give longer series or a shorter --period"
                ],
                "evaluation",
            )
        self.notes = _left_out(kept)
        self.keys = [key for key, use in zip(grid.ids, kept.tolist(), strict=True) if use]
        self._values = grid.values[:, kept]
        self._scale = scale[kept]
        self._gaps = bool(_has_inner_gaps(self._values))
        self._rates = query_rates(queries, len(self.keys), seed)
        available = (len(self._values) - self._first_row) // self._rows_per_step
        self.steps = available if steps is None else min(available, steps)
        if self.steps < 1:
            raise ConfigError(
                [
                    f"the series have {len(self._values)} readings, and the first window and a step"
                    f" need {self._first_row + self._rows_per_step}; give longer series or a "
                    "shorter --period"
                ],
                "evaluation",
            )
        self._last_known = _last_known(self._values)
        self._function = STLDecomposition(
            period=self._period,
            step=f"{reading_ms}ms" if self._gaps else None,
            points=self._window,
        )

    def _align(self, grid: SeriesGrid) -> tuple[int, int]:
        """Time of row 0, and the first row after the warm-up, which begins a step."""
        end_ms = grid.start_ms + (self._window - 1) * grid.reading_ms
        late_ms = -end_ms % self.step_ms
        if late_ms % grid.reading_ms:
            # Readings are not on the grid of steps: shifting all times by less than one reading
            # changes nothing but that.
            late_ms = math.ceil(late_ms / grid.reading_ms) * grid.reading_ms
        first_row = self._window + late_ms // grid.reading_ms
        last_ms = grid.start_ms + (first_row - 1) * grid.reading_ms
        return grid.start_ms - last_ms % self.step_ms, first_row

    def describe(self) -> dict[str, Any]:
        return {"period": self._period, "window": self._window, "reading_ms": self._reading_ms}

    def updates_per_step(self, budget: float) -> float:
        return budget * len(self.keys)

    def definition(self) -> dict[str, Any]:
        return {
            "source": {"key": "key", "timestamp": "ts", "value": "value"},
            "window": {"points": self._window},
            "function": {
                "name": "stl",
                "period": self._period,
                **({"step": self._function.step} if self._function.step else {}),
            },
        }

    def function(self) -> FeatureFunction:
        return self._function

    def dimension(self) -> int:
        return 1 + self._period

    def warm_up(self) -> Recording:
        return self._recording(0, self._first_row)

    def warm_up_end_ms(self) -> int:
        return int(self._time_ms(self._first_row - 1))

    def step(self, index: int) -> Step:
        first = self._first_row + index * self._rows_per_step
        rows = np.arange(first, first + self._rows_per_step)
        counts = query_counts(self._queries, self._rates, len(rows), index, self._seed)
        # There is nothing to compare a forecast with where a reading is missing.
        counts = np.where(np.isnan(self._values[rows]), 0, counts)
        row, key = np.nonzero(counts)
        repeated = counts[row, key]
        row, key = np.repeat(rows[row], repeated), np.repeat(key, repeated)
        return Step(
            index=index,
            begin_ms=self._time_ms(first - 1),
            end_ms=self._time_ms(first + self._rows_per_step - 1),
            events=self._recording(first, first + self._rows_per_step),
            keys=key,
            times_ms=self._time_ms(row),
            detail=row,
        )

    def errors(self, step: Step, features: Features) -> Floats:
        actual = self._values[step.detail, step.keys]
        before = self._first_row + step.index * self._rows_per_step - 1
        forecast = self._last_known[before, step.keys]  # the default
        served = features.present[step.keys]
        if served.any():
            keys = step.keys[served]
            ahead = (step.times_ms[served] - features.event_times[keys]) // self._reading_ms
            phase = 1 + (ahead - 1) % self._period
            # In double precision; summing two single-precision numbers would round once more.
            trend = features.values[keys, 0].astype(np.float64)
            forecast[served] = trend + features.values[keys, phase]
        errors: Floats = np.abs(forecast - actual) / self._scale[step.keys]
        # Before its first reading a key has no default either: it is as good as naive.
        return np.where(np.isnan(errors), 1.0, errors)

    def window(self, key: int, through_ms: int) -> Window | None:
        last = (through_ms - self._start_ms) // self._reading_ms
        column = self._values[: last + 1, key]
        rows = np.flatnonzero(~np.isnan(column))[-self._window :]
        if len(rows) < self._window:
            return None
        times = self._start_ms + rows * self._reading_ms
        return Window(self.keys[key], times, column[rows], int(times[-1]))

    def _time_ms(self, row: Any) -> Any:
        return self._start_ms + row * self._reading_ms

    def _recording(self, first: int, last: int) -> Recording:
        rows, series = np.nonzero(~np.isnan(self._values[first:last]))
        values = self._values[first:last][rows, series].tolist()
        return Recording(list(self.keys), self._time_ms(first + rows), series, values)


def _step_ms(step: str) -> int:
    try:
        return parse_duration_ms(step)
    except ValueError as error:
        raise ConfigError([f"--step: {error}"], "evaluation") from error


def _usable(values: Floats, window: int) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Which series can be replayed [k], and their naive errors [k]."""
    scale = np.full(values.shape[1], np.nan)
    for key in range(values.shape[1]):
        known = values[~np.isnan(values[:, key]), key][:window]
        if len(known) == window:
            scale[key] = np.abs(np.diff(known)).mean()
    return scale > 0, scale


def _left_out(kept: npt.NDArray[np.bool_]) -> list[str]:
    count = int((~kept).sum())
    if count == 0:
        return []
    return [f"{count} of {len(kept)} series are left out: too short, or constant in the beginning."]


def _has_inner_gaps(values: Floats) -> bool:
    missing = np.isnan(values)
    begun = np.maximum.accumulate(~missing, axis=0)
    return bool((missing & begun).any())


def _last_known(values: Floats) -> Floats:
    """Newest reading at or before each row [t, k]; NaN before the first."""
    rows = np.where(np.isnan(values), 0, np.arange(len(values))[:, None])
    np.maximum.accumulate(rows, axis=0, out=rows)
    filled: Floats = np.take_along_axis(values, rows, axis=0)
    return filled
