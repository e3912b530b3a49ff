"""The baseline of STL: statsmodels in a plain loop over the same windows.

``python -m benchmarks.stl_loop`` reads orders from its input, one a line: the first row of the
windows, and how many seconds to compute. It answers with the number of decompositions a second.
"""

from __future__ import annotations

import sys
import time

from statsmodels.tsa.seasonal import STL

from benchmarks.readings import PERIOD, WINDOW, readings


def decompositions_per_second(first_row: int, seconds: float) -> float:
    """Decomposes one machine's window after the other."""
    windows = [column.copy() for column in readings()[first_row : first_row + WINDOW].T]
    done = 0
    begun = time.perf_counter()
    while (elapsed := time.perf_counter() - begun) < seconds:
        STL(windows[done % len(windows)], period=PERIOD).fit()
        done += 1
    return done / elapsed


def main() -> None:
    """Answers orders until the input ends."""
    for line in sys.stdin:
        first_row, seconds = line.split()
        print(decompositions_per_second(int(first_row), float(seconds)), flush=True)


if __name__ == "__main__":
    main()
