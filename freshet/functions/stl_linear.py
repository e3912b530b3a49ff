"""Plain STL as one matrix: the window goes in, the feature comes out.

Without its robustness weights, STL (Cleveland et al. 1990, §2.3) only ever takes weighted sums of
the points, with weights that depend on nothing but their number. So trend and season are a matrix
times the window. The matrix is made from the smoothers that STL consists of, in about the time of
two decompositions, compared with statsmodels, and kept on disk.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from freshet.functions.loess import BLOCK_ROWS, Loess, moving_average_after
from freshet.functions.matrix_cache import load_matrix, store_matrix

BLOCK_KEYS = 16
"""Windows in one matrix product; fewer are filled up with zeros."""

INNER_LOOPS = 5  # statsmodels' default for plain STL

_FORMAT = 1  # of the matrix: to be raised when what is in it changes
_MAX_ENTRIES = 1 << 23  # of the matrix: 64 MiB
_MAX_SMOOTHER_ENTRIES = 1 << 24  # of each smoother: 128 MiB while the matrix is made
_MAX_PRODUCTS = 2e10  # in one of the matrix's factors: makes it in 10 to 20 s
_KEPT_MATRICES = 16  # in memory, as long as the process lives
_TRIALS = 3
_TOLERANCE = 1e-9  # of the largest number in the window


@dataclass(frozen=True)
class StlParameters:
    """Parameters of plain STL with lines as local fits, all resolved."""

    period: int
    seasonal: int
    trend: int
    low_pass: int

    @classmethod
    def of(
        cls, period: int, seasonal: int, trend: int | None, low_pass: int | None
    ) -> StlParameters:
        """The parameters, with statsmodels' defaults in place of None."""
        if trend is None:
            trend = math.ceil(1.5 * period / (1 - 1.5 / seasonal)) | 1
        if low_pass is None:
            low_pass = (period + 1) | 1
        return cls(period, seasonal, trend, low_pass)

    def statsmodels_arguments(self) -> dict[str, int]:
        """As ``STL(window, **arguments)`` takes them."""
        return asdict(self)


class LinearStl:
    """Plain STL of windows of n points.

    Args:
        matrix: float64 [1 + period, n].
    """

    def __init__(self, matrix: npt.NDArray[np.float64]) -> None:
        self._transposed = matrix.T
        self._block = BLOCK_KEYS if _is_alike_at_every_place(self._transposed) else 1

    def apply(self, windows: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """The features of several windows.

        The bits of a window's feature do not depend on the windows beside it nor on their number.
        BLAS sums in another order for other shapes; so the shape is always the same.

        Args:
            windows: float64 [k, n].

        Returns:
            float32 [k, 1 + period].
        """
        windows = np.ascontiguousarray(windows)
        count, n = windows.shape
        features = np.empty((count, self._transposed.shape[1]), np.float32)
        for first in range(0, count, self._block):
            taken = block = windows[first : first + self._block]
            if len(taken) < BLOCK_KEYS:
                block = np.zeros((BLOCK_KEYS, n))
                block[: len(taken)] = taken
            features[first : first + len(taken)] = (block @ self._transposed)[: len(taken)]
        return features


def linear_stl(parameters: StlParameters, n: int) -> LinearStl | None:
    """Plain STL of windows of n points; None if it can't be had as a matrix.

    From memory, else from disk, else made and compared with statsmodels. Results are remembered
    step by step: where a call is interrupted by its timeout, the next one goes on from there.
    """
    if not fits(parameters, n):
        return None
    return _remembered(parameters, n)


def fits(parameters: StlParameters, n: int) -> bool:
    """Whether windows of n points can have a matrix: at least two periods, and not too large."""
    widest = max(parameters.trend, parameters.low_pass, parameters.seasonal) + BLOCK_ROWS
    entries = (1 + parameters.period) * n
    return (
        n >= 2 * parameters.period
        and entries <= _MAX_ENTRIES
        and n * min(widest, n) <= _MAX_SMOOTHER_ENTRIES
        and entries * min(widest, n) <= _MAX_PRODUCTS
    )


@lru_cache(_KEPT_MATRICES)
def _remembered(parameters: StlParameters, n: int) -> LinearStl | None:
    name = f"stl-{parameters.period}-{n}"
    identity = {
        "what": "plain STL",
        "format": _FORMAT,
        "statsmodels": _statsmodels_version(),
        "inner_loops": INNER_LOOPS,
        "n": n,
        **asdict(parameters),
    }
    shape = (1 + parameters.period, n)
    matrix = load_matrix(name, identity, shape)
    if matrix is None:
        matrix = _built(parameters, n)
        error = max(_error_of_trial(parameters, n, trial) for trial in range(_TRIALS))
        if not error <= _TOLERANCE:
            warnings.warn(
                f"the matrix of STL for {parameters} and windows of {n} points differs from "
                f"statsmodels {_statsmodels_version()} by {error:.1e} of the window's largest "
                "number; computing with statsmodels, which is slower",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        store_matrix(name, identity, matrix)
    return LinearStl(matrix)


@lru_cache(1)
def _built(parameters: StlParameters, n: int) -> npt.NDArray[np.float64]:
    return build_matrix(parameters, n)


@lru_cache(_TRIALS)
def _error_of_trial(parameters: StlParameters, n: int, trial: int) -> float:
    """Largest difference to statsmodels in one random window, relative to its largest number."""
    from statsmodels.tsa.stl._stl import STL

    random = np.random.default_rng((parameters.period, n, trial))
    steps = np.arange(n)
    window = random.normal(size=n) + random.normal() * 10 * np.sin(
        2 * np.pi * steps / parameters.period + trial
    )
    window += 10.0 ** (trial - 1) * (random.normal() + steps / n)
    fit = STL(window, **parameters.statsmodels_arguments()).fit()
    expected = np.append(fit.trend[-1], fit.seasonal[-parameters.period :])
    difference = np.abs(_built(parameters, n) @ window - expected).max()
    return float(difference / np.abs(window).max())


@cache
def _statsmodels_version() -> str:
    from importlib.metadata import version

    return version("statsmodels")


def _is_alike_at_every_place(transposed: npt.NDArray[np.float64]) -> bool:
    """Whether a window gets the same bits wherever it lies in a block.

    BLAS picks the code by the processor. What it does never depends on the numbers, so that one
    trial tells.
    """
    window = np.random.default_rng(0).normal(size=len(transposed))
    features = np.tile(window, (BLOCK_KEYS, 1)) @ transposed
    return bool((features == features[0]).all())


def build_matrix(parameters: StlParameters, n: int) -> npt.NDArray[np.float64]:
    """The matrix from a window of n points to the trend at its end and its last season.

    Unrolls STL's inner loop (Cleveland et al. 1990, §2.3) from its end. With the window y, loop j
    takes the season S(j) = A (y - T(j-1)) and the trend T(j) = L (y - S(j)), from T(0) = 0. So rows
    g of S(j) are g A y - g A L y + g A L S(j-1): each turn adds what it takes from the window and
    goes on with rows of the loop before.

    Args:
        parameters: of STL.
        n: points, at least two periods.

    Returns:
        float64 [1 + period, n]; row 0 makes the trend at the last point, row 1 + j the season at
        ``period - 1 - j`` points before it.
    """
    seasonal = _SeasonalStep(parameters, n)
    trend = Loess(n, parameters.trend)
    matrix = np.zeros((1 + parameters.period, n))
    rows = np.zeros_like(matrix)
    # The last trend is that of y - S.
    matrix[0] = trend.last_row()
    rows[0] = -matrix[0]
    rows[1:, n - parameters.period :] = np.eye(parameters.period)
    for loop in reversed(range(INNER_LOOPS)):
        rows = seasonal.after(rows)
        matrix += rows
        if loop > 0:
            rows = trend.after(rows)
            matrix -= rows
    return matrix


class _SeasonalStep:
    """From the detrended window to its season: matrix A of :func:`build_matrix`.

    Each phase's subseries is smoothed and extended by one period at either end (§2.3, step 2); the
    low-pass part of the result is taken off (steps 3 and 4).
    """

    def __init__(self, parameters: StlParameters, n: int) -> None:
        self._period, self._n = parameters.period, n
        self._low_pass = Loess(n, parameters.low_pass)
        # The first `longer` phases have one point more than the others.
        whole, self._longer = divmod(n, parameters.period)
        self._subseries = Loess(whole, parameters.seasonal, extended=True)
        if self._longer:
            self._longer_subseries = Loess(whole + 1, parameters.seasonal, extended=True)

    def after(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Rows that take the season get what they take from the window, both [k, n]."""
        period, n, longer = self._period, self._n, self._longer
        extended = -moving_average_after(self._low_pass.after(rows), (period, period, 3))
        extended[:, period : period + n] += rows
        by_phase = np.pad(extended, ((0, 0), (0, -n % period)))
        by_phase = by_phase.reshape(len(rows), -1, period)
        taken = np.zeros((len(rows), -(-n // period), period))
        places, points = self._subseries.shape
        taken[:, :points, longer:] = self._subseries.after(by_phase[:, :places, longer:])
        if longer:
            taken[:, :, :longer] = self._longer_subseries.after(by_phase[:, :, :longer])
        return taken.reshape(len(rows), -1)[:, :n]
