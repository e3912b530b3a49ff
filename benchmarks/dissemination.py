"""What home's part of dissemination costs for a change: backlogs, windows, chunks."""

from __future__ import annotations

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Figure


def run(context: Context) -> list[Figure]:
    """CPU time of a change, by the number of next hops and the SLO."""
    classes = java.class_path()
    samples: dict[tuple[str, ...], list[float]] = {}
    for turn in range(min(context.rounds, 3)):
        context.say(f"JMH, round {turn + 1}")
        scores = java.run_jmh(
            context,
            "DisseminationBenchmark",
            classes=classes,
            label=f"dissemination-{turn}",
            cpu_time=True,
        )
        for name, nanos in scores.items():
            samples.setdefault(name, []).append(nanos)
    return [
        Figure(
            f"a change, {links} next hops, SLO of {int(slo_ms) / 1000:g} s",
            "ns",
            tuple(nanos),
            note="100,000 keys, values of 128 bytes; without Kafka and Flink",
        )
        for (_, links, slo_ms), nanos in sorted(samples.items())
    ]
