"""What the scheduler costs for each event and for each choice, beside an ordered set of the JDK."""

from __future__ import annotations

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Aim, Figure

_NANOS_PER_MICRO = 1_000
_PAPER = "RALF's prototype: 300 µs an event, 50 µs a choice"


def run(context: Context) -> list[Figure]:
    """10 and 300 thousand keys, all pending."""
    classes = java.class_path()
    samples: dict[tuple[str, ...], list[float]] = {}
    for turn in range(min(context.rounds, 3)):
        context.say(f"JMH, round {turn + 1}")
        scores = java.run_jmh(
            context, "SchedulerBenchmark", classes=classes, label=f"scheduler-{turn}"
        )
        for name, score in scores.items():
            samples.setdefault(name, []).append(score / _NANOS_PER_MICRO)
    figures = []
    for keys in ("10000", "300000"):
        parts = []
        for method, what in (("event", "event"), ("choice", "choice")):
            base = Figure(
                f"ordered set, {what}, {int(keys):,} keys",
                "µs",
                tuple(samples[f"{method}OrderedSet", keys]),
                note="java.util.TreeSet: remove and add",
            )
            parts.append(
                Figure(
                    f"scheduler, {what}, {int(keys):,} keys",
                    "µs",
                    tuple(samples[method, keys]),
                    base,
                )
            )
        together = Figure(
            f"scheduler, event and choice together, {int(keys):,} keys",
            "µs",
            tuple(sum(pair) for pair in zip(*(part.samples for part in parts), strict=True)),
            aim=Aim(3.0),
            note=_PAPER,
        )
        figures += [together, *parts, *(part.baseline for part in parts if part.baseline)]
    return figures
