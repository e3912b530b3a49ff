"""The real readings that the pipeline benchmarks use (see ``examples/data/README.md``)."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from benchmarks.context import REPOSITORY

PERIOD = 288
"""Readings in a day."""

WINDOW = 3 * PERIOD
"""Readings that STL looks back on."""

STEP_MS = 300_000

FILE = REPOSITORY / "examples" / "data" / "azure_vm_cpu.npz"


@cache
def readings() -> npt.NDArray[np.float64]:
    """CPU utilisation of virtual machines [n, k], percent."""
    with np.load(FILE) as arrays:
        return np.asarray(arrays["values"], np.float64)
