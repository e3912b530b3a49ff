"""Seasonal-trend decomposition by Loess (STL), computed by statsmodels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from freshet.durations import parse_duration_ms
from freshet.functions.base import FeatureFunction
from freshet.functions.window import Window

if TYPE_CHECKING:
    from freshet.table import Duration, FeatureTable, Points


@dataclass(frozen=True)
class STLDecomposition(FeatureFunction):
    """Trend at the window's end and the season of its last period.

    The feature is a float32 vector [1 + period]. Element 0 is the trend at the newest point.
    Element ``1 + j`` is the season at ``period - 1 - j`` steps before it, so that the last element
    is the season of the newest point itself. :meth:`predict` turns it into forecasts.

    Points are taken as equally spaced in their order. Where readings may be missing, give ``step``:
    the points are then laid on a grid of that step that ends at the newest one, the last of several
    points in one cell wins, and empty cells are interpolated linearly.
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

    def prepare(self) -> None:
        """Imports statsmodels, which takes more than a second."""
        _load_stl()

    def compute(self, window: Window) -> npt.NDArray[np.float32]:
        """Float32 [1 + period], as described at the class.

        Raises:
            ValueError: the window has fewer than two periods, or too many gaps.
        """
        series = self._series(window)
        if len(series) < 2 * self.period:
            raise ValueError(
                f"the window has {len(series)} points, and STL needs two periods, "
                f"{2 * self.period}; use a longer window or a higher min_points"
            )
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
        if not 0 <= self.max_missing < 1:
            problems.append(f"function.max_missing must be in [0, 1), not {self.max_missing!r}")
        try:
            if self.step is not None and parse_duration_ms(self.step) == 0:
                problems.append("function.step must be longer than 0")
        except ValueError as e:
            problems.append(f"function.step: {e}")
        return problems

    def _series(self, window: Window) -> npt.NDArray[np.float64]:
        values = window.values
        if isinstance(values, list) or values.ndim != 1:
            raise ValueError("STL needs a window of scalars")
        if self.step is None or len(values) == 0:
            return values
        return _on_grid(window.timestamps, values, parse_duration_ms(self.step), self.max_missing)


def _on_grid(
    timestamps: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    step_ms: int,
    max_missing: float,
) -> npt.NDArray[np.float64]:
    """The series on a grid of step_ms that ends at the newest point, gaps interpolated."""
    before_end = (timestamps[-1] - timestamps + step_ms // 2) // step_ms
    cells = int(before_end[0]) + 1
    # Of points in one cell the last wins: the first seen from the end.
    filled, newest_first = np.unique(before_end[::-1], return_index=True)
    if len(filled) < (1 - max_missing) * cells:
        raise ValueError(
            f"the window has {len(filled)} of the {cells} points that a step of {step_ms} ms "
            f"should give, and at most {max_missing:.0%} may be missing; check the source, or raise"
            " max_missing"
        )
    if len(filled) == cells:
        return values[::-1][newest_first][::-1]
    return np.interp(np.arange(cells), (cells - 1 - filled)[::-1], values[::-1][newest_first][::-1])


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _load_stl() -> Any:
    """Statsmodels' STL class; imported late because a client needs only :meth:`predict`."""
    from statsmodels.tsa.stl._stl import STL

    return STL
