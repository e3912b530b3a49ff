"""What a call of the feature function costs beside the function: thread mode and process mode.

On a real cluster with real workers, for batches of 1, 10 and 100 keys, once answered in the
operator itself and once by a function that does nothing in its isolated child process.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import Figure
from benchmarks.flink_job import run_job
from benchmarks.servers import stack as started_stack
from freshet.stack import Stack

_SCRIPT = Path(__file__).with_name("execution_mode_job.py")
_DEADLINE_S = 300.0
_MICROS = 1e6

_CALLS = {1: 400, 10: 120, 100: 60}
"""Keys in a batch to measured calls."""

_WARM_CALLS = 0.25
"""Share of the calls of each size that only warm up."""

_VARIANTS = {
    "thread mode": ("thread", False),
    "thread mode, isolated child (ours)": ("thread", True),
    "process mode": ("process", False),
    "process mode, isolated child": ("process", True),
}


def run(context: Context) -> list[Figure]:
    """The variants take turns, each as a job of its own."""
    samples: dict[tuple[str, int], list[float]] = {}
    with started_stack(context, "execution-mode", task_managers=1) as stack:
        for turn in range(min(context.rounds, 3)):
            for name, (mode, isolated) in _VARIANTS.items():
                context.say(f"{name}, round {turn + 1}")
                out = context.scratch / f"calls-{turn}-{mode}-{isolated}.json"
                for keys, micros in _measure(stack, mode, isolated, out).items():
                    samples.setdefault((name, keys), []).append(micros)
    figures = []
    for keys in _CALLS:
        what = f"batch of {keys}" if keys > 1 else "one key"
        plain = Figure(f"thread mode, {what}", "µs/call", tuple(samples["thread mode", keys]))
        figures.append(plain)
        figures += [
            Figure(f"{name}, {what}", "µs/call", tuple(samples[name, keys]), plain)
            for name in _VARIANTS
            if name != "thread mode"
        ]
    return figures


def _measure(stack: Stack, mode: str, isolated: bool, out: Path) -> dict[int, float]:
    arguments = ["--mode", mode, "--sizes", json.dumps(_CALLS), "--out", str(out)]
    run_job(stack, _SCRIPT, [*arguments, *(["--isolated"] if isolated else [])], _DEADLINE_S)
    return _per_call(json.loads(out.read_text(encoding="utf-8")))


def _per_call(calls: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Median distance of two calls of the same size, microseconds."""
    distances: dict[int, list[float]] = {}
    for (keys, begun), (next_keys, next_begun) in pairwise(calls):
        if keys == next_keys:
            distances.setdefault(keys, []).append(_MICROS * (next_begun - begun))
    return {
        keys: statistics.median(found[int(len(found) * _WARM_CALLS) :])
        for keys, found in distances.items()
    }
