"""``freshet up``: start the embedded stack; it runs until ``freshet down``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from freshet.cli.output import JsonOption, emit, note
from freshet.cli.status import describe, render
from freshet.config import DEFAULT_HOME_REGION, stack_home
from freshet.stack import FlinkOptions, RedisOptions, Stack, StackOptions
from freshet.stack.signals import exit_on_signals


class StateBackend(StrEnum):
    """Where Flink keeps keyed state."""

    heap = "heap"
    rocksdb = "rocksdb"


def command(
    task_managers: Annotated[
        int, typer.Option(min=1, max=64, help="Flink TaskManagers; each has one slot.")
    ] = 2,
    regions: Annotated[
        str,
        typer.Option(help="Regions, by commas; each gets a Redis, the first is home."),
    ] = DEFAULT_HOME_REGION,
    state_backend: Annotated[
        StateBackend, typer.Option(help="Where Flink keeps keyed state.")
    ] = StateBackend.heap,
    checkpoint_interval: Annotated[
        int, typer.Option(min=100, help="Milliseconds between Flink's checkpoints.")
    ] = 5_000,
    task_heap: Annotated[
        int, typer.Option(min=64, help="Heap of a TaskManager for operators and state, MB.")
    ] = 512,
    persistent_redis: Annotated[
        bool, typer.Option(help="Whether Redis keeps its data when its process is killed.")
    ] = True,
    topic_prefix: Annotated[str, typer.Option(help="Goes before the name of every topic.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Start Kafka, Redis and Flink on loopback."""
    options = StackOptions(
        regions=tuple(region.strip() for region in regions.split(",")),
        redis=RedisOptions(persistent=persistent_redis),
        flink=FlinkOptions(
            task_managers=task_managers,
            state_backend=state_backend.value,
            checkpoint_interval_ms=checkpoint_interval,
            task_heap_mb=task_heap,
        ),
        topic_prefix=topic_prefix,
    )
    home = stack_home()
    with exit_on_signals():
        stack = Stack(home / "stack", options)
        note("Starting Kafka, Redis and Flink ...")
        stack.start_detached(home)
    status = describe(stack.config, stack)
    emit(status | {"jobs": []}, *render(status), "Stop it with: freshet down", as_json=as_json)
