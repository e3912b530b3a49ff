"""Events a second through the maintenance operator at one subtask, beside a bare counter."""

from __future__ import annotations

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Figure

_NOTE = (
    "random keys, all known before; window of 8 points (864 of 300,000 keys would not fit); keys"
    " are chosen meanwhile, up to 1,000/s. Baseline: KeyedProcessFunction that counts in ValueState"
)


def run(context: Context) -> list[Figure]:
    """Heap and RocksDB, 10 and 300 thousand keys; each score is a JVM of its own."""
    classes = java.class_path()
    samples: dict[tuple[str, ...], list[float]] = {}
    keys = "10000" if context.quick else "10000,300000"
    for turn in range(min(context.rounds, 3)):
        context.say(f"JMH, round {turn + 1}")
        scores = java.run_jmh(
            context,
            "OperatorBenchmark",
            classes=classes,
            parameters={"keys": keys},
            label=f"operator-{turn}",
        )
        for name, score in scores.items():
            samples.setdefault(name, []).append(score)
    figures = []
    for (_, backend, count, operator), values in sorted(samples.items()):
        if operator != "maintenance":
            continue
        where = f"{backend}, {int(count):,} keys"
        base = Figure(
            f"bare counter, {where}",
            "events/s",
            tuple(samples["event", backend, count, "counter"]),
        )
        own = Figure(f"maintenance operator, {where}", "events/s", tuple(values), base, note=_NOTE)
        figures += [own, base]
    return figures
