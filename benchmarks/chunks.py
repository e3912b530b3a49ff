"""What chunks cost in CPU time and in bytes, by the number of changes in one.

One thread, the codec alone. The values are 32 floats that vary as a machine's load does; a chunk's
header has a tree of six regions. Times are of the CPU, so that other work on the machine counts
less; bytes are beside the change event that the same change is in its topic.
"""

from __future__ import annotations

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Aim, Figure

_MAIN = "dev.freshet.connectors.chunk.SampleChanges"
_SIZES = (1, 10, 1_000)
_NANOS_PER_SECOND = 1_000_000_000
_AIM = Aim(1_000_000, at_least=True)

_OPERATIONS = {
    "read": ("change events read", "Avro to a change, without a record in between"),
    "encode": ("made", "changes to a chunk"),
    "decode": ("unpacked", "a chunk to changes, all checks"),
    "forward": ("passed on", "a chunk to the same for the next hop, checksum only"),
}
"""Method of the Java benchmark to name and note."""


def run(context: Context) -> list[Figure]:
    """Changes a second, and bytes for a change."""
    classes = java.class_path()
    samples: dict[tuple[str, ...], list[float]] = {}
    for turn in range(min(context.rounds, 3)):
        context.say(f"JMH, round {turn + 1}")
        scores = java.run_jmh(
            context,
            "ChunkBenchmark",
            classes=classes,
            label=f"chunks-{turn}",
            seconds=1.0,
            cpu_time=True,
        )
        for name, nanos in scores.items():
            samples.setdefault(name, []).append(nanos)
    return [*_rates(samples), *_bytes(classes)]


def _rates(samples: dict[tuple[str, ...], list[float]]) -> list[Figure]:
    return [
        Figure(
            f"{name}, {size:,} a chunk",
            "changes/s",
            tuple(size * _NANOS_PER_SECOND / nanos for nanos in samples[method, str(size)]),
            aim=_AIM if size == max(_SIZES) else None,
            note=note,
        )
        for method, (name, note) in _OPERATIONS.items()
        for size in _SIZES
    ]


def _bytes(classes: str) -> list[Figure]:
    figures = []
    for size in java.run_main(_MAIN, [str(size) for size in _SIZES], classes=classes):
        event = Figure("change event", "bytes", (size["event"],), note="in changes.<table>")
        figures.append(
            Figure(
                f"of a change in a chunk of {size['changes']:,}",
                "bytes",
                (size["wire"],),
                event,
                note="with its share of the header",
                details={"before compression, without the header": size["raw"]},
            )
        )
    return [*figures, event]
