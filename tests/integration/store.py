"""Reads the online store as its layout page says, with nothing of ours in between.

Another language would do the same: a key, one ``GET``, a header of 28 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.reference.model import Version

_HEADER = struct.Struct("<BBHqqq")
_HEADER_FLAGS = struct.Struct("<xB")
LAYOUT = 1

ENCODING_VECTOR = 1
ENCODING_AVRO = 2


class Stored(NamedTuple):
    """One value in the store."""

    version: Version
    event_time_ms: int
    computed_at_ms: int
    encoding: int
    payload: bytes

    @property
    def vector(self) -> tuple[float, ...]:
        """The value, where it is a vector."""
        assert self.encoding == ENCODING_VECTOR
        return struct.unpack(f"<{len(self.payload) // 4}f", self.payload)


def is_tombstone(value: bytes) -> bool:
    """Whether a stored value says that the key was deleted."""
    return bool(_HEADER_FLAGS.unpack_from(value)[0] & 1)


def decode(value: bytes) -> Stored:
    """Takes a stored value apart; fails where the layout is not kept."""
    layout, flags, origin, timestamp, event_time, computed_at = _HEADER.unpack_from(value)
    assert layout == LAYOUT
    assert not flags & 1, "a tombstone"
    assert flags >> 3 == 0, f"flags {flags:#x} have unknown bits"
    payload = value[_HEADER.size :]
    return Stored(Version(timestamp, origin), event_time, computed_at, flags >> 1, payload)


class Store:
    """The store of one region."""

    def __init__(self, url: str, table: str) -> None:
        # A server that a test kills answers again later: each command decides for itself.
        self.redis = Redis.from_url(url, socket_timeout=5, retry=Retry(NoBackoff(), 0))
        self.table = table

    def get_many(self, keys: Iterable[str]) -> dict[str, Stored]:
        """What is there of these keys; one that was deleted is not."""
        names = list(keys)
        values: Any = self.redis.mget([f"{self.table}:{name}" for name in names])
        return {
            name: decode(value)
            for name, value in zip(names, values, strict=True)
            if value is not None and not is_tombstone(value)
        }

    def keys(self) -> set[str]:
        """Every key of the table."""
        prefix = f"{self.table}:"
        found = self.redis.scan_iter(match=f"{prefix}*", count=1_000)
        return {key.decode().removeprefix(prefix) for key in found}
