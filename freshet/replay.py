"""Replays recorded series into a table's topic of events, in the order and pace of their times."""

from __future__ import annotations

import csv
import io
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from freshet.config import Config
from freshet.errors import FreshetError

HEARTBEAT_HEADER = "freshet-heartbeat"
"""Header of a record without key and value that says how far event time is in its partition."""

FLUSH_TIMEOUT_S = 60.0
METADATA_TIMEOUT_S = 30.0

_QUEUE_POLL_S = 0.05

_DEFAULTS = {
    "linger.ms": "5",
    "enable.idempotence": "true",  # also keeps the order within a partition
    "compression.type": "lz4",
    # Java's choice of partition, so that all producers of a key share its partition.
    "partitioner": "murmur2_random",
}

Times = npt.NDArray[np.int64]


class ReplayError(FreshetError):
    """The data can't be read, or Kafka does not take it."""


@dataclass(frozen=True)
class Recording:
    """Events of many series, sorted by time."""

    ids: list[str]
    """Entity keys of the series [k]."""

    timestamps: Times
    """Event times [n], epoch milliseconds, ascending."""

    series: npt.NDArray[np.int64]
    """Index into ids of each event [n]."""

    values: Sequence[Any]
    """Values [n]: numbers, or what the table's kind of source asks for."""

    def __len__(self) -> int:
        """Number of events."""
        return len(self.timestamps)

    def between(self, begin_ms: int | None, end_ms: int | None) -> Recording:
        """The events at begin_ms or later and before end_ms; None for no limit."""
        first = 0 if begin_ms is None else int(np.searchsorted(self.timestamps, begin_ms))
        last = len(self) if end_ms is None else int(np.searchsorted(self.timestamps, end_ms))
        cut = slice(first, max(first, last))
        return Recording(self.ids, self.timestamps[cut], self.series[cut], self.values[cut])

    def steps(self, step_ms: int) -> Iterator[tuple[int, Recording]]:
        """The events by steps of event time that have any, each with the end of its step.

        A step ends at a multiple of step_ms, which belongs to it: (end - step_ms, end].
        """
        ends = -(-self.timestamps // step_ms) * step_ms
        bounds = np.flatnonzero(np.diff(ends)) + 1
        for first, last in zip([0, *bounds.tolist()], [*bounds.tolist(), len(self)], strict=True):
            if first < last:
                cut = slice(first, last)
                part = Recording(self.ids, self.timestamps[cut], self.series[cut], self.values[cut])
                yield int(ends[first]), part


def load_recording(
    location: str, *, kind: str = "scalar", start_ms: int | None = None
) -> Recording:
    """Reads recorded series.

    An ``.npz`` has ``values`` [steps, series] (NaN where a reading is missing), ``ids`` [series]
    and ``step_seconds``. A ``.csv`` has the columns series, timestamp (epoch milliseconds or ISO
    8601) and value (JSON for vectors and objects), with or without a line of headings.

    Args:
        location: path, or URL that smart-open reads; ``.gz`` and the like are unpacked.
        kind: of the table's source.
        start_ms: time of the first step of an ``.npz``, epoch milliseconds; None has its last step
            be now.

    Raises:
        ReplayError: it can't be read, or is of another form.
    """
    name = PurePosixPath(location)
    suffix = name.suffixes[-2:-1] if name.suffix in (".gz", ".bz2", ".zst") else [name.suffix]
    if suffix == [".npz"]:
        return _load_npz(location, start_ms)
    if suffix == [".csv"]:
        return _load_csv(location, kind)
    raise ReplayError(f"{location} is neither .npz nor .csv; convert it, see docs/client.md")


class EventReplayer:
    """Produces events of a table, and heartbeats that say how far event time is.

    Args:
        config: of the deployment.
        definition: of the table, as ``FeatureTable.to_dict(topic_prefix)`` gives it.
        ids: entity keys of the series [k].
        feedback_topics: of feedback, which heartbeats go to as well; None for the table's own.
            Give none where models send feedback at the same time: a heartbeat says that no earlier
            one follows. Give all where several tables read the same events.

    Raises:
        ReplayError: Kafka does not answer, or a topic is missing.
    """

    def __init__(
        self,
        config: Config,
        definition: Mapping[str, Any],
        ids: Sequence[str],
        *,
        feedback_topics: Sequence[str] | None = None,
    ) -> None:
        source = definition["source"]
        self._topic: str = source["topic"]
        self._keys = [key.encode() for key in ids]
        # All of an event's JSON but its time and value, which are all that differs.
        names = (json.dumps(source[role]) for role in ("key", "timestamp", "value"))
        self._field_names = tuple(names)
        self._id_field = None if source["id"] is None else json.dumps(source["id"])
        self._heads = [
            f"{{{self._field_names[0]}: {json.dumps(key)}, {self._field_names[1]}: " for key in ids
        ]
        self._producer = Producer(
            {**_DEFAULTS, **config.kafka_client_properties()},
            logger=logging.getLogger("freshet.kafka"),
        )
        self._lost = 0
        self._last_loss = ""
        if feedback_topics is None:
            feedback_topics = [definition["feedback_topic"]]
        self._partitions = {
            topic: self._partitions_of(topic) for topic in (self._topic, *feedback_topics)
        }
        self.produced = 0
        """Events produced so far."""

    def produce_step(self, values: npt.ArrayLike, timestamps: Sequence[int] | Times) -> int:
        """Produces a dense block of readings, time by time.

        Args:
            values: numbers [t, k], one column for each of ids; NaN where there is no reading.
            timestamps: event times [t], epoch milliseconds.

        Returns:
            How many events were produced.
        """
        block = np.asarray(values, np.float64)
        times = np.asarray(timestamps, np.int64)
        if block.shape != (len(times), len(self._keys)):
            raise ValueError(
                f"values have the shape {block.shape}, and {len(times)} times of "
                f"{len(self._keys)} series need {(len(times), len(self._keys))}"
            )
        steps, series = np.nonzero(~np.isnan(block))
        return self._produce_all(
            series.tolist(), times[steps].tolist(), block[steps, series].tolist()
        )

    def produce(self, recording: Recording) -> int:
        """Produces a recording's events, whose ids are those given to the constructor."""
        return self._produce_all(
            recording.series.tolist(), recording.timestamps.tolist(), list(recording.values)
        )

    def heartbeat(self, timestamp_ms: int) -> None:
        """Says in every partition that event time has come to timestamp_ms.

        All events that were produced before are acknowledged first, so that none comes late.

        Raises:
            ReplayError: Kafka has not taken all of them.
        """
        self.flush()
        for topic, partitions in self._partitions.items():
            for partition in partitions:
                self._send(
                    topic,
                    partition=partition,
                    timestamp=timestamp_ms,
                    headers={HEARTBEAT_HEADER: b"1"},
                )

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Waits until Kafka has acknowledged everything.

        Raises:
            ReplayError: it has not.
        """
        remaining = self._producer.flush(timeout_s)
        if remaining or self._lost:
            reason = self._last_loss or f"no answer within {timeout_s:g} s"
            raise ReplayError(
                f"Kafka did not take {remaining + self._lost} records of {self._topic}: {reason}; "
                "check that it runs, then start over"
            )

    def _produce_all(self, series: list[int], times: list[int], values: list[Any]) -> int:
        keys, heads, value_field = self._keys, self._heads, f", {self._field_names[2]}: "
        id_field = "" if self._id_field is None else f", {self._id_field}: "
        for i, (index, timestamp, value) in enumerate(zip(series, times, values, strict=True)):
            text = repr(value) if type(value) is float else json.dumps(value)
            # Events of a recording have no id; its position tells apart those of one millisecond.
            tail = f"{id_field}{self.produced + i}}}" if id_field else "}"
            body = f"{heads[index]}{timestamp}{value_field}{text}{tail}"
            self._send(self._topic, key=keys[index], value=body)
        self._producer.poll(0)
        self.produced += len(series)
        return len(series)

    def _send(self, topic: str, **record: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, on_delivery=self._on_delivery, **record)
                return
            except BufferError:  # the queue is full: Kafka sets the pace
                self._producer.poll(_QUEUE_POLL_S)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._lost += 1
            self._last_loss = f"{message.topic()}: {error.str()}"

    def _partitions_of(self, topic: str) -> list[int]:
        try:
            found = self._producer.list_topics(topic, METADATA_TIMEOUT_S).topics[topic]
        except KafkaException as e:
            raise ReplayError(
                f"Kafka does not answer ({e.args[0].str()}); check kafka_bootstrap and that it runs"
            ) from e
        if found.error is not None:
            raise ReplayError(
                f"topic {topic}: {found.error.str()}; submit the table first, which creates it"
            )
        return sorted(found.partitions)


class Pace:
    """Keeps event time and wall time in step.

    Args:
        speed_up: seconds of event time in a second; 0 for as fast as possible.
    """

    def __init__(self, speed_up: float) -> None:
        if speed_up < 0:
            raise ValueError(f"speed-up must be 0 or more, not {speed_up}")
        self._speed_up = speed_up
        self._begin_ms: int | None = None
        self._started = 0.0

    def wait_until(self, event_time_ms: int) -> None:
        """Sleeps until it is the turn of this event time; the first call sets the beginning."""
        if self._speed_up == 0:
            return
        if self._begin_ms is None:
            self._begin_ms, self._started = event_time_ms, time.monotonic()
        due = self._started + (event_time_ms - self._begin_ms) / 1000 / self._speed_up
        while (left := due - time.monotonic()) > 0:
            time.sleep(min(left, 0.5))


@dataclass(frozen=True)
class ReplaySummary:
    """What a replay has done."""

    events: int
    series: int
    first_ms: int | None
    last_ms: int | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return dict(self.__dict__)


def replay(
    recording: Recording,
    replayer: EventReplayer,
    *,
    step_ms: int,
    speed_up: float = 0.0,
    on_step: Callable[[int, int], None] | None = None,
) -> ReplaySummary:
    """Produces a recording, with a heartbeat at the end of each step of event time.

    Args:
        recording: the events.
        replayer: with the ids of the recording.
        step_ms: length of a step, milliseconds; events of one step leave together.
        speed_up: seconds of event time in a second; 0 for as fast as possible.
        on_step: called after each step with the events produced so far and the step's end.

    Raises:
        ReplayError: Kafka does not take the events.
    """
    pace, started = Pace(speed_up), time.monotonic()
    produced = 0
    try:
        for end_ms, part in recording.steps(step_ms):
            pace.wait_until(end_ms)
            produced += replayer.produce(part)
            replayer.heartbeat(end_ms)
            if on_step is not None:
                on_step(produced, end_ms)
    finally:
        replayer.flush()  # also when interrupted: what was produced arrives
    first, last = (int(recording.timestamps[i]) if produced else None for i in (0, -1))
    return ReplaySummary(produced, len(recording.ids), first, last, time.monotonic() - started)


def parse_time_ms(text: str) -> int:
    """Epoch milliseconds of a time: a number of them, or ISO 8601 (UTC unless it says otherwise).

    Raises:
        ValueError: it is neither.
    """
    stripped = text.strip()
    if stripped.lstrip("-").isdigit():
        return int(stripped)
    try:
        parsed = datetime.fromisoformat(stripped)
    except ValueError as e:
        raise ValueError(
            f"{text!r} is no time; write epoch milliseconds or ISO 8601, such as 2024-05-01T00:00Z"
        ) from e
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1000)


def read_bytes(location: str) -> bytes:
    """Content of a file, unpacked if it is named ``.gz`` or the like.

    Args:
        location: path, or URL that smart-open reads.

    Raises:
        ReplayError: it can't be read.
    """
    import smart_open

    try:
        with smart_open.open(location, "rb") as file:
            return bytes(file.read())
    except Exception as e:
        raise ReplayError(f"{location} can't be read: {e}") from e


def _load_npz(location: str, start_ms: int | None) -> Recording:
    try:
        with np.load(io.BytesIO(read_bytes(location)), allow_pickle=False) as data:
            values = np.asarray(data["values"], np.float64)
            ids = [str(key) for key in data["ids"]]
            step_ms = round(float(data["step_seconds"]) * 1000)
    except (KeyError, ValueError, OSError) as e:
        raise ReplayError(
            f"{location} is no recording: {e}; an .npz needs values [steps, series], ids [series] "
            "and step_seconds"
        ) from e
    if values.ndim != 2 or values.shape[1] != len(ids) or step_ms <= 0:
        raise ReplayError(
            f"{location} has values of the shape {values.shape} for {len(ids)} ids and steps of "
            f"{step_ms} ms; values must be [steps, series]"
        )
    if start_ms is None:
        start_ms = int(time.time() * 1000) // step_ms * step_ms - (len(values) - 1) * step_ms
    steps, series = np.nonzero(~np.isnan(values))
    return Recording(ids, start_ms + steps * step_ms, series, values[steps, series].tolist())


def _load_csv(location: str, kind: str) -> Recording:
    read_value = float if kind == "scalar" else json.loads
    indexes: dict[str, int] = {}
    series, timestamps, values = list[int](), list[int](), list[Any]()
    lines = csv.reader(io.StringIO(read_bytes(location).decode("utf-8-sig")))
    for number, row in enumerate(lines, start=1):
        if not row or (number == 1 and _is_heading(row)):
            continue
        try:
            key, timestamp, value = row
            timestamps.append(parse_time_ms(timestamp))
            values.append(read_value(value))
        except ValueError as e:
            raise ReplayError(
                f"{location}, line {number}: {e}; a line is series,timestamp,value"
            ) from e
        series.append(indexes.setdefault(key, len(indexes)))
    order = np.argsort(np.array(timestamps, np.int64), kind="stable")
    return Recording(
        list(indexes),
        np.array(timestamps, np.int64)[order],
        np.array(series, np.int64)[order],
        [values[i] for i in order.tolist()],
    )


def _is_heading(row: list[str]) -> bool:
    try:
        parse_time_ms(row[1])
    except (IndexError, ValueError):
        return True
    return False
