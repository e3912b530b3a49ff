"""Seasonal-trend decomposition by Loess (STL): as one matrix product, or by statsmodels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from freshet.durations import parse_duration_ms
from freshet.functions.base import FeatureFunction
from freshet.functions.stl_linear import LinearStl, StlParameters, linear_stl
from freshet.functions.window import Window

if TYPE_CHECKING:
    from freshet.table import Duration, FeatureTable, Points


StlMethod = Literal["auto", "linear", "statsmodels"]
"""How STL is computed."""


@dataclass(frozen=True)
class STLDecomposition(FeatureFunction):
    """Trend at the window's end and the season of its last period.

    The feature is a float32 vector [1 + period]. Element 0 is the trend at the newest point.
    Element ``1 + j`` is the season at ``period - 1 - j`` steps before it, so that the last element
    is the season of the newest point itself. :meth:`predict` turns it into forecasts.

    Points are taken as equally spaced in their order. Where readings may be missing, give ``step``:
    the points are then laid on a grid of that step that ends at the newest one, the last of several
    points in one cell wins, and empty cells are interpolated linearly.

    Plain STL is linear in its window. So windows of a known length take one matrix product, which
    gives what statsmodels gives to about 13 digits, thousands of times as fast. The value of a
    window depends on the window and the parameters alone, to the bit: not on what is computed
    beside it, nor on what came before.
    """

    period: int
    """Points in one season, such as 288 for a day of 5-minute readings."""

    robust: bool = False
    """Weighs outliers down (``STL(robust=True)``); several times slower."""

    seasonal: int = 7
    """Length of the seasonal smoother: odd, at least 3."""

    trend: int | None = None
    """Length of the trend smoother: odd, above period; None for statsmodels' default."""

    low_pass: int | None = None
    """Length of the low-pass filter: odd, above period; None for statsmodels' default."""

    step: str | None = None
    """Distance of the points, such as "5m"; None takes the points as equally spaced."""

    max_missing: float = 0.5
    """Largest share of empty cells of the grid; a window with more gaps fails."""

    method: StlMethod = "auto"
    """``"linear"`` takes the matrix for windows of every length, which pays where many windows have
    the same; ``"statsmodels"`` never; ``"auto"`` for windows of ``points`` points. Robust STL is
    not linear. Where the matrix turns out to differ from statsmodels, that computes, after a
    warning."""

    points: int | None = None
    """Length of a full window, in cells of the grid where there is a ``step``; older cells are left
    out. None: what the table's window says, see :meth:`for_table`."""

    def for_table(self, table: FeatureTable) -> STLDecomposition:
        """This function, knowing how long the table's full window is."""
        if self.points is not None:
            return self
        return dataclasses.replace(self, points=self._full_length(table.window))

    def prepare(self) -> None:
        """Imports statsmodels, which takes more than a second, and makes the matrix."""
        _load_stl()
        if self.points is not None and self.points >= 2 * self.period:
            self._linear(self.points)

    def compute(self, window: Window) -> npt.NDArray[np.float32]:
        """Float32 [1 + period], as described at the class.

        Raises:
            ValueError: the window has fewer than two periods, too many gaps, or infinite numbers.
        """
        series = self._series(window)
        linear = self._linear(len(series))
        if linear is not None:
            value: npt.NDArray[np.float32] = linear.apply(series[None, :])[0]
            return value
        return self._by_statsmodels(series)

    def compute_batch(self, windows: Sequence[Window]) -> list[npt.NDArray[np.float32]]:
        """As :meth:`compute` of each window, to the bit; windows of one length go together.

        Raises:
            ValueError: as :meth:`compute`, before anything is computed.
        """
        series = [self._series(window) for window in windows]
        places: dict[int, list[int]] = {}
        for place, values in enumerate(series):
            places.setdefault(len(values), []).append(place)
        features: dict[int, npt.NDArray[np.float32]] = {}
        for length, of_length in places.items():
            linear = self._linear(length)
            if linear is not None:
                together = linear.apply(np.stack([series[place] for place in of_length]))
                features.update(zip(of_length, together, strict=True))
            else:
                for place in of_length:
                    features[place] = self._by_statsmodels(series[place])
        return [features[place] for place in range(len(windows))]

    def _linear(self, length: int) -> LinearStl | None:
        """Plain STL of windows of a length as a matrix; None where statsmodels is to compute.

        This must depend on the length and the parameters alone: the two ways differ in the last
        bits, and a replay must end in the same bytes.
        """
        if self.method == "statsmodels" or self.robust:
            return None
        if self.method == "auto" and length != self.points:
            return None
        parameters = StlParameters.of(self.period, self.seasonal, self.trend, self.low_pass)
        return linear_stl(parameters, length)

    def _by_statsmodels(self, series: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        fit = _load_stl()(
            series,
            period=self.period,
            seasonal=self.seasonal,
            trend=self.trend,
            low_pass=self.low_pass,
            robust=self.robust,
        ).fit()
        value = np.empty(1 + self.period, np.float32)
        value[0] = fit.trend[-1]
        value[1:] = fit.seasonal[-self.period :]
        return value

    @staticmethod
    def predict(value: npt.ArrayLike, steps_ahead: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Forecasts: the last trend, plus the last season one or more periods later.

        The season at ``h`` steps ahead is that of the same phase in the last period, element
        ``1 + (h - 1) % period``.

        Args:
            value: one feature value [1 + period], or many [..., 1 + period].
            steps_ahead: points after the newest one of the window, at least 1. It broadcasts
                against the leading shape of value: with values [n, 1 + period], a number or [n]
                gives [n]; values[:, None, :] with [h] gives [n, h].

        Returns:
            Forecasts in the broadcast shape.
        """
        features = np.asarray(value, np.float64)
        steps = np.asarray(steps_ahead, np.int64)
        if features.shape[-1] < 2 or (steps < 1).any():
            raise ValueError("predict needs values [..., 1 + period] and steps_ahead of 1 or more")
        period = features.shape[-1] - 1
        shape = np.broadcast_shapes(features.shape[:-1], steps.shape)
        phase = np.broadcast_to(1 + (steps - 1) % period, shape)
        features = np.broadcast_to(features, (*shape, period + 1))
        season = np.take_along_axis(features, phase[..., None], axis=-1)[..., 0]
        forecast: npt.NDArray[np.float64] = features[..., 0] + season
        return forecast

    def min_points(self, window: Points | Duration) -> int:
        """The whole window if it is counted in points, else two periods.

        A key's first value comes from a full window, so that all values are comparable.
        """
        from freshet.table import Points

        return window.count if isinstance(window, Points) else max(1, 2 * self.period)

    def validate(self, table: FeatureTable) -> list[str]:
        """Checks the parameters, the kind of the source and the length of the window."""
        from freshet.table import Points

        problems = self._parameter_problems()
        if table.source.kind != "scalar":
            problems.append(
                f"function: STLDecomposition needs a source of kind scalar, not {table.source.kind}"
            )
        window = table.window
        if (
            isinstance(window, Points)
            and _is_int(window.count)
            and _is_int(self.period)
            and 0 < window.count < 2 * self.period
        ):
            problems.append(
                f"window: Points({window.count}) is shorter than two periods of STLDecomposition; "
                f"use at least Points({2 * self.period})"
            )
        return problems

    def _parameter_problems(self) -> list[str]:
        problems = []
        if not (_is_int(self.period) and self.period >= 2):
            problems.append(f"function.period must be an integer of 2 or more, not {self.period!r}")
        for name, least in (("seasonal", 3), ("trend", None), ("low_pass", None)):
            length = getattr(self, name)
            if length is None and least is None:
                continue
            low = least or (self.period + 1 if _is_int(self.period) else 3)
            if not (_is_int(length) and length >= low and length % 2 == 1):
                problems.append(
                    f"function.{name} must be an odd integer of {low} or more, not {length!r}"
                )
        if self.method not in get_args(StlMethod):
            known = ", ".join(map(repr, get_args(StlMethod)))
            problems.append(f"function.method must be one of {known}, not {self.method!r}")
        elif self.method == "linear" and self.robust:
            problems.append(
                "function.method 'linear' is for plain STL, and robust is set; use 'auto'"
            )
        if self.points is not None and not (_is_int(self.points) and self.points >= 1):
            problems.append(f"function.points must be a positive integer, not {self.points!r}")
        if not 0 <= self.max_missing < 1:
            problems.append(f"function.max_missing must be in [0, 1), not {self.max_missing!r}")
        try:
            if self.step is not None and parse_duration_ms(self.step) == 0:
                problems.append("function.step must be longer than 0")
        except ValueError as e:
            problems.append(f"function.step: {e}")
        return problems

    def _full_length(self, window: Points | Duration) -> int | None:
        """Points of a table's full window after :meth:`_series`; None if that is not known."""
        from freshet.table import Points

        if isinstance(window, Points):
            return window.count
        if self.step is None:
            return None
        # A window of a duration leaves out its far end.
        return -(-parse_duration_ms(window.length) // parse_duration_ms(self.step))

    def _series(self, window: Window) -> npt.NDArray[np.float64]:
        """The window's numbers, equally spaced, and enough of them."""
        values = window.values
        if isinstance(values, list) or values.ndim != 1:
            raise ValueError("STL needs a window of scalars")
        if not np.isfinite(values).all():
            place = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(
                f"the window's point {place} of {len(values)} is {values[place]}, and STL needs "
                "finite numbers; leave such readings out at the source"
            )
        if self.step is not None and len(values) > 0:
            step_ms = parse_duration_ms(self.step)
            values = _on_grid(window.timestamps, values, step_ms, self.max_missing, self.points)
        if len(values) < 2 * self.period:
            raise ValueError(
                f"the window has {len(values)} points, and STL needs two periods, "
                f"{2 * self.period}; use a longer window or a higher min_points"
            )
        return values


def _on_grid(
    timestamps: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    step_ms: int,
    max_missing: float,
    most_cells: int | None,
) -> npt.NDArray[np.float64]:
    """The newest cells of a grid of step_ms that ends at the newest point, gaps interpolated."""
    before_end = (timestamps[-1] - timestamps + step_ms // 2) // step_ms
    cells = int(before_end[0]) + 1
    # Of points in one cell the last wins: the first seen from the end.
    filled, newest_first = np.unique(before_end[::-1], return_index=True)
    kept = cells if most_cells is None else min(cells, most_cells)
    found = int(np.searchsorted(filled, kept))
    if found < (1 - max_missing) * kept:
        raise ValueError(
            f"the window has {found} of the {kept} points that a step of {step_ms} ms "
            f"should give, and at most {max_missing:.0%} may be missing; check the source, or raise"
            " max_missing"
        )
    newest = values[::-1][newest_first]
    if found == kept:
        return newest[:kept][::-1]
    # Cells that are left out still say what lies between them and the oldest one kept.
    return np.interp(np.arange(kept), (kept - 1 - filled)[::-1], newest[::-1])


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _load_stl() -> Any:
    """Statsmodels' STL class; imported late because a client needs only :meth:`predict`."""
    from statsmodels.tsa.stl._stl import STL

    return STL
