"""Bytes of state for each key beyond its raw window."""

from __future__ import annotations

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Aim, Figure

_MAIN = "dev.freshet.operators.scheduling.StateFootprint"
# The serial collector's heap is exact after a collection: no regions, no humongous objects.
_FLAGS = ("-XX:+UseSerialGC", "-Xmx6g")


def run(context: Context) -> list[Figure]:
    """Every key pending; each subject in a JVM of its own."""
    classes = java.class_path()
    keys = 50_000 if context.quick else 300_000
    rounds = min(context.rounds, 3)
    samples: dict[str, list[float]] = {}
    for turn in range(rounds):
        for subject in ("maintenance", "windows", "timers", "serialized"):
            context.say(f"heap of {subject}, round {turn + 1}")
            (value,) = java.run_main(_MAIN, [subject, str(keys)], classes=classes, flags=_FLAGS)
            samples.setdefault(subject, []).append(float(value))
    windows = Figure(
        "heap of the raw windows alone", "B/key", tuple(samples["windows"]), note="two points a key"
    )
    whole = Figure(
        "heap of the operator, windows included", "B/key", tuple(samples["maintenance"]), windows
    )
    beyond = tuple(own - window for own, window in zip(whole.samples, windows.samples, strict=True))
    stored = tuple(
        record + timers
        for record, timers in zip(samples["serialized"], samples["timers"], strict=True)
    )
    return [
        Figure(
            "state beyond the window, heap backend",
            "B/key",
            beyond,
            aim=Aim(500),
            note="record, state table entry and scheduler, as heap; the paper: 32 KB",
        ),
        Figure(
            "state beyond the window, RocksDB backend",
            "B/key",
            stored,
            aim=Aim(500),
            note="serialized record, without the key that RocksDB stores, and the scheduler's heap",
        ),
        Figure("scheduler's heap", "B/key", tuple(samples["timers"]), note="names not counted"),
        Figure("serialized record", "B/key", tuple(samples["serialized"])),
        whole,
        windows,
    ]
