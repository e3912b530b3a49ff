"""The demo's data: real CPU readings of Azure virtual machines, and their event times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from freshet.errors import FreshetError
from freshet.stack.layout import CHECKOUT

DATA_FILE = CHECKOUT / "examples" / "data" / "azure_vm_cpu.npz"
"""CC-BY 4.0; its source and its changes are told in the README beside it."""


@dataclass(frozen=True, eq=False)
class Readings:
    """Equally spaced readings of several machines, without gaps.

    A reading covers the time up to its event time, so the last one of an hour is on the hour, and
    belongs to the step of event time that ends there.
    """

    keys: tuple[str, ...]
    """Entity key of each column [k]."""

    values: npt.NDArray[np.float64]
    """CPU utilisation [n, k], percent."""

    start_ms: int
    """Event time of the first row, epoch milliseconds."""

    step_ms: int
    """Distance of readings, milliseconds."""

    period: int
    """Readings in one season (a day)."""

    @classmethod
    def load(cls, file: Path = DATA_FILE) -> Readings:
        """Reads an archive with the arrays that ``examples/data/README.md`` describes.

        Raises:
            FreshetError: the file is missing or damaged.
        """
        try:
            with np.load(file) as arrays:
                return cls(
                    keys=tuple(str(key) for key in arrays["ids"]),
                    values=arrays["values"].astype(np.float64),
                    start_ms=int(arrays["start_ms"]),
                    step_ms=int(arrays["step_seconds"]) * 1_000,
                    period=int(arrays["period"]),
                )
        except (OSError, KeyError, ValueError) as error:
            raise FreshetError(
                f"the demo's data {file} cannot be read ({error}); restore it from the repository"
            ) from error

    def __len__(self) -> int:
        """Number of readings of each key."""
        return len(self.values)

    def time_ms(self, row: int) -> int:
        """Event time of a row of readings, epoch milliseconds."""
        return self.start_ms + row * self.step_ms
