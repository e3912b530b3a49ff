"""Writes a second through the store writer, beside plain pipelined SET."""

from __future__ import annotations

import json

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Figure
from benchmarks.servers import config_of, redis_server
from freshet import Aggregate, FeatureTable, Points

_MAIN = "dev.freshet.connectors.store.WriterThroughput"
_PAYLOAD_BYTES = 32 * 4


def run(context: Context) -> list[Figure]:
    """The operator in Flink's harness, against a real Redis; values of 32 floats."""
    classes = java.class_path()
    table = FeatureTable(name="bench", function=Aggregate(), window=Points(8))
    writes = 20_000 if context.quick else 200_000
    with redis_server(context, "writer-redis") as url:
        context.say(f"{writes:,} writes a round")
        rounds = java.run_main(
            _MAIN,
            [
                json.dumps(table.to_dict()),
                json.dumps(config_of(url).deployment_dict(table)),
                *(str(number) for number in (writes, _PAYLOAD_BYTES, context.rounds)),
            ],
            classes=classes,
        )
    plain = Figure(
        "plain pipelined SET",
        "writes/s",
        tuple(turn["set"] for turn in rounds),
        note="Lettuce, same batches, same bytes",
    )
    writer = Figure(
        "store writer",
        "writes/s",
        tuple(turn["writer"] for turn in rounds),
        plain,
        note="write if newer, one change event for each acknowledgement",
    )
    plain_cpu = Figure(
        "Redis' CPU time of a plain SET", "µs/write", tuple(turn["set_cpu"] for turn in rounds)
    )
    writer_cpu = Figure(
        "Redis' CPU time of a write if newer",
        "µs/write",
        tuple(turn["writer_cpu"] for turn in rounds),
        plain_cpu,
        note="the script, its GETRANGE and its SET",
    )
    return [writer, plain, writer_cpu, plain_cpu]
