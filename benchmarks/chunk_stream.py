"""Chunks as home sends them, straight into a region's inbox."""

from __future__ import annotations

import struct
import time
import zlib
from itertools import islice

from confluent_kafka import Producer

from benchmarks.change_stream import Changes
from freshet.chunks import Chunk, ChunkChange, Coverage, Hop, encode_chunk
from freshet.regions import inbox_topic
from freshet.values import Encoding
from freshet.version import Version

CHANGES = 1_000
"""In a chunk, before those that are replaced by later ones of their key."""

SHARDS = 4

_ORIGIN = 7
_FLUSH_DEADLINE_S = 60.0
_REGRET_BYTES = struct.calcsize("<d")


class ChunkSender:
    """Writes chunks of one table.

    Args:
        bootstrap: of the region's broker.
        home: that they are from.
        region: that they are for.
        table: of the changes.
        log: id of the changes topic.
    """

    def __init__(self, bootstrap: str, home: str, region: str, table: str, log: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": "5"})
        self._home = home
        self._region = region
        self._table = table
        self._log = log
        self._upto = [-1] * SHARDS
        self._version = time.time_ns() // 1_000

    def send(self, changes: Changes, count: int) -> int:
        """Sends so many changes, less those that a later one of their chunk replaces.

        Returns:
            How many were left.
        """
        source, left = iter(changes), 0
        for number in range(count // CHANGES):
            chunk = self._chunk(number, list(islice(source, CHANGES)))
            left += len(chunk.changes)
            data = encode_chunk(chunk)
            while True:
                try:
                    self._producer.produce(inbox_topic(self._region, ""), data)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        if self._producer.flush(_FLUSH_DEADLINE_S):
            raise RuntimeError("the broker did not take every chunk")
        return left

    def _chunk(self, number: int, changes: list[tuple[bytes, bytes]]) -> Chunk:
        now_ms = time.time_ns() // 1_000_000
        before = list(self._upto)
        newest: dict[bytes, ChunkChange] = {}
        for key, rest in changes:
            shard = zlib.crc32(key) % SHARDS
            self._upto[shard] += 1
            self._version += 1
            newest[key] = ChunkChange(
                shard=shard,
                offset=self._upto[shard],
                key=key.decode(),
                version=Version(self._version, _ORIGIN),
                event_time=now_ms,
                computed_at=now_ms,
                kind=Encoding.FLOAT32_VECTOR,
                regret_removed=struct.unpack("<d", rest[-_REGRET_BYTES:])[0],
                is_first=False,
                value=rest[:-_REGRET_BYTES],
            )
        return Chunk(
            id=number,
            sender=self._home,
            table=self._table,
            log=self._log,
            purpose="LIVE",
            plan=1,
            stripe=0,
            route=Hop(self._region, applies=True),
            coverage=tuple(
                Coverage(shard, after, upto)
                for shard, (after, upto) in enumerate(zip(before, self._upto, strict=True))
                if upto > after
            ),
            sent_at_micros=now_ms * 1_000,
            deadline_ms=now_ms + 60_000,
            changes=tuple(newest.values()),
        )
