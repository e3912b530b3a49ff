"""The online store's layout: a header of 28 bytes, then the packed value.

A table that keeps several versions has the older ones nested behind the newest: each version is
followed by a whole such value of the next older one, and by its length, 4 bytes at the very end.

The contract is ``docs/store-layout.md``; the Java side is ``dev.freshet.connectors.store``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from freshet.errors import FreshetError
from freshet.values import Encoding, decode_payload, encode_payload
from freshet.version import Version

LAYOUT = 1

HEADER = struct.Struct("<BBHqqq")
HEADER_BYTES = 28

TOMBSTONE = 0b1
ENCODING_SHIFT = 1
ENCODING_MASK = 0b11
KEEPS_OLDER = 0b1000
FLAGS_MAX = 0b1111

LENGTH = struct.Struct("<I")
LENGTH_BYTES = LENGTH.size

KEPT_VERSIONS_MAX = 8
"""Most versions of a key that a table may keep."""

_AT_FLAGS = 1

HEADER_DTYPE = np.dtype(
    [
        ("layout", "u1"),
        ("flags", "u1"),
        ("origin", "<u2"),
        ("timestamp_micros", "<i8"),
        ("event_time", "<i8"),
        ("computed_at", "<i8"),
    ]
)
"""The header for decoding many values in one pass."""


class LayoutError(FreshetError, ValueError):
    """Bytes in the store that don't follow the layout."""


@dataclass(frozen=True)
class StoredValue:
    """One version of a key's value in the store."""

    version: Version
    event_time: int
    """Of the newest event in the value, epoch milliseconds."""

    computed_at: int
    """Epoch milliseconds."""

    encoding: Encoding
    payload: bytes
    """The packed value."""

    tombstone: bool = False
    """Deleted."""

    @property
    def value(self) -> Any:
        """The value: a float32 array [d], a tree of Python values, or None of a tombstone."""
        return decode_payload(self.encoding, self.payload)


def key_name(prefix: str, table: str, key: str) -> str:
    """Name of the Redis string of a table's entity key."""
    return f"{prefix}{table}:{key}"


def pack(stored: StoredValue, *older: StoredValue) -> bytes:
    """Packs a value as the store holds it.

    Args:
        stored: the newest version.
        older: the versions before it, newest first, where the store keeps several. Only the server
            puts versions together; a writer sends each alone.
    """
    flags = stored.tombstone * TOMBSTONE | stored.encoding << ENCODING_SHIFT
    if older:
        flags |= KEEPS_OLDER
    version = stored.version
    header = HEADER.pack(
        LAYOUT,
        flags,
        version.origin,
        version.timestamp_micros,
        stored.event_time,
        stored.computed_at,
    )
    if not older:
        return header + stored.payload
    behind = pack(*older)
    return header + stored.payload + behind + LENGTH.pack(len(behind))


def pack_value(value: object, version: Version, event_time: int, computed_at: int) -> bytes:
    """Packs a feature value as the store holds it.

    Raises:
        ValueEncodingError: the value can't be packed.
    """
    encoding, payload = encode_payload(value)
    return pack(StoredValue(version, event_time, computed_at, encoding, payload))


def pack_tombstone(version: Version, event_time: int, computed_at: int) -> bytes:
    """Packs a delete."""
    return pack(StoredValue(version, event_time, computed_at, Encoding.NONE, b"", tombstone=True))


def unpack(data: bytes) -> StoredValue:
    """Unpacks the newest version of what the store holds for a key.

    Raises:
        LayoutError: too short, or of another layout.
    """
    if len(data) < HEADER_BYTES:
        raise LayoutError(
            f"{len(data)} bytes are shorter than the header of {HEADER_BYTES}; another program "
            "writes keys of the same name, give Freshet a store_prefix of its own"
        )
    layout, flags, origin, timestamp, event_time, computed_at = HEADER.unpack_from(data)
    if layout != LAYOUT:
        raise LayoutError(
            f"the value has the layout {layout}, and this release reads {LAYOUT}; update freshet, "
            "or look for another program that writes keys of the same name"
        )
    encoding = flags >> ENCODING_SHIFT & ENCODING_MASK
    if encoding not in Encoding._value2member_map_:
        raise LayoutError(f"the encoding {encoding} is unknown; a later release wrote the value")
    if flags > FLAGS_MAX:
        raise LayoutError(f"the flags {flags} are unknown; a later release wrote the value")
    return StoredValue(
        Version(timestamp, origin),
        event_time,
        computed_at,
        Encoding(encoding),
        data[HEADER_BYTES : newest_bytes(data)],
        tombstone=bool(flags & TOMBSTONE),
    )


def newest_bytes(data: bytes) -> int:
    """How many bytes of what the store holds for a key are the newest version's.

    Raises:
        LayoutError: an older version is announced that is not there.
    """
    if not data[_AT_FLAGS] & KEEPS_OLDER:
        return len(data)
    behind = 0
    if len(data) >= HEADER_BYTES + LENGTH_BYTES:
        (behind,) = LENGTH.unpack_from(data, len(data) - LENGTH_BYTES)
    own: int = len(data) - LENGTH_BYTES - behind
    if behind < HEADER_BYTES or own < HEADER_BYTES:
        raise LayoutError(
            f"of {len(data)} bytes older versions are said to have {behind}, which can't be; the "
            "value is damaged: delete the key, it is computed again with its next event"
        )
    return own


def older_part(data: bytes) -> bytes | None:
    """What the store holds for a key without its newest version; None if it keeps no other.

    Raises:
        LayoutError: an older version is announced that is not there.
    """
    if len(data) < HEADER_BYTES or not data[_AT_FLAGS] & KEEPS_OLDER:
        return None
    return data[newest_bytes(data) : -LENGTH_BYTES]


def kept_part(data: bytes | None, which: int) -> bytes | None:
    """What the store holds for a key from one version on; None if it does not keep so many.

    Args:
        data: what the store holds, None if it has nothing.
        which: 0 is the newest version, 1 the one before it, and so on.

    Raises:
        LayoutError: an older version is announced that is not there.
    """
    for _ in range(which):
        if data is None:
            return None
        data = older_part(data)
    return data
