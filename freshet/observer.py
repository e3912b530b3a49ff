"""Watches what the jobs say: change events, progress and dead letters, from outside of them."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np

from freshet.avro import AvroError, decode, decode_as
from freshet.config import Config
from freshet.errors import FreshetError
from freshet.table import FeatureTable

_POLL_TIMEOUT_S = 0.1
_BATCH_RECORDS = 500
_METADATA_TIMEOUT_S = 30.0
_JOIN_DEADLINE_S = 10.0

RECENT_FRESHNESS = 1_000
"""So many newest samples are behind the live table's percentiles."""


class ProductionLog:
    """When each event time was handed to Kafka; what freshness is measured from."""

    def __init__(self) -> None:
        """Starts empty."""
        self._wall_s: dict[int, float] = {}

    def produced(self, event_time_ms: int, wall_s: float) -> None:
        """Notes that the events of this time went out now, in seconds since the epoch."""
        self._wall_s[event_time_ms] = wall_s

    def wall_s(self, event_time_ms: int) -> float | None:
        """When the events of this time went out; None if they have not."""
        return self._wall_s.get(event_time_ms)


@dataclass
class TableWatch:
    """What was seen of one table."""

    changes: int = 0
    """Change events, without repetitions."""

    updates: Counter[str] = field(default_factory=Counter)
    """Change events of each key."""

    newest: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Newest version of each key."""

    history: list[tuple[int, str]] = field(default_factory=list)
    """(version's timestamp in microseconds, key) of every update, as they were seen."""

    initial_freshness_ms: list[float] = field(default_factory=list)
    """Of the first value of each key."""

    freshness_ms: list[float] = field(default_factory=list)
    """Of every later value: wall time from an event's production to the change that holds it."""

    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    """Dead letters, decoded."""

    watermarks: dict[int, int] = field(default_factory=dict)
    """Event time up to which each subtask's decisions are in the store, epoch milliseconds."""

    subtasks: int = 1

    def complete_through(self) -> int:
        """Event time up to which the store holds every decision, epoch milliseconds; 0 at first."""
        if len(self.watermarks) < self.subtasks:
            return 0
        return min(self.watermarks.values())

    def recent_freshness_ms(self) -> list[float]:
        """The newest samples, for the live table."""
        return list(deque(self.freshness_ms, RECENT_FRESHNESS))


class Observer:
    """Reads the topics that the jobs write, in a thread of its own, from their beginning."""

    def __init__(
        self,
        config: Config,
        tables: Sequence[FeatureTable],
        production: ProductionLog,
        region_reports: Callable[[dict[str, Any]], None] = lambda report: None,
    ) -> None:
        """Describes the observer; :meth:`__enter__` starts it.

        Args:
            config: of the deployment.
            tables: whose topics it reads; the topics must exist.
            production: when events went out.
            region_reports: called in the observer's thread with each report of the multicast job
                and of the regions' jobs, which are in the topic of progress as well.
        """
        self._region_reports = region_reports
        self.tables = {table.name: TableWatch() for table in tables}
        self._production = production
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        definitions = [table.to_dict(config.topic_prefix) for table in tables]
        self._change_topics = {d["changes_topic"] for d in definitions}
        self._dead_letter_topics = {d["dead_letters_topic"] for d in definitions}
        self._progress_topics = {d["progress_topic"] for d in definitions}
        self._properties = {
            **config.kafka_client_properties(),
            "group.id": "freshet-observer",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
        self._thread = threading.Thread(target=self._run, name="freshet-observer", daemon=True)

    def __enter__(self) -> Observer:
        """Starts to read."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the thread."""
        self._stopping.set()
        self._thread.join(_JOIN_DEADLINE_S)

    def wait_until_complete(self, event_time_ms: int, timeout_s: float) -> bool:
        """Waits until every table's store holds all that was decided up to an event time.

        Returns:
            Whether that is so; False after the timeout.

        Raises:
            FreshetError: the topics cannot be read.
        """
        return self.wait_for(
            lambda: all(w.complete_through() >= event_time_ms for w in self.tables.values()),
            timeout_s,
        )

    def wait_for_changes(
        self, stored: Mapping[str, Mapping[str, tuple[int, int]]], timeout_s: float
    ) -> bool:
        """Waits until the change event of every stored version was seen.

        Args:
            stored: version of each key of each table, as read from the store.
            timeout_s: for how long, seconds.

        Returns:
            Whether all were seen; False after the timeout.
        """
        return self.wait_for(
            lambda: all(
                self.tables[table].newest.get(key, (0, 0)) >= version
                for table, versions in stored.items()
                for key, version in versions.items()
            ),
            timeout_s,
        )

    def wait_for_dead_letters(self, count: int, timeout_s: float) -> bool:
        """Waits until each table has so many dead letters; False after the timeout."""
        return self.wait_for(
            lambda: all(len(watch.dead_letters) >= count for watch in self.tables.values()),
            timeout_s,
        )

    def wait_for(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until something is so, which is asked whenever records came.

        Returns:
            Whether it is; False after the timeout.

        Raises:
            FreshetError: the topics cannot be read.
        """
        with self._changed:
            done = self._changed.wait_for(lambda: self._failure is not None or reached(), timeout_s)
        if self._failure is not None:
            raise FreshetError(f"the jobs' topics cannot be read: {self._failure}")
        return bool(done)

    def _run(self) -> None:
        try:
            self._consume()
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _consume(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

        consumer = Consumer(self._properties)
        try:
            topics = consumer.list_topics(timeout=_METADATA_TIMEOUT_S).topics
            consumer.assign(
                [
                    TopicPartition(name, partition, OFFSET_BEGINNING)
                    for name in (
                        self._change_topics | self._dead_letter_topics | self._progress_topics
                    )
                    for partition in topics[name].partitions
                ]
            )
            while not self._stopping.is_set():
                first = consumer.poll(_POLL_TIMEOUT_S)
                if first is None:
                    continue
                wall_s = time.time()
                # Only what is there already: waiting for a full batch would delay what it says.
                records = [first, *consumer.consume(_BATCH_RECORDS, 0)]
                with self._changed:
                    for record in records:
                        if record.error() is None:
                            self._take(record.topic(), record.value(), wall_s)
                        elif not record.error().retriable():
                            raise KafkaException(record.error())
                    self._changed.notify_all()
        finally:
            consumer.close()

    def _take(self, topic: str, value: bytes | None, wall_s: float) -> None:
        if value is None:
            return
        try:
            if topic in self._progress_topics:
                self._take_progress(*decode(value))
            elif topic in self._change_topics:
                self._take_change(decode_as("FeatureChange", value), wall_s)
            else:
                letter = decode_as("DeadLetter", value)
                self.tables[letter["table"]].dead_letters.append(letter)
        except AvroError as error:
            raise FreshetError(f"topic {topic}: {error}") from error

    def _take_progress(self, name: str, progress: dict[str, Any]) -> None:
        if name == "RegionReport":
            self._region_reports(progress)
            return
        if name != "Progress":
            raise AvroError(f"expected a Progress or a RegionReport, found a {name}")
        watch = self.tables.get(progress["table"])
        if watch is not None:
            watch.subtasks = progress["parallelism"]
            watch.watermarks[progress["subtask"]] = progress["watermark"]

    def _take_change(self, change: dict[str, Any], wall_s: float) -> None:
        watch, key = self.tables[change["table"]], change["key"]
        version = (change["version_timestamp"], change["version_origin"])
        # Delivery is at least once.
        if version <= watch.newest.get(key, (0, 0)):
            return
        first = key not in watch.newest
        watch.newest[key] = version
        watch.changes += 1
        watch.updates[key] += 1
        watch.history.append((version[0], key))
        produced_s = self._production.wall_s(change["event_time"])
        if produced_s is not None:
            samples = watch.initial_freshness_ms if first else watch.freshness_ms
            samples.append((wall_s - produced_s) * 1_000)


def percentiles_ms(samples: Sequence[float]) -> dict[str, float | None]:
    """The median and the 99th percentile of latencies, milliseconds; None without samples."""
    if not samples:
        return {"p50": None, "p99": None}
    p50, p99 = np.percentile(np.asarray(samples), [50, 99])
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1)}
