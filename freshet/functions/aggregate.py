"""Simple aggregates over the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from freshet.functions.base import FeatureFunction
from freshet.functions.window import Window

if TYPE_CHECKING:
    from freshet.table import FeatureTable


@dataclass(frozen=True)
class Aggregate(FeatureFunction):
    """Mean, variance and count of the window.

    The variance is the population's (divided by n, not n - 1), so that one point has variance 0.
    """

    def compute(self, window: Window) -> npt.NDArray[np.float32]:
        """Float32 [3]: mean, variance, count; for vectors of d numbers [2d + 1]: d means, ...

        Raises:
            ValueError: the window is empty or not numeric.
        """
        values = window.values
        if isinstance(values, list):
            raise ValueError("the window holds JSON; Aggregate needs numbers")
        if len(values) == 0:
            raise ValueError("the window is empty")
        mean = values.mean(axis=0)
        variance = np.square(values - mean).mean(axis=0)
        return np.hstack((mean, variance, len(values))).astype(np.float32)

    def validate(self, table: FeatureTable) -> list[str]:
        """Only numbers can be aggregated."""
        if table.source.kind == "json":
            return ["function: Aggregate needs a source of kind scalar or vector, not json"]
        return []
