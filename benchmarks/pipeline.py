"""A feature job that runs on a real stack, fed and watched by a benchmark."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition
from redis import Redis

from freshet.stack import Stack
from freshet.store.layout import key_name
from freshet.submission import RUNNING_DEADLINE_S, submit_table
from freshet.table import load_table

POLL_S = 0.05
_ENDED_DEADLINE_S = 60.0
_REQUEST_TIMEOUT_S = 30.0
_EVENT_TIME = struct.Struct("<q")
_EVENT_TIME_OFFSET = 12
_STALLED_DEADLINE_S = 60.0


class RunningTable:
    """A table's job: produce events, count acknowledged writes, read event times."""

    def __init__(self, stack: Stack, file: Path, job_id: str) -> None:
        self.table = load_table(file)
        self._stack = stack
        self.job_id = job_id
        """Flink's id of the job."""
        definition = self.table.to_dict()
        self._events: str = definition["source"]["topic"]
        self._changes: str = definition["changes_topic"]
        config = stack.config
        self._producer = Producer(
            config.kafka_client_properties()
            | {"linger.ms": "1", "queue.buffering.max.messages": "1000000"}
        )
        self._consumer = Consumer(
            config.kafka_client_properties() | {"group.id": f"bench-{self.table.name}"}
        )
        topics = self._consumer.list_topics(self._changes, timeout=_REQUEST_TIMEOUT_S).topics
        self._partitions = [
            TopicPartition(self._changes, number) for number in topics[self._changes].partitions
        ]
        self._redis = Redis.from_url(config.home_redis)
        self._newest: dict[str, int] = {}

    def produce(self, key: str, time_ms: int, value: float) -> None:
        """Queues an event; it leaves within a millisecond."""
        self._newest[key] = max(time_ms, self._newest.get(key, time_ms))
        event = {"key": key, "ts": time_ms, "value": value}
        payload = json.dumps(event).encode()
        while True:
            try:
                self._producer.produce(self._events, payload, key.encode())
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def produce_all(self, events: Iterable[tuple[str, int, float]]) -> None:
        """Sends events and waits until Kafka has them."""
        for key, time_ms, value in events:
            self.produce(key, time_ms, value)
        self._producer.flush(_REQUEST_TIMEOUT_S)

    def writes(self) -> int:
        """Writes that the store has acknowledged: each is one change event."""
        return sum(
            self._consumer.get_watermark_offsets(partition, timeout=_REQUEST_TIMEOUT_S)[1]
            for partition in self._partitions
        )

    def event_times(self, keys: Sequence[str]) -> list[int]:
        """Event times of the keys' values, epoch milliseconds; -1 where there is none."""
        names = [key_name("", self.table.name, key) for key in keys]
        values: list[bytes | None] = self._redis.mget(names)  # type: ignore[assignment]
        return [
            -1 if value is None else _EVENT_TIME.unpack_from(value, _EVENT_TIME_OFFSET)[0]
            for value in values
        ]

    def writes_per_second(self, seconds: float) -> float:
        """Measures the rate of writes over this time."""
        first, begun = self.writes(), time.perf_counter()
        time.sleep(seconds)
        last, ended = self.writes(), time.perf_counter()
        return (last - first) / (ended - begun)

    def wait_until_stored(self) -> None:
        """Waits until the store has every event that was produced, so that no key is pending.

        Raises:
            RuntimeError: no write came for a long time.
        """
        self._producer.flush(_REQUEST_TIMEOUT_S)
        wanted = dict(self._newest)
        keys = list(wanted)
        behind, deadline = len(keys) + 1, 0.0
        while True:
            stored = self.event_times(keys)
            missing = sum(time_ms < wanted[key] for key, time_ms in zip(keys, stored, strict=True))
            if not missing:
                return
            if missing < behind:
                behind, deadline = missing, time.monotonic() + _STALLED_DEADLINE_S
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{self.table.name} stopped with {missing} keys behind;"
                    f" its job is {self._stack.flink.rest.job(self.job_id).state}"
                )
            time.sleep(POLL_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Before the broker ends: a producer without one complains once a second.
        self._producer.flush(_REQUEST_TIMEOUT_S)
        del self._producer
        self._consumer.close()
        self._redis.close()
        rest = self._stack.flink.rest
        rest.cancel(self.job_id)
        deadline = time.monotonic() + _ENDED_DEADLINE_S
        while rest.job(self.job_id).state != "CANCELED" and time.monotonic() < deadline:
            time.sleep(POLL_S)


def start_table(
    stack: Stack,
    folder: Path,
    name: str,
    *,
    savepoint: str | None = None,
    running_deadline_s: float = RUNNING_DEADLINE_S,
    **fields: str,
) -> RunningTable:
    """Writes a definition as a user would, and submits it.

    Args:
        folder: for the definition.
        name: of the table.
        savepoint: to start from.
        running_deadline_s: how long the job may take until it runs, which includes reading the
            savepoint.
        fields: of the table, as Python text.
    """
    lines = "".join(f"    {field}={text},\n" for field, text in fields.items())
    file = folder / f"{name}.py"
    file.write_text(
        f"from freshet import *\n\ntable = FeatureTable(\n    name={name!r},\n{lines})\n",
        encoding="utf-8",
    )
    submission = submit_table(
        file,
        stack.config,
        stack=stack,
        savepoint=savepoint,
        running_deadline_s=running_deadline_s,
    )
    return RunningTable(stack, file, submission.job.id)


@contextmanager
def in_background(step: Callable[[], Any]) -> Iterator[None]:
    """Calls the step again and again on another thread, as long as the block lasts.

    Raises:
        Exception: what the step raised, at the end of the block.
    """
    stop = threading.Event()
    failures: list[Exception] = []

    def loop() -> None:
        try:
            while not stop.is_set():
                step()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]


class Pace:
    """Keeps a loop to a rate, catching up after a delay."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second
        self._next = time.perf_counter()

    def wait(self) -> None:
        """Sleeps until the next turn."""
        self._next += self._interval
        delay = self._next - time.perf_counter()
        if delay > 0:
            time.sleep(delay)
