"""A stream of change events as a feature job writes them: few keys change often, most seldom."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer

from freshet import avro

KEYS = 20_000
FLOATS = 32
"""Features in a value."""

PROBES_PER_S = 10
"""Changes of keys that change once, so that each of them has to arrive by itself."""

_ZIPF = 1.0
"""Exponent: the key of rank r changes 1/r as often as the first."""

_STEP = 2 * np.pi / 288
"""Of a day's course, for readings five minutes apart."""

_ORIGIN = 7
_REGRET = struct.Struct("<d")
_SEED = 20_261_121
_TURN_S = 0.01
_FLUSH_DEADLINE_S = 60.0
_BLOCK = 8_192
_QUEUE_RECORDS = 200_000


class ChangeEncoder:
    """Encodes change events of one table; only what changes from one to the next is encoded anew.

    Args:
        table: their table.
    """

    def __init__(self, table: str) -> None:
        sample = {
            "table": table,
            "key": "",
            "version_timestamp": 0,
            "version_origin": _ORIGIN,
            "event_time": 0,
            "computed_at": 0,
            "operation": "UPSERT",
            "encoding": "FLOAT32_VECTOR",
            "is_first": False,
            "value": bytes(4 * FLOATS),
            "regret_removed": 0.0,
        }
        # Header and table; key, version, origin and times; operation, encoding and is_first; value
        # and regret.
        whole = avro.encode("FeatureChange", sample)
        name = _bytes(table.encode())
        self._head = whole[: avro.HEADER_BYTES] + name
        self._origin = _long(_ORIGIN)
        upto = len(whole) - _REGRET.size - 4 * FLOATS
        self._kind = whole[avro.HEADER_BYTES + len(name) + 1 + 1 + len(self._origin) + 2 : upto]

    def encode(self, key: bytes, version_micros: int, now_ms: int, rest: bytes) -> bytes:
        """One change event.

        Args:
            key: of the change.
            version_micros: first part of its version.
            now_ms: event time and time of computing.
            rest: the packed value, then the regret removed as 8 bytes.
        """
        now = _long(now_ms)
        version = _long(version_micros) + self._origin
        return b"".join((self._head, _bytes(key), version, now, now, self._kind, rest))


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


def _long(number: int) -> bytes:
    """Avro's encoding of a number that is not negative."""
    number <<= 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class Changes:
    """Endless changes of keys at random; a value is 32 readings of a machine's load.

    A load has a daily course around a level of its own, and noise; it is in per cent with two
    decimals, as monitoring reports it.

    Args:
        keys: how many.
        zipf: exponent of the skew; 0 for none.
        regret_sigma: the regret removed is lognormal, with this deviation of its logarithm; None
            for regrets that are alike, between 0 and 1.
    """

    def __init__(
        self, keys: int = KEYS, zipf: float = _ZIPF, regret_sigma: float | None = None
    ) -> None:
        self._random = np.random.default_rng(_SEED)
        ranks = np.arange(1, keys + 1, dtype=float) ** -zipf
        self._cumulated = np.cumsum(ranks) / ranks.sum()
        names = self._random.permutation(keys)
        self._names = [b"vm-%07d" % name for name in names]
        self._level = self._random.uniform(5, 65, keys)
        self._phase = self._random.uniform(0, 2 * np.pi, keys)
        self._turn = np.zeros(keys, np.int64)
        self._course = np.arange(FLOATS) * _STEP
        self._regret_sigma = regret_sigma

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Keys, and values with the regret removed."""
        while True:
            yield from self.block()

    def each_once(self) -> Iterator[tuple[bytes, bytes]]:
        """A change of every key."""
        keys = len(self._names)
        for first in range(0, keys, _BLOCK):
            yield from self._changes(np.arange(first, min(first + _BLOCK, keys)))

    def block(self) -> list[tuple[bytes, bytes]]:
        """The next few thousand."""
        return self._changes(np.searchsorted(self._cumulated, self._random.random(_BLOCK)))

    def _changes(self, places: npt.NDArray[np.int64]) -> list[tuple[bytes, bytes]]:
        count = len(places)
        self._turn[places] += 1
        moments = self._turn[places] * _STEP + self._phase[places]
        course = 1 + 0.3 * np.sin(moments[:, None] + self._course)
        noise = self._random.normal(0, 0.5, (count, FLOATS))
        readings = np.clip(self._level[places][:, None] * course + noise, 0, 100)
        values: npt.NDArray[np.float32] = readings.round(2).astype("<f4")
        regrets = self._regrets(count)
        return [
            (self._names[place], value.tobytes() + regret.tobytes())
            for place, value, regret in zip(places.tolist(), values, regrets, strict=True)
        ]

    def _regrets(self, count: int) -> npt.NDArray[np.float64]:
        if self._regret_sigma is None:
            return self._random.random(count)
        return self._random.lognormal(0, self._regret_sigma, count)


@dataclass
class Sent:
    """What a sender has sent so far."""

    changes: int = 0
    event_bytes: int = 0
    """Of all changes, as they stand in the topic."""

    versions: dict[bytes, int] = field(default_factory=dict)
    """Newest version of each key, microseconds."""

    probes: dict[bytes, float] = field(default_factory=dict)
    """When each probe was sent, epoch seconds."""


class Sender:
    """Writes changes of a table to its topic.

    Args:
        bootstrap: of home's broker.
        topic: of the changes.
        table: its name.
        changes: where they come from.
        log: takes the key, version and regret removed of each; None to keep none.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        table: str,
        changes: Changes,
        log: list[tuple[bytes, int, float]] | None = None,
    ) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": "1",
                "queue.buffering.max.messages": str(_QUEUE_RECORDS),
                # It lives a little longer than the broker, and would complain.
                "log_level": "0",
            }
        )
        self._topic = topic
        self._encoder = ChangeEncoder(table)
        self._every_key = changes.each_once
        self._changes = iter(changes)
        self._log = log
        self._version = time.time_ns() // 1_000
        self._probe = b""
        self.sent = Sent()

    def send(self, count: int) -> None:
        """Sends so many changes as fast as the broker takes them."""
        for _ in range(count):
            key, rest = next(self._changes)
            self._produce(key, rest, time.time())

    def send_each_once(self) -> None:
        """Sends a change of every key as fast as the broker takes them."""
        for key, rest in self._every_key():
            self._produce(key, rest, time.time())
            self._producer.poll(0)

    def flush(self) -> None:
        """Waits until the broker has all."""
        if self._producer.flush(_FLUSH_DEADLINE_S):
            raise RuntimeError(f"the broker did not take every change of {self._topic}")

    @contextmanager
    def at_rate(self, per_s: float, probes_per_s: float = PROBES_PER_S) -> Iterator[Sent]:
        """Sends at this rate, on another thread, as long as the block lasts.

        Args:
            per_s: changes a second.
            probes_per_s: of keys that change once.

        Raises:
            RuntimeError: the machine is too slow for it.
        """
        stop = threading.Event()
        failures: list[BaseException] = []

        def run() -> None:
            try:
                self._run(per_s, probes_per_s, stop.is_set)
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=run, name="changes", daemon=True)
        thread.start()
        try:
            yield self.sent
        finally:
            stop.set()
            thread.join()
        self.flush()
        if failures:
            raise failures[0]

    def _run(self, per_s: float, probes_per_s: float, stopped: Callable[[], bool]) -> None:
        begun, before = time.perf_counter(), self.sent.changes
        probed = 0
        while not stopped():
            passed = time.perf_counter() - begun
            while probed < passed * probes_per_s:
                probed += 1
                self.send_probe()
            self.send(int(passed * per_s) - (self.sent.changes - before))
            self._producer.poll(0)
            time.sleep(_TURN_S)

    def send_probe(self) -> None:
        """Sends a change of a key that has no other."""
        _, rest = next(self._changes)
        now = time.time()
        key = b"probe-%d" % len(self.sent.probes)
        self._produce(key, rest, now)
        self.sent.probes[key] = now

    def _produce(self, key: bytes, rest: bytes, now: float) -> None:
        self._version = max(self._version + 1, int(now * 1e6))
        now_ms = int(now * 1e3)
        event = self._encoder.encode(key, self._version, now_ms, rest)
        while True:
            try:
                self._producer.produce(self._topic, event, key, timestamp=now_ms)
                break
            except BufferError:
                self._producer.poll(0.1)
        self.sent.changes += 1
        self.sent.event_bytes += len(event)
        self.sent.versions[key] = self._version
        if self._log is not None:
            (regret,) = _REGRET.unpack(rest[-_REGRET.size :])
            self._log.append((key, self._version, regret))
