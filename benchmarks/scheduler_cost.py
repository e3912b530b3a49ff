"""What the scheduler costs for each event and each choice, and how that grows with the keys.

Two measurements. The first has the keys' records in it: score a key anew, and move it. The second
has the queue alone, at a thousand to a million keys, beside three others: the textbook's indexed
heap, which has an object for each key, and the JDK's tree and heap, where a key is moved by being
removed and added. Times are of the CPU, so that other work on the machine counts less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Aim, Figure, Point, fit_line

_NANOS_PER_MICRO = 1_000
_PAPER = "RALF's prototype: 300 µs an event, 50 µs a choice"

_OURS = "scheduler"
_QUEUES = {
    "timers": _OURS,
    "objects": "heap of objects",
    "tree-set": "ordered set",
    "priority-queue": "PriorityQueue",
}
"""Parameter of the Java benchmarks to name."""

_NOTES = {
    "objects": "binary heap of an object for each key, found through a HashMap",
    "tree-set": "java.util.TreeSet: remove and add",
    "priority-queue": "java.util.PriorityQueue: remove and add; finds a key by looking at all",
}

_BASE = "objects"

_OPERATIONS = {
    "event": "its key's priority hardly changes",
    "feedback": "its key's priority rises by an error; every 16th time it falls",
    "choice": "the first key leaves, one that was chosen before comes back",
}

_MAIN = "dev.freshet.operators.scheduling.StateFootprint"
_FOOTPRINT_KEYS = 300_000
# The serial collector's heap is exact after a collection.
_FOOTPRINT_FLAGS = ("-XX:+UseSerialGC", "-Xmx2g")

Scores = dict[tuple[str, ...], list[float]]
"""Nanoseconds of each round, by method and parameters."""


def run(context: Context) -> list[Figure]:
    """Cost with records, growth, and memory."""
    classes = java.class_path()
    with_records: Scores = {}
    alone: Scores = {}
    sizes = "1000,100000" if context.quick else "1000,10000,100000,1000000"
    for turn in range(min(context.rounds, 3)):
        context.say(f"JMH, with records, round {turn + 1}")
        _add(with_records, java.run_jmh(
            context,
            "SchedulerBenchmark",
            classes=classes,
            label=f"scheduler-{turn}",
            cpu_time=True,
        ))  # fmt: skip
        context.say(f"JMH, growth, round {turn + 1}")
        _add(alone, java.run_jmh(
            context,
            "TimerBenchmark",
            classes=classes,
            parameters={"keys": sizes, "draw": "uniform", "queue": ",".join(_QUEUES)},
            label=f"growth-{turn}",
            seconds=0.5,
            cpu_time=True,
        ))  # fmt: skip
        _add(alone, java.run_jmh(
            context,
            r"TimerBenchmark\.(event|feedback)",
            classes=classes,
            parameters={"keys": sizes, "draw": "skewed", "queue": "timers"},
            label=f"skewed-{turn}",
            seconds=0.5,
            cpu_time=True,
        ))  # fmt: skip
    counts = [int(size) for size in sizes.split(",")]
    return [*_cost(with_records), *_growth(alone, counts), *_footprint(context, classes)]


def _add(samples: Scores, scores: Mapping[tuple[str, ...], float]) -> None:
    for name, score in scores.items():
        samples.setdefault(name, []).append(score)


def _cost(samples: Scores) -> list[Figure]:
    """Event and choice with the keys' records."""
    figures = []
    for keys in ("10000", "300000"):
        of_queue = {}
        for queue in (_BASE, "tree-set", "timers"):
            micros = {
                method: tuple(
                    nanos / _NANOS_PER_MICRO for nanos in samples[method, keys, queue]
                )
                for method in ("event", "choice")
            }  # fmt: skip
            together = tuple(sum(pair) for pair in zip(*micros.values(), strict=True))
            ours = queue == "timers"
            of_queue[queue] = Figure(
                f"{_QUEUES[queue]}, event and choice together, {int(keys):,} keys",
                "µs",
                together,
                of_queue.get(_BASE),
                aim=Aim(3.0) if ours else None,
                note=_PAPER if ours else _NOTES[queue],
                details=micros,
            )
        figures += [of_queue["timers"], of_queue[_BASE], of_queue["tree-set"]]
    return figures


def _growth(samples: Scores, counts: list[int]) -> list[Figure]:
    """Nanoseconds of an operation by number of keys, and what a doubling of the keys adds."""
    figures: list[Figure] = []
    bases: list[Figure] = []
    for operation, what in _OPERATIONS.items():
        for draw, queue in (
            ("uniform", _BASE),
            ("uniform", "timers"),
            ("skewed", "timers"),
            ("uniform", "tree-set"),
            ("uniform", "priority-queue"),
        ):
            rounds = [samples.get((operation, draw, str(keys), queue)) for keys in counts]
            measured = [nanos for nanos in rounds if nanos is not None]
            if not measured:
                continue
            name = f"{_QUEUES[queue]}, {operation}" + (", skewed" if draw == "skewed" else "")
            points = [
                Figure(
                    f"{name}, {keys:,} keys",
                    "ns",
                    tuple(nanos),
                    bases[place] if queue == "timers" and draw == "uniform" else None,
                    note=_NOTES.get(queue, what),
                    at=Point(name, keys, "keys"),
                )
                for place, (keys, nanos) in enumerate(zip(counts, measured, strict=True))
            ]
            if queue == _BASE:
                bases = points
            figures += points
            if queue == "timers":
                figures.append(_per_doubling(name, counts, measured))
    return figures


def _per_doubling(name: str, counts: list[int], rounds: list[list[float]]) -> Figure:
    """Slope of the line through cost against log2 of the keys."""
    doublings = [math.log2(keys) for keys in counts]
    fits = [fit_line(doublings, nanos) for nanos in zip(*rounds, strict=True)]
    return Figure(
        f"{name}, added by doubling the keys",
        "ns",
        tuple(fit.slope for fit in fits),
        note="slope of the line through nanoseconds against log2 of the number of keys",
        details={
            "constant": [fit.constant for fit in fits],
            "r_squared": [fit.r_squared for fit in fits],
        },
    )


def _footprint(context: Context, classes: str) -> list[Figure]:
    """Heap for each scheduled key; the names are not counted."""
    figures: dict[str, Figure] = {}
    for queue in (_BASE, "timers", "tree-set"):
        context.say(f"heap of {_QUEUES[queue]}")
        arguments = [queue, str(_FOOTPRINT_KEYS)]
        (value,) = java.run_main(_MAIN, arguments, classes=classes, flags=_FOOTPRINT_FLAGS)
        figures[queue] = Figure(
            f"memory of {_QUEUES[queue]}, {_FOOTPRINT_KEYS:,} keys",
            "B/key",
            (float(value),),
            figures.get(_BASE),
            note="names not counted",
        )
    return [figures["timers"], figures[_BASE], figures["tree-set"]]
