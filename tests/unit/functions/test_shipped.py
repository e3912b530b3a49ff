"""Goal: the shipped functions compute what they say, and refuse what they can't."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.tsa.seasonal import STL

from freshet.functions import Aggregate, STLDecomposition, Window

PERIOD = 12
STEP_MS = 300_000


def seasonal_window(n: int, keep: npt.NDArray[np.bool_] | None = None) -> Window:
    """A line plus a season of PERIOD points; keep says which readings arrived."""
    index = np.arange(n)
    values = 10 + 0.1 * index + 3 * np.sin(2 * np.pi * index / PERIOD)
    times = 1_000_000_000 + index * STEP_MS
    if keep is not None:
        times, values = times[keep], values[keep]
    return Window("vm", times, values, int(times[-1]))


@pytest.mark.parametrize("robust", [False, True])
def test_stl_is_that_of_statsmodels(robust: bool) -> None:
    window = seasonal_window(5 * PERIOD)
    window.values[-3] += 5  # type: ignore[index]
    value = STLDecomposition(PERIOD, robust=robust).compute(window)
    fit = STL(window.values, period=PERIOD, robust=robust).fit()
    assert value.dtype == np.float32
    assert value.shape == (1 + PERIOD,)
    assert value[0] == np.float32(fit.trend[-1])
    for j in range(PERIOD):
        assert value[1 + j] == np.float32(fit.seasonal[-1 - (PERIOD - 1 - j)])


@given(st.integers(1, 5 * PERIOD))
def test_predict_takes_the_season_of_the_same_phase(steps: int) -> None:
    value = np.arange(100, 101 + PERIOD, dtype=np.float32)
    seasons = list(value[1:])  # the last element is the newest point's
    phase = (PERIOD - 1 + steps) % PERIOD
    assert STLDecomposition.predict(value, steps) == value[0] + seasons[phase]


def test_predict_continues_a_clean_season() -> None:
    n = 8 * PERIOD
    whole = seasonal_window(n + PERIOD)
    value = STLDecomposition(PERIOD).compute(seasonal_window(n))
    steps = np.arange(1, PERIOD + 1)
    forecast = STLDecomposition.predict(value, steps)
    drift = 0.1 * steps  # the last trend is carried on, not its slope
    assert forecast + drift == pytest.approx(whole.values[n:], abs=0.2)  # type: ignore[index]


def test_predict_broadcasts_over_keys_and_steps() -> None:
    values = np.arange(3 * (1 + PERIOD), dtype=np.float32).reshape(3, 1 + PERIOD)
    steps = np.array([1, PERIOD, PERIOD + 1])
    assert STLDecomposition.predict(values, 2).shape == (3,)
    assert STLDecomposition.predict(values, steps).shape == (3,)
    grid = STLDecomposition.predict(values[:, None, :], steps)
    assert grid.shape == (3, 3)
    for key in range(3):
        for i, step in enumerate(steps):
            assert grid[key, i] == STLDecomposition.predict(values[key], step)
    with pytest.raises(ValueError, match="steps_ahead of 1 or more"):
        STLDecomposition.predict(values, 0)


def test_gaps_are_interpolated_on_the_grid() -> None:
    n = 6 * PERIOD
    keep = np.ones(n, bool)
    keep[[5, 20, 21, 40, n - 8, n - 7, n - 6]] = False
    with_gaps = STLDecomposition(PERIOD, step="5m").compute(seasonal_window(n, keep))
    without = STLDecomposition(PERIOD).compute(seasonal_window(n))
    assert with_gaps == pytest.approx(without, abs=1.0)
    # Taken as equally spaced, the readings before the last gap are in the wrong phase.
    shifted = STLDecomposition(PERIOD).compute(seasonal_window(n, keep))
    assert np.abs(shifted - without).max() > 2.0


def test_the_last_of_two_readings_in_a_cell_wins() -> None:
    window = seasonal_window(4 * PERIOD)
    doubled = Window(
        "vm",
        np.sort(np.append(window.timestamps, window.timestamps[7] - 1000)),
        np.insert(window.values, 7, 1e6),  # type: ignore[arg-type]
        window.event_time,
    )
    function = STLDecomposition(PERIOD, step="5m")
    assert np.array_equal(function.compute(doubled), function.compute(window))


def test_windows_that_stl_can_not_use_fail_clearly() -> None:
    with pytest.raises(ValueError, match="has 23 points, and STL needs two periods, 24"):
        STLDecomposition(PERIOD).compute(seasonal_window(2 * PERIOD - 1))
    sparse = np.zeros(10 * PERIOD, bool)
    sparse[::4] = sparse[-1] = True
    with pytest.raises(ValueError, match="at most 50% may be missing"):
        STLDecomposition(PERIOD, step="5m").compute(seasonal_window(10 * PERIOD, sparse))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_aggregate_is_mean_population_variance_and_count(numbers: list[float]) -> None:
    values = np.array(numbers)
    value = Aggregate().compute(Window("k", np.arange(len(values)), values, 0))
    assert value.dtype == np.float32
    expected = [np.mean(values), np.var(values), len(values)]
    assert value == pytest.approx(np.array(expected, np.float32))


def test_aggregate_of_vectors_and_of_nothing() -> None:
    window = Window("k", np.arange(2), np.array([[1.0, 10.0], [3.0, 30.0]]), 0)
    assert list(Aggregate().compute(window)) == [2, 20, 1, 100, 2]
    with pytest.raises(ValueError, match="empty"):
        Aggregate().compute(Window("k", np.arange(0), np.empty(0), 0))
