"""As many keys as RALF's production trace has: 275,077 machines, a reading of each in 5 minutes.

Plain STL over the last three days, with a period of a day, by the real job on the stack of
``freshet up`` with RocksDB. Filling the windows through Kafka would take hours, so the job starts
from a savepoint in which they are full and nothing is computed. It first computes every key, which
shows its capacity; then readings come at the trace's rate, and what is measured is how far features
lag behind, and what that takes.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, TopicPartition
from redis import Redis

from benchmarks import java
from benchmarks.context import Context
from benchmarks.figures import Aim, Figure, percentile
from benchmarks.fleet import Fleet
from benchmarks.pipeline import Pace, RunningTable, in_background, start_table
from benchmarks.readings import PERIOD, STEP_MS, WINDOW
from benchmarks.servers import stack as started_stack
from benchmarks.servers import used_memory
from benchmarks.usage import FUNCTION, Reading, folder_bytes, read_usage
from freshet.avro import decode_as
from freshet.stack import FlinkOptions, Stack

KEYS = 275_077
"""RALF §2.5.2: virtual machines in the trace."""

_QUICK_KEYS = 5_000
_QUICK_STEP_S = 30.0

_FLINK = FlinkOptions(
    state_backend="rocksdb",
    checkpoint_interval_ms=60_000,
    task_heap_mb=1_024,
    managed_memory_mb=1_024,
    # Gigabytes in one checkpoint, on a busy disk.
    settings={
        "execution.checkpointing.timeout": "20 min",
        # The first is the only complete one, and must not be forgotten.
        "web.checkpoints.history": "1000",
    },
)

_TABLE = {
    "function": f"STLDecomposition(period={PERIOD})",
    "window": f"Points({WINDOW})",
    "budget": "TimeShare(0.5)",
}

_MILLIS = 1_000
_RUNNING_DEADLINE_S = 900.0
_STALLED_DEADLINE_S = 120.0
_POLL_S = 0.2
_SENDS_PER_SECOND = 20.0
_USAGE_EVERY_S = 10.0
_CHECK_AGE_S = 30.0
_CHECK_CHUNK = 5_000
_REQUEST_TIMEOUT_S = 30.0


def run(context: Context) -> list[Figure]:
    """All keys for two steps of five minutes."""
    if context.quick:
        return measure(context, _QUICK_KEYS, _QUICK_STEP_S)
    return measure(context, KEYS, STEP_MS / _MILLIS)


def measure(context: Context, keys: int, step_s: float) -> list[Figure]:
    """Fills, catches up, then follows the readings for two steps.

    Args:
        context: of the run.
        keys: how many.
        step_s: wall time from a key's reading to its next, seconds.
    """
    fleet, classes = Fleet(keys), java.class_path()
    context.say(f"writing a savepoint of {keys:,} windows of {WINDOW} points")
    begun = time.monotonic()
    newest_ms = int(time.time() * _MILLIS) - STEP_MS
    folder = context.folder("scale-fill")
    savepoint = fleet.write_savepoint(folder, newest_ms, classes)
    filled_s = time.monotonic() - begun
    savepoint_bytes = folder_bytes(savepoint)
    with started_stack(context, "scale", task_managers=1, flink=_FLINK) as stack:
        context.say(f"starting the job from {savepoint_bytes / 1e9:.1f} GB")
        begun = time.monotonic()
        with start_table(
            stack,
            context.scratch,
            "bench_scale",
            savepoint=savepoint.as_uri(),
            running_deadline_s=_RUNNING_DEADLINE_S,
            **_TABLE,
        ) as table:
            restored_s = time.monotonic() - begun
            context.say(f"computing {keys:,} keys for the first time")
            _catch_up(table, keys)
            capacity = keys / _writing_time_s(stack, table)
            rounds = _follow(context, stack, table, fleet, step_s)
            context.say("looking at the store, the checkpoints and the disk")
            found = _look(stack, table)
    start = {
        "filled_s": filled_s,
        "restored_s": restored_s,
        "savepoint_bytes": savepoint_bytes,
    }
    return _figures(keys, step_s, capacity, rounds, start | found)


def _catch_up(table: RunningTable, keys: int) -> None:
    """Waits until every key has its first value."""
    last = 0
    deadline = time.monotonic() + _STALLED_DEADLINE_S
    while (written := table.writes()) < keys:
        now = time.monotonic()
        if written > last:
            last, deadline = written, now + _STALLED_DEADLINE_S
        if now > deadline:
            raise RuntimeError(f"only {written:,} of {keys:,} keys were computed; see the logs")
        time.sleep(_POLL_S)


def _writing_time_s(stack: Stack, table: RunningTable) -> float:
    """Between the first and the last of the change events that there are."""
    consumer = Consumer(stack.config.kafka_client_properties() | {"group.id": "bench-scale"})
    try:
        topic = table.table.to_dict()["changes_topic"]
        times = []
        for partition in consumer.list_topics(topic, _REQUEST_TIMEOUT_S).topics[topic].partitions:
            place = TopicPartition(topic, partition)
            first, end = consumer.get_watermark_offsets(place, timeout=_REQUEST_TIMEOUT_S)
            for offset in (first, end - 1):
                consumer.assign([TopicPartition(topic, partition, offset)])
                record = consumer.poll(_REQUEST_TIMEOUT_S)
                if record is None or record.error() is not None:
                    raise RuntimeError(f"topic {topic} cannot be read at offset {offset}")
                times.append(record.timestamp()[1])
        return float(max(times) - min(times)) / _MILLIS
    finally:
        consumer.close()


@dataclass
class _Round:
    """One step of following the readings."""

    cores: dict[str, float] = field(default_factory=dict)
    """Cores that each role was busy on."""

    resident: dict[str, int] = field(default_factory=dict)
    """Most memory of each role, bytes."""

    lags_s: list[float] = field(default_factory=list)
    """From sending a reading to the change event of a feature with it."""

    ages_s: list[float] = field(default_factory=list)
    """Of features when they were replaced."""

    seconds: float = 0.0


class _Changes:
    """Reads the topic of changes: when which key's feature got to which event time."""

    def __init__(self, stack: Stack, table: RunningTable, keys: int) -> None:
        self._topic: str = table.table.to_dict()["changes_topic"]
        self._consumer = Consumer(
            stack.config.kafka_client_properties() | {"group.id": "bench-scale"}
        )
        topics = self._consumer.list_topics(self._topic, timeout=_REQUEST_TIMEOUT_S).topics
        self._consumer.assign([
            TopicPartition(self._topic, number, self._end(number))
            for number in topics[self._topic].partitions
        ])  # fmt: skip
        self._as_of_ms: npt.NDArray[np.int64] = np.zeros(keys, np.int64)
        self._lock = threading.Lock()
        self._round = _Round()

    def _end(self, partition: int) -> int:
        place = TopicPartition(self._topic, partition)
        return int(self._consumer.get_watermark_offsets(place, timeout=_REQUEST_TIMEOUT_S)[1])

    def poll(self) -> None:
        """Takes in what has come."""
        messages = self._consumer.consume(500, timeout=0.1)
        now_ms = time.time() * _MILLIS
        with self._lock:
            for message in messages:
                if message.error() is None:
                    self._take(decode_as("FeatureChange", message.value()), now_ms)

    def _take(self, change: dict[str, Any], now_ms: float) -> None:
        key = int(change["key"].removeprefix("vm-"))
        before = int(self._as_of_ms[key])
        self._as_of_ms[key] = change["event_time"]
        self._round.lags_s.append((now_ms - change["event_time"]) / _MILLIS)
        if before:
            self._round.ages_s.append((now_ms - before) / _MILLIS)

    def next_round(self) -> _Round:
        """What came since the last call."""
        with self._lock:
            done, self._round = self._round, _Round()
        return done

    def close(self) -> None:
        """Leaves Kafka."""
        self._consumer.close()


@contextmanager
def _changes(stack: Stack, table: RunningTable, keys: int) -> Iterator[_Changes]:
    changes = _Changes(stack, table, keys)
    try:
        with in_background(changes.poll):
            yield changes
    finally:
        changes.close()


class _Feed:
    """Sends the machines' readings, spread evenly over a step."""

    def __init__(self, table: RunningTable, fleet: Fleet, step_s: float) -> None:
        self._table = table
        self._fleet = fleet
        self._per_send = len(fleet) / step_s / _SENDS_PER_SECOND
        self._pace = Pace(_SENDS_PER_SECOND)
        self._sends = 0
        self._next = 0
        self._reading = 0
        self.sent_ms: npt.NDArray[np.int64] = np.zeros(len(fleet), np.int64)
        """When each machine's newest reading was sent: its event time."""

    def send(self) -> None:
        """What is due now."""
        self._sends += 1
        due = int(self._sends * self._per_send) - int((self._sends - 1) * self._per_send)
        while due:
            last = min(self._next + due, len(self._fleet))
            self._send(slice(self._next, last))
            due -= last - self._next
            self._next = last
            if self._next == len(self._fleet):
                self._next, self._reading = 0, self._reading + 1
        self._pace.wait()

    def _send(self, machines: slice) -> None:
        now_ms = int(time.time() * _MILLIS)
        values = self._fleet.live(self._reading, machines)
        for key, value in zip(self._fleet.keys[machines], values.tolist(), strict=True):
            self._table.produce(key, now_ms, value)
        self.sent_ms[machines] = now_ms


def _follow(
    context: Context, stack: Stack, table: RunningTable, fleet: Fleet, step_s: float
) -> list[_Round]:
    """Readings at their rate: one step to begin with, then two that count."""
    feed = _Feed(table, fleet, step_s)
    rounds = []
    with _changes(stack, table, len(fleet)) as changes:
        with in_background(feed.send):
            context.say(f"{len(fleet) / step_s:,.0f} readings/s, one step before it counts")
            time.sleep(step_s)
            changes.next_round()
            for number in (1, 2):
                context.say(f"{len(fleet) / step_s:,.0f} readings/s, step {number}")
                rounds.append(_one_round(stack, changes, step_s))
        _check(table, fleet, feed)
    return rounds


def _one_round(stack: Stack, changes: _Changes, seconds: float) -> _Round:
    first = last = read_usage(stack)
    resident: dict[str, int] = {}
    while (left := seconds - (last.at_s - first.at_s)) > 0:
        time.sleep(min(left, _USAGE_EVERY_S))
        last = read_usage(stack)
        _keep_largest(resident, last)
    done = changes.next_round()
    done.cores = last.cores_since(first)
    done.resident = resident
    done.seconds = last.at_s - first.at_s
    return done


def _keep_largest(resident: dict[str, int], reading: Reading) -> None:
    for role, usage in reading.usage.items():
        resident[role] = max(resident.get(role, 0), usage.resident_bytes)


def _check(table: RunningTable, fleet: Fleet, feed: _Feed) -> None:
    """Every key's feature has its newest reading, in the store itself.

    Raises:
        RuntimeError: one has not, for longer than is plausible.
    """
    deadline = time.monotonic() + _CHECK_AGE_S
    while True:
        behind = 0
        for first in range(0, len(fleet), _CHECK_CHUNK):
            chunk = slice(first, first + _CHECK_CHUNK)
            stored = np.array(table.event_times(fleet.keys[chunk]))
            behind += int((stored < feed.sent_ms[chunk]).sum())
        if not behind:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{behind:,} features lack their newest reading")
        time.sleep(_POLL_S)


def _look(stack: Stack, table: RunningTable) -> dict[str, Any]:
    """Sizes and checkpoints."""
    rest = stack.flink.rest
    (worker,) = stack.flink.task_managers
    (heap,) = rest.get(f"/taskmanagers/{worker}/metrics?get=Status.JVM.Memory.Heap.Used")
    with Redis.from_url(stack.config.home_redis) as redis:
        redis_bytes = used_memory(redis)
    history = rest.get(f"/jobs/{table.job_id}/checkpoints")["history"]
    done = [entry for entry in history if entry["status"] == "COMPLETED"]
    return {
        "heap_bytes": float(heap["value"]),
        "redis_bytes": redis_bytes,
        "state_bytes": _rocksdb_bytes(stack.directory),
        "checkpoints": sorted(done, key=lambda entry: int(entry["id"])),
    }


def _rocksdb_bytes(folder: Path) -> int:
    return sum(folder_bytes(found) for found in folder.rglob("job_*_op_*") if found.is_dir())


def _figures(
    keys: int, step_s: float, capacity: float, rounds: list[_Round], found: dict[str, Any]
) -> list[Figure]:
    rate = keys / step_s
    note = (
        f"{keys:,} keys, windows of {WINDOW} points of resampled Azure VMs, {rate:,.0f} readings/s"
    )
    needed = Figure("updates needed, one for each reading", "updates/s", (rate,))
    return [
        Figure(
            "updates done",
            "updates/s",
            tuple(len(done.lags_s) / done.seconds for done in rounds),
            needed,
            note=note,
        ),
        Figure(
            "updates when all keys are pending",
            "updates/s",
            (capacity,),
            needed,
            Aim(1.0, of="ratio", at_least=True),
            "half of the subtask's time for the function",
        ),
        *_lags(rounds, step_s),
        *_cores(rounds),
        *_memory(rounds, found, keys),
        *_sizes(found, keys),
    ]


def _lags(rounds: list[_Round], step_s: float) -> list[Figure]:
    lags = [
        Figure(
            f"reading to feature, p{percent:g}" if percent < 100 else "reading to feature, longest",
            "s",
            tuple(percentile(done.lags_s, percent) for done in rounds),
            aim=Aim(step_s) if percent == 100 else None,
        )
        for percent in (50, 99, 100)
    ]
    oldest = Figure(
        "oldest feature that was replaced", "s", tuple(max(done.ages_s) for done in rounds)
    )
    return [*lags, oldest]


def _cores(rounds: list[_Round]) -> list[Figure]:
    figures = [
        Figure(f"CPU of {role}", "cores", tuple(done.cores[role] for done in rounds))
        for role in sorted(rounds[0].cores)
    ]
    job = tuple(done.cores["TaskManager"] + done.cores[FUNCTION] for done in rounds)
    return [Figure("CPU of the job: TaskManager and function", "cores", job), *figures]


def _memory(rounds: list[_Round], found: dict[str, Any], keys: int) -> list[Figure]:
    resident = [
        Figure(
            f"resident memory of {role}",
            "MB",
            tuple(done.resident[role] / 1e6 for done in rounds),
        )
        for role in sorted(rounds[0].resident)
        if role not in ("load generator", "other")
    ]
    heap = Figure("heap in use of TaskManager", "MB", (found["heap_bytes"] / 1e6,))
    redis = Figure(
        "Redis memory for a key",
        "B/key",
        (found["redis_bytes"] / keys,),
        note=f"a value is {4 * (PERIOD + 1):,} B of floats and 28 B of header",
    )
    return [*resident, heap, redis]


def _sizes(found: dict[str, Any], keys: int) -> list[Figure]:
    first, *later = found["checkpoints"]
    figures = [
        Figure("state in RocksDB, on disk", "GB", (found["state_bytes"] / 1e9,)),
        Figure("state in RocksDB, on disk, of a key", "B/key", (found["state_bytes"] / keys,)),
        Figure(
            "savepoint",
            "GB",
            (found["savepoint_bytes"] / 1e9,),
            note=f"{found['savepoint_bytes'] / keys:,.0f} B a key, not compressed",
        ),
        Figure("writing the savepoint", "s", (found["filled_s"],), note="by the benchmark"),
        Figure("submission and start from the savepoint", "s", (found["restored_s"],)),
        Figure("first checkpoint, complete", "GB", (first["checkpointed_size"] / 1e9,)),
        Figure("first checkpoint, time", "s", (first["end_to_end_duration"] / _MILLIS,)),
    ]
    if later:
        sizes = [entry["checkpointed_size"] / 1e6 for entry in later]
        times = [entry["end_to_end_duration"] / _MILLIS for entry in later]
        every = f"{len(later)} of them, incremental, one a minute"
        figures += [
            Figure("later checkpoints, written", "MB", (statistics.median(sizes),), note=every),
            Figure("later checkpoints, time", "s", (statistics.median(times),), note=every),
        ]
    return figures
