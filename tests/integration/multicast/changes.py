"""Writes change events of a table, and compares what regions have with the newest of them."""

from __future__ import annotations

import json
import random
import struct
import time
from typing import Any

from freshet import avro
from tests.integration.polling import DEADLINE_S, eventually
from tests.integration.store import ENCODING_VECTOR, Store, Stored
from tests.integration.wide_area import WideArea
from tests.reference.model import Version

TABLE = "worldwide"
"""Every destination has it."""

NEARBY = "nearby"
"""Only the near region has it."""

KEYS = 2_000
WATCHED = [f"key-{number}" for number in range(200)]
"""Keys that readers look at all the time, and that are not deleted."""

ORIGIN = 7
VECTOR_LENGTH = 16

_TOMBSTONE = 1
_HEADER = struct.Struct("<BBHq")


class Changes:
    """Writes change events, and knows what every store must have in the end."""

    def __init__(self, area: WideArea, table: str = TABLE) -> None:
        self.table = table
        self._topics = area.topics
        self._random = random.Random(17)
        self._clock_micros = time.time_ns() // 1_000
        self.newest: dict[str, Stored] = {}
        self.deleted: dict[str, Version] = {}

    @property
    def topic(self) -> str:
        """Where they are written."""
        return f"changes.{self.table}"

    def write(self, count: int, keys: int = KEYS) -> None:
        """Writes changes of random keys, in the order of their versions."""
        for _ in range(count):
            key = f"key-{self._random.randrange(keys)}"
            self._write(key, [self._random.random() for _ in range(VECTOR_LENGTH)])
        self._topics.flush()

    def delete(self, key: str) -> None:
        """Deletes a key."""
        self._send(key, "DELETE", "NONE", b"")
        del self.newest[key]
        self.deleted[key] = Version(self._clock_micros, ORIGIN)
        self._topics.flush()

    def was_deleted(self, key: str, version: Version) -> None:
        """Somebody else has deleted a key; what is written from now on is newer."""
        self._clock_micros = max(self._clock_micros, version.timestamp_micros)
        del self.newest[key]
        self.deleted[key] = version

    def _write(self, key: str, vector: list[float]) -> None:
        payload = struct.pack(f"<{len(vector)}f", *vector)
        now_ms = self._send(key, "UPSERT", "FLOAT32_VECTOR", payload)
        version = Version(self._clock_micros, ORIGIN)
        self.newest[key] = Stored(version, now_ms, now_ms, ENCODING_VECTOR, payload)
        self.deleted.pop(key, None)

    def _send(self, key: str, operation: str, encoding: str, payload: bytes) -> int:
        self._clock_micros += 1
        now_ms = time.time_ns() // 1_000_000
        change = {
            "table": self.table,
            "key": key,
            "version_timestamp": self._clock_micros,
            "version_origin": ORIGIN,
            "event_time": now_ms,
            "computed_at": now_ms,
            "operation": operation,
            "encoding": encoding,
            "value": payload,
            "regret_removed": self._random.random(),
        }
        self._topics.send(self.topic, avro.encode("FeatureChange", change), key.encode())
        return now_ms


def differing(area: WideArea, changes: Changes, region: str) -> list[str]:
    """Keys whose value in a region is not the newest, and deleted ones that are not deleted."""
    store = Store(area.regions[region].redis.url, changes.table)
    stored = store.get_many(changes.newest)
    different = [key for key, value in changes.newest.items() if stored.get(key) != value]
    return different + [
        key for key, version in changes.deleted.items() if tombstone(store, key) != version
    ]


def tombstone(store: Store, key: str) -> Version | None:
    """Version of a key's delete in a store; None if it is not deleted there."""
    raw: Any = store.redis.get(f"{store.table}:{key}")
    if raw is None:
        return None
    _, flags, origin, timestamp = _HEADER.unpack_from(raw)
    return Version(timestamp, origin) if flags & _TOMBSTONE else None


def wait_until_equal(
    area: WideArea, changes: Changes, region: str, deadline_s: float = DEADLINE_S
) -> None:
    """Waits until a region's store is the reference."""

    def is_equal() -> bool:
        wrong = differing(area, changes, region)
        total = len(changes.newest) + len(changes.deleted)
        assert not wrong, f"{len(wrong)} of {total} keys, such as {wrong[:3]}"
        return True

    eventually(is_equal, f"{region} has the newest of each key", deadline_s)
    expected = set(changes.newest) | set(changes.deleted)
    assert Store(area.regions[region].redis.url, changes.table).keys() == expected


def plan_in_force(area: WideArea, table: str = TABLE) -> dict[str, Any]:
    """The plan that the multicast job reports."""
    mine = [
        r
        for r in area.reports()
        if r["reporter"] == "MULTICAST" and r["table"] == table and r["plan"]
    ]
    return dict(json.loads(mine[-1]["plan"])) if mine else {}


def edges(plan: dict[str, Any]) -> set[tuple[str, str]]:
    """Links that a plan's trees take."""
    return {(u, v) for stripe in plan.get("stripes", ()) for u, v in stripe["edges"]}
