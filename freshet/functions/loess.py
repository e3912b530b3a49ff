"""Loess of equally spaced points as a matrix, in the conventions of STL's code.

Loess fits a line to the nearest points, weighed by their distance, and takes its value (Cleveland
et al. 1990, §2). With fixed weights that is linear in the points: smoothing is a banded matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK_ROWS = 128
"""Rows of the matrix that are kept as one dense block."""

_NEAR, _FAR = 0.001, 0.999  # of the bandwidth: weight 1 up to here, weight 0 from there
_MIN_SPREAD = 0.001  # of the length of the series: points any closer together have no slope


@dataclass(frozen=True)
class _Block:
    first_row: int
    first_column: int
    weights: npt.NDArray[np.float64]


class Loess:
    """A Loess smoother of n points, evaluated at the given places.

    Args:
        n: number of points, at least 2; they lie at 1, ..., n.
        length: points in a neighbourhood, odd; the bandwidth is widened where it is above n.
        extended: evaluates at 0, ..., n + 1 and not at 1, ..., n, as STL does with the subseries.
    """

    def __init__(self, n: int, length: int, *, extended: bool = False) -> None:
        places = np.arange(0, n + 2) if extended else np.arange(1, n + 1)
        self.shape = (len(places), n)
        """Places, and points."""
        self._blocks = [
            _block(first_row, places[first_row : first_row + BLOCK_ROWS], n, length)
            for first_row in range(0, len(places), BLOCK_ROWS)
        ]

    def after(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Product with the smoother's matrix: rows that take smoothed points get the points.

        Args:
            rows: [k, places] or [k, places, m].

        Returns:
            [k, n] or [k, n, m].
        """
        product = np.zeros((rows.shape[0], self.shape[1], *rows.shape[2:]))
        for block in self._blocks:
            height, width = block.weights.shape
            taken = rows[:, block.first_row : block.first_row + height]
            into = product[:, block.first_column : block.first_column + width]
            if rows.ndim == 2:
                into += taken @ block.weights
            else:
                into += np.einsum("kpm,pn->knm", taken, block.weights, optimize=True)
        return product

    def last_row(self) -> npt.NDArray[np.float64]:
        """What makes the last place, [n]."""
        row = np.zeros(self.shape[1])
        block = self._blocks[-1]
        row[block.first_column : block.first_column + block.weights.shape[1]] = block.weights[-1]
        return row


def _block(first_row: int, places: npt.NDArray[np.int64], n: int, length: int) -> _Block:
    width = min(length, n)
    # Centred where there is room, else the outermost points.
    lefts = np.clip(places - (length + 2) // 2 + 1, 1, n - width + 1)
    weights = _weights(places, lefts, n, length)
    first_column = int(lefts[0]) - 1
    dense = np.zeros((len(places), int(lefts[-1]) - 1 + width - first_column))
    columns = (lefts - 1 - first_column)[:, None] + np.arange(width)
    np.put_along_axis(dense, columns, weights, axis=1)
    return _Block(first_row, first_column, dense)


def _weights(
    places: npt.NDArray[np.int64], lefts: npt.NDArray[np.int64], n: int, length: int
) -> npt.NDArray[np.float64]:
    """What the points of each place's neighbourhood count, [places, min(length, n)]."""
    width = min(length, n)
    points = (lefts[:, None] + np.arange(width)).astype(np.float64)
    distances = np.abs(points - places[:, None])
    bandwidths = np.maximum(places - lefts, lefts + width - 1 - places)[:, None]
    bandwidths = bandwidths + max(0, length - n) // 2
    weights: npt.NDArray[np.float64] = (1 - (distances / bandwidths) ** 3) ** 3
    weights[distances <= _NEAR * bandwidths] = 1
    weights[distances > _FAR * bandwidths] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    # From the weighted mean to the weighted line.
    centres = (weights * points).sum(axis=1, keepdims=True)
    offsets = points - centres
    variances = (weights * offsets**2).sum(axis=1, keepdims=True)
    sloped = np.sqrt(variances) > _MIN_SPREAD * (n - 1)
    slopes = np.divide(
        places[:, None] - centres, variances, out=np.zeros_like(variances), where=sloped
    )
    weights *= 1 + slopes * offsets
    return weights


def moving_average_after(
    rows: npt.NDArray[np.float64], widths: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Product with the matrix of moving averages, of which the last width is applied last.

    Args:
        rows: rows that take averaged points, [k, n].
        widths: each average shortens the series by its width less one.

    Returns:
        Rows that take the points themselves, [k, n + sum(width - 1)].
    """
    for width in reversed(widths):
        # The sum of each of the up to `width` averages that a point is in.
        sums = np.cumsum(np.pad(rows, ((0, 0), (width, width - 1))), axis=1)
        rows = (sums[:, width:] - sums[:, :-width]) / width
    return rows
