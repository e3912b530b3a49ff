"""The raw window of one key: what a feature function computes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Window:
    """The newest events of one key, oldest first.

    The points are what came: they need not be equally spaced, and what to do about gaps is the
    feature function's choice. The arrays are the function's own and may be changed in place.
    """

    key: str
    """Entity key."""

    timestamps: npt.NDArray[np.int64]
    """Event times [n], epoch milliseconds, ascending."""

    values: npt.NDArray[np.float64] | list[dict[str, Any]]
    """float64 [n] for a table of scalars, [n, d] of vectors; a list of n dicts for JSON."""

    event_time: int
    """Event time as of which the feature is computed, epoch milliseconds."""

    def __len__(self) -> int:
        """Number of points."""
        return len(self.timestamps)
