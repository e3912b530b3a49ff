"""A fleet of as many virtual machines as a benchmark wants, made of the 129 that there are.

A machine's readings are those of a real series from some row on, with noise. So they are as
periodic and as rough as real ones, but many machines are alike: fit to measure cost, which does
not depend on the values, and not to measure loss.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import java
from benchmarks.readings import STEP_MS, WINDOW, readings

_FILL = "dev.freshet.operators.scheduling.FilledWindows"
# Savepoints are written from RocksDB, whose memory is not the heap.
_FILL_FLAGS = ("-Xmx1500m",)
_NOISE_PERCENT = 2.0
_MAX_PERCENT = 100.0
_SEED = 20_261_120


class Fleet:
    """Machines ``vm-000000`` and so on, each with a reading every five minutes.

    Args:
        size: how many.
    """

    def __init__(self, size: int) -> None:
        self.keys = [f"vm-{machine:06d}" for machine in range(size)]
        self._random = np.random.default_rng(_SEED)
        rows, series = readings().shape
        self._series = self._random.integers(0, series, size)
        self._first_row = self._random.integers(0, rows, size)
        # As in the Java program: a list state is between trimmed and to be trimmed.
        self._history = WINDOW + np.arange(size) % (WINDOW // 4)

    def __len__(self) -> int:
        return len(self.keys)

    def live(self, reading: int, machines: slice) -> npt.NDArray[np.float64]:
        """The so manieth reading after the history, of some machines [k], percent."""
        rows = (self._first_row + self._history + reading)[machines] % len(readings())
        real = readings()[rows, self._series[machines]]
        noisy = real + self._random.normal(0, _NOISE_PERCENT, len(real))
        return np.clip(noisy, 0, _MAX_PERCENT)

    def write_savepoint(self, scratch: Path, newest_ms: int, classes: str) -> Path:
        """Writes a savepoint in which every machine has a full window that was never computed.

        Args:
            scratch: an empty folder.
            newest_ms: when the first machine's newest reading was; the others' follow within a
                step.
            classes: class path of the Java benchmarks.

        Returns:
            The savepoint's folder.
        """
        readings().astype("<f8").tofile(scratch / "readings")
        sources = np.stack([self._series, self._first_row], axis=1)
        sources.astype("<i4").tofile(scratch / "sources")
        savepoint = scratch / "savepoint"
        java.run_main(
            _FILL,
            [
                str(savepoint),
                *(str(scratch / "readings"), str(readings().shape[1])),
                *(str(scratch / "sources"), str(WINDOW)),
                *(str(newest_ms), str(STEP_MS), str(_NOISE_PERCENT)),
            ],
            classes=classes,
            flags=_FILL_FLAGS,
        )
        return savepoint
