"""Plain STL by statsmodels, as a matrix product, and as one product for many windows.

All in one process with one thread, as in the worker of a feature function:
``python -m benchmarks.stl_linear ROUNDS`` prints its samples as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.context import REPOSITORY, Context
from benchmarks.figures import Aim, Figure, take_turns
from benchmarks.readings import PERIOD, STEP_MS, WINDOW, readings

BATCH = 256
"""Windows computed together: the most that a table's default has in one call."""

_STATSMODELS_WINDOWS = 5  # in one sample; each takes a tenth of a second
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_MICROS = 1e6


def run(context: Context) -> list[Figure]:
    """Microseconds a window, and how far the features are apart."""
    context.say(f"{BATCH} windows of {WINDOW} points, period {PERIOD}")
    measured = _measured_in_worker(context)
    samples = {name: tuple(values) for name, values in measured["samples"].items()}
    windows = f"Azure VMs, windows of {WINDOW} points, period {PERIOD}, one thread"
    base = Figure("statsmodels", "µs/window", samples["statsmodels"], note=windows)
    return [
        base,
        Figure("matrix, one window a call", "µs/window", samples["single"], base),
        Figure(
            f"matrix, {BATCH} windows a call",
            "µs/window",
            samples["batch"],
            base,
            Aim(10.0),
            details={"largest_difference": measured["largest_difference"]},
        ),
        Figure(
            "making the matrix and checking it",
            "s",
            samples["make"],
            Figure("one decomposition by statsmodels", "s", samples["decomposition"]),
            note="in prepare(), once for each set of parameters on a machine",
        ),
        Figure("reading the matrix from the cache", "s", samples["read"]),
    ]


def _measured_in_worker(context: Context) -> dict[str, Any]:
    single_threaded = dict.fromkeys(_ONE_THREAD, "1")
    cache = {"FRESHET_CACHE_DIR": str(context.folder("stl-linear"))}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.stl_linear", str(context.rounds)],
        stdout=subprocess.PIPE,
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, **single_threaded, **cache},
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Measures and prints: what is imported here has the environment of the process."""
    from freshet.functions import STLDecomposition, stl_linear
    from freshet.functions.matrix_cache import cache_folder

    fast = STLDecomposition(PERIOD, points=WINDOW)
    slow = dataclasses.replace(fast, method="statsmodels")
    windows = _windows()

    def micros_a_window(compute: Callable[[], object], count: int) -> Callable[[], float]:
        return lambda: _seconds(compute) / count * _MICROS

    def make() -> float:
        for remembered in (stl_linear._remembered, stl_linear._built, stl_linear._error_of_trial):
            remembered.cache_clear()
        for file in (cache_folder() / "matrices").glob("*"):
            file.unlink()
        return _seconds(fast.prepare)

    def read() -> float:
        stl_linear._remembered.cache_clear()
        return _seconds(fast.prepare)

    few = windows[:_STATSMODELS_WINDOWS]
    slow.prepare()
    make()
    samples = take_turns(
        {
            "statsmodels": micros_a_window(lambda: [slow.compute(w) for w in few], len(few)),
            "single": micros_a_window(lambda: [fast.compute(w) for w in windows], len(windows)),
            "batch": micros_a_window(lambda: fast.compute_batch(windows), len(windows)),
            "make": make,
            "decomposition": lambda: _seconds(lambda: slow.compute(windows[0])),
            "read": read,
        },
        int(sys.argv[1]),
    )
    differences = [np.abs(fast.compute(w) - slow.compute(w)).max() for w in few]
    print(json.dumps({"samples": samples, "largest_difference": float(max(differences))}))


def _windows() -> list[Any]:
    """One window of each machine and day, up to BATCH."""
    from freshet.functions import Window

    times = np.arange(WINDOW) * STEP_MS
    series = [
        column
        for first in range(0, len(readings()) - WINDOW, PERIOD)
        for column in readings()[first : first + WINDOW].T
    ]
    return [
        Window(f"vm-{place}", times, values.copy(), int(times[-1]))
        for place, values in enumerate(series[:BATCH])
    ]


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
