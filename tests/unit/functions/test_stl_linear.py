"""Goal: the matrix of plain STL is statsmodels' STL, and a batch is its windows one by one.

Method: matrices of many shapes against fits of random windows; batches of any composition against
single computations, compared bit by bit.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.seasonal import STL

from freshet.errors import ConfigError
from freshet.functions import STLDecomposition, Window, stl_linear
from freshet.functions.stl_linear import LinearStl, StlParameters, build_matrix, linear_stl
from freshet.table import Duration, FeatureTable, Points

PERIOD = 6
STEP_MS = 300_000


def window_of(values: npt.NDArray[np.float64], key: str = "k") -> Window:
    times = np.arange(len(values)) * STEP_MS
    return Window(key, times, values, int(times[-1]) if len(times) else 0)


def noise(n: int, seed: int = 0) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=n) + 5


def bits(value: npt.NDArray[np.float32]) -> bytes:
    assert value.dtype == np.float32
    return value.tobytes()


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, dict[str, int | None]]:
    """Points of a window, and arguments of STL that it can be decomposed with."""
    period = draw(st.integers(2, 20))
    n = draw(st.integers(2 * period, 9 * period))
    odd_above = st.integers(0, 2 * n).map(lambda extra: (period + extra + 1) | 1)
    arguments: dict[str, int | None] = {
        "period": period,
        "seasonal": draw(st.integers(1, 20).map(lambda half: 2 * half + 1)),
        "trend": draw(st.none() | odd_above),
        "low_pass": draw(st.none() | odd_above),
    }
    return n, arguments


@given(shapes(), st.integers(0, 2**32))
@settings(max_examples=200)
def test_the_matrix_is_statsmodels_for_every_shape(
    shape: tuple[int, dict[str, int | None]], seed: int
) -> None:
    n, arguments = shape
    window = noise(n, seed)
    matrix = build_matrix(StlParameters.of(**arguments), n)  # type: ignore[arg-type]
    fit = STL(window, **arguments).fit()
    expected = np.append(fit.trend[-1], fit.seasonal[-arguments["period"] :])  # type: ignore[operator]
    assert matrix.shape == (len(expected), n)
    assert np.abs(matrix @ window - expected).max() <= 1e-9 * np.abs(window).max()


def test_the_matrix_is_statsmodels_where_smoothers_take_several_blocks() -> None:
    n = 1500
    window = noise(n)
    matrix = build_matrix(StlParameters.of(24, 7, None, None), n)
    fit = STL(window, period=24).fit()
    expected = np.append(fit.trend[-1], fit.seasonal[-24:])
    assert np.abs(matrix @ window - expected).max() <= 1e-9 * np.abs(window).max()


def test_linear_and_statsmodels_give_the_same_feature() -> None:
    window = window_of(noise(4 * PERIOD + 1))
    linear = STLDecomposition(PERIOD, method="linear").compute(window)
    slow = STLDecomposition(PERIOD, method="statsmodels").compute(window)
    assert linear == pytest.approx(slow, rel=1e-6)
    assert bits(STLDecomposition(PERIOD).compute(window)) == bits(slow)  # points is not known


@st.composite
def batches(draw: st.DrawFn) -> list[Window]:
    """Windows of a few lengths, among them the usual one, in any order; some with gaps."""
    windows = []
    for place in range(draw(st.integers(1, 40))):
        n = draw(st.sampled_from([24, 24, 24, 25, 18]))
        values = noise(n, draw(st.integers(0, 5))) * 10.0 ** draw(st.integers(-3, 3))
        window = window_of(values, f"k{place}")
        if draw(st.booleans()):
            window = Window(
                window.key, np.delete(window.timestamps, 7), np.delete(values, 7), n * STEP_MS
            )
        windows.append(window)
    return windows


@pytest.mark.parametrize("method", ["auto", "linear", "statsmodels"])
@given(windows=batches())
@settings(max_examples=40)
def test_a_batch_is_its_windows_one_by_one_to_the_bit(method: str, windows: list[Window]) -> None:
    function = STLDecomposition(PERIOD, step="5m", points=24, method=method)  # type: ignore[arg-type]
    together = function.compute_batch(windows)
    alone = [function.compute(window) for window in windows]
    assert [bits(value) for value in together] == [bits(value) for value in alone]


@given(st.integers(1, 3 * stl_linear.BLOCK_KEYS), st.data())
@settings(max_examples=30)
def test_neighbours_do_not_touch_the_bits_of_a_long_window(count: int, data: st.DataObject) -> None:
    n = 600  # BLAS takes the sums of so many in parts
    linear = linear_stl(StlParameters.of(24, 7, None, None), n)
    assert linear is not None
    windows = np.array([noise(n, seed) for seed in range(count)])
    order = np.array(data.draw(st.permutations(range(count))))
    whole, shuffled = linear.apply(windows), linear.apply(windows[order])
    assert bits(whole[order]) == bits(shuffled)
    assert bits(whole[0]) == bits(linear.apply(windows[:1])[0])


def test_windows_go_one_by_one_where_the_place_in_a_block_matters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = build_matrix(StlParameters.of(PERIOD, 7, None, None), 24)
    assert LinearStl(matrix)._block == stl_linear.BLOCK_KEYS
    monkeypatch.setattr(stl_linear, "_is_alike_at_every_place", lambda _: False)
    linear = LinearStl(matrix)
    assert linear._block == 1
    windows = np.array([noise(24, seed) for seed in range(5)])
    assert linear.apply(windows) == pytest.approx(windows @ matrix.T, rel=1e-5)


def test_which_windows_take_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []
    monkeypatch.setattr("freshet.functions.stl.linear_stl", lambda parameters, n: lengths.append(n))
    for function in (
        STLDecomposition(PERIOD, points=24),
        STLDecomposition(PERIOD, method="linear"),
        STLDecomposition(PERIOD, points=24, robust=True),
        STLDecomposition(PERIOD, points=24, method="statsmodels"),
    ):
        lengths.append(-1)
        for n in (23, 24, 25):
            function.compute(window_of(noise(n)))
    assert lengths == [-1, 24, -1, 23, 24, 25, -1, -1]


def test_the_table_says_how_long_a_full_window_is() -> None:
    def points(window: Points | Duration, **parameters: object) -> int | None:
        function = STLDecomposition(PERIOD, **parameters)  # type: ignore[arg-type]
        table = FeatureTable(name="t", function=function, window=window)
        run = function.for_table(table)
        assert isinstance(run, STLDecomposition)
        return run.points

    assert points(Points(30)) == 30
    assert points(Points(30), step="5m") == 30
    assert points(Points(30), points=20) == 20
    assert points(Duration("2h30m"), step="5m") == 30
    assert points(Duration("2h29m"), step="5m") == 30
    assert points(Duration("2h30m")) is None


def test_prepare_makes_the_matrix_of_a_known_window(cache_folder: Path) -> None:
    STLDecomposition(PERIOD).prepare()
    assert not list(cache_folder.rglob("*.matrix"))
    STLDecomposition(PERIOD, points=24).prepare()
    assert len(list(cache_folder.rglob("stl-6-24-*.matrix"))) == 1


def test_a_grid_with_gaps_keeps_the_newest_cells() -> None:
    values, keep = noise(40), np.ones(40, bool)
    keep[[5, 6, 30]] = False
    times = np.arange(40) * STEP_MS
    whole = Window("k", times[keep], values[keep], 0)
    function = STLDecomposition(PERIOD, step="5m", points=30)
    # Cell 30 lies between its neighbours, and 10 is the oldest of 30 cells.
    values[30] = (values[29] + values[31]) / 2
    expected = STLDecomposition(PERIOD, points=30).compute(window_of(values[10:]))
    assert bits(function.compute(whole)) == bits(expected)


def test_a_matrix_that_differs_from_statsmodels_is_not_used(
    monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setattr(stl_linear, "build_matrix", lambda *_: np.zeros((1 + PERIOD, 24)))
    function = STLDecomposition(PERIOD, points=24)
    window = window_of(noise(24))
    with pytest.warns(RuntimeWarning, match="differs from statsmodels"):
        value = function.compute(window)
    assert bits(value) == bits(STLDecomposition(PERIOD, method="statsmodels").compute(window))
    assert not list(cache_folder.rglob("*.matrix"))
    with warnings.catch_warnings():  # said once
        warnings.simplefilter("error")
        function.compute(window)


def test_a_matrix_is_made_once_and_then_read(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = StlParameters.of(PERIOD, 7, None, None)
    made = linear_stl(parameters, 24)
    monkeypatch.setattr(stl_linear, "build_matrix", None)
    assert linear_stl(parameters, 24) is made
    stl_linear._remembered.cache_clear()
    stl_linear._built.cache_clear()
    read = linear_stl(parameters, 24)
    windows = noise(24)[None, :]
    assert made is not None and read is not None and read is not made
    assert bits(read.apply(windows)) == bits(made.apply(windows))


def test_an_interrupted_start_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    class Interruption(BaseException):
        pass

    def once_interrupted(name: str) -> None:
        real = getattr(stl_linear, name).__wrapped__

        def step(*arguments: object) -> object:
            steps.append((name, *arguments[2:]))
            if steps.count(steps[-1]) == 1:
                raise Interruption
            return real(*arguments)

        monkeypatch.setattr(stl_linear, name, stl_linear.lru_cache(8)(step))

    once_interrupted("_built")
    once_interrupted("_error_of_trial")
    for _ in range(1 + stl_linear._TRIALS):
        with pytest.raises(Interruption):
            linear_stl(StlParameters.of(PERIOD, 7, None, None), 24)
    assert linear_stl(StlParameters.of(PERIOD, 7, None, None), 24) is not None
    assert len(steps) == 2 * (1 + stl_linear._TRIALS)  # nothing that was done is done again


def test_windows_too_large_for_a_matrix_have_none() -> None:
    parameters = StlParameters.of(288, 7, None, None)
    assert stl_linear.fits(parameters, 864)
    assert not stl_linear.fits(parameters, 2 * 288 - 1)
    assert stl_linear.fits(StlParameters.of(1440, 7, None, None), 3 * 1440)
    assert not stl_linear.fits(StlParameters.of(1440, 7, 4319, None), 3 * 1440)
    assert linear_stl(parameters, 1_000_000) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", ["linear", "statsmodels"])
def test_windows_that_are_not_finite_fail_with_the_reason(bad: float, method: str) -> None:
    values = noise(24)
    values[3] = bad
    function = STLDecomposition(PERIOD, method=method)  # type: ignore[arg-type]
    for compute in (
        lambda: function.compute(window_of(values)),
        lambda: function.compute_batch([window_of(noise(24)), window_of(values)]),
    ):
        with pytest.raises(ValueError, match=r"point 3 of 24 is -?(nan|inf)"):
            compute()


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"method": "fast"}, "must be one of 'auto', 'linear', 'statsmodels', not 'fast'"),
        ({"method": "linear", "robust": True}, "'linear' is for plain STL"),
        ({"points": 0}, "points must be a positive integer, not 0"),
    ],
)
def test_bad_parameters_are_told(parameters: dict[str, object], problem: str) -> None:
    function = STLDecomposition(PERIOD, **parameters)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=problem):
        FeatureTable(name="t", function=function, window=Points(24))
