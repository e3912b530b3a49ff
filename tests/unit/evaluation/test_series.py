"""The workload of time series."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from freshet.errors import ConfigError
from freshet.evaluation.queries import Queries
from freshet.evaluation.series import SeriesWorkload, load_series
from freshet.evaluation.workload import Features, computed_by_warm_up
from freshet.functions import STLDecomposition
from freshet.replay import ReplayError
from tests.unit.evaluation.made_up import PERIOD, READING_MS, START_MS, grid

HOUR_MS = 3_600_000


def test_steps_tile_the_series_after_the_first_window() -> None:
    workload = SeriesWorkload(grid())
    assert workload.step_ms == HOUR_MS
    assert workload.warm_up_end_ms() % HOUR_MS == 0
    assert workload.steps == (64 - 12) // 4
    seen = [workload.warm_up().timestamps]
    for index in range(workload.steps):
        step = workload.step(index)
        assert step.begin_ms == workload.warm_up_end_ms() + index * HOUR_MS
        assert step.end_ms == step.begin_ms + HOUR_MS
        assert ((step.events.timestamps > step.begin_ms) & (step.times_ms > step.begin_ms)).all()
        assert step.times_ms.max() == step.end_ms
        assert len(step) == 4 * len(workload.keys)
        seen.append(step.events.timestamps)
    times = np.concatenate(seen)
    assert (np.diff(times) >= 0).all()
    assert len(times) == 64 * 5


def test_errors_are_those_of_the_forecast_in_units_of_the_naive_error() -> None:
    data = grid()
    workload = SeriesWorkload(data)
    step = workload.step(3)
    function = STLDecomposition(period=PERIOD, method="statsmodels")
    windows = [workload.window(key, step.begin_ms) for key in range(5)]
    values = np.stack([function.compute(window) for window in windows if window is not None])
    features = Features(values, np.full(5, step.begin_ms))
    errors = workload.errors(step, features)
    row = (step.begin_ms - START_MS) // READING_MS
    for query in range(len(step)):
        key, ahead = step.keys[query], (step.times_ms[query] - step.begin_ms) // READING_MS
        forecast = STLDecomposition.predict(values[key], ahead)
        naive = np.abs(np.diff(data.values[:12, key])).mean()
        expected = abs(forecast - data.values[row + ahead, key]) / naive
        assert errors[query] == pytest.approx(expected, rel=1e-6)


def test_a_key_without_a_value_is_forecast_with_its_last_reading() -> None:
    data = grid()
    workload = SeriesWorkload(data)
    step = workload.step(0)
    nothing = Features(np.full((5, 1 + PERIOD), np.nan, np.float32), np.full(5, -1))
    errors = workload.errors(step, nothing)
    naive = np.abs(np.diff(data.values[:12], axis=0)).mean(axis=0)
    for query in range(5):  # the first reading of the step
        key = step.keys[query]
        expected = abs(data.values[11, key] - data.values[12, key]) / naive[key]
        assert errors[query] == pytest.approx(expected)


def test_a_late_series_has_no_value_after_the_warm_up_but_is_replayed() -> None:
    workload = SeriesWorkload(grid(late=True))
    assert computed_by_warm_up(workload).tolist() == [False, True, True, True, True]
    asked = np.concatenate([workload.step(i).keys for i in range(workload.steps)])
    assert 0 < (asked == 0).sum() < (asked == 1).sum()


def test_missing_readings_are_neither_events_nor_queries() -> None:
    workload = SeriesWorkload(grid(gaps=True))
    steps = [workload.step(i) for i in range(workload.steps)]
    assert sum(len(step) for step in steps) == workload.steps * 20 - 1
    assert sum(len(step.events) for step in steps) == workload.steps * 20 - 1
    assert workload.definition()["function"]["step"] == "900000ms"


def test_series_that_are_too_short_or_constant_are_left_out() -> None:
    data = grid(keys=4)
    data.values[:, 0] = 7.0
    data.values[:-5, 1] = np.nan
    workload = SeriesWorkload(data)
    assert list(workload.keys) == ["s2", "s3"]
    assert "2 of 4 series are left out" in workload.notes[0]


def test_too_short_a_recording_says_what_is_needed() -> None:
    with pytest.raises(ConfigError, match="need 16"):
        SeriesWorkload(grid(readings=14))


def test_queries_may_be_skewed() -> None:
    workload = SeriesWorkload(grid(keys=8, readings=200), queries=Queries.ZIPF, seed=2)
    asked = np.bincount(np.concatenate([workload.step(i).keys for i in range(40)]))
    assert asked.max() > 3 * np.median(asked)


def test_npz_and_csv_give_the_same_series(tmp_path: Path) -> None:
    data = grid(gaps=True)
    npz, text = tmp_path / "series.npz", tmp_path / "series.csv"
    np.savez(npz, values=data.values, ids=data.ids, step_seconds=900, period=PERIOD)
    with text.open("w") as file:
        file.write("series,timestamp,value\n")
        for row, column in zip(*np.nonzero(~np.isnan(data.values)), strict=True):
            time_ms = START_MS + row * READING_MS
            file.write(f"{data.ids[column]},{time_ms},{float(data.values[row, column])!r}\n")
    one, other = load_series(str(npz)), load_series(str(text), period=PERIOD)
    assert one.ids == other.ids
    assert (one.reading_ms, one.period) == (other.reading_ms, other.period)
    np.testing.assert_array_equal(one.values, other.values)


def test_a_csv_with_a_day_of_readings_needs_no_period(tmp_path: Path) -> None:
    text = tmp_path / "series.csv"
    lines = [f"a,{i * HOUR_MS},{i % 24}" for i in range(100)]
    text.write_text("\n".join(lines))
    assert load_series(str(text)).period == 24


def test_data_that_is_no_recording_says_so(tmp_path: Path) -> None:
    empty, sparse, broken = (tmp_path / name for name in ("empty.csv", "sparse.csv", "broken.npz"))
    empty.write_text("series,timestamp,value\n")
    sparse.write_text("a,0,1\na,1,2\na,2,3\na,1700000000000,4\n")
    np.savez(broken, values=np.ones((3, 1)))
    with pytest.raises(ReplayError, match="can't be read"):
        load_series(str(tmp_path / "missing.npz"))
    with pytest.raises(ReplayError, match="ids"):
        load_series(str(broken))
    with pytest.raises(ConfigError, match="no series has two readings"):
        load_series(str(empty))
    with pytest.raises(ConfigError, match="check the times"):
        load_series(str(sparse))


def test_a_step_that_is_no_duration_says_so() -> None:
    with pytest.raises(ConfigError, match="--step"):
        SeriesWorkload(grid(), step="soon")
