"""The online store's layout: a header of 28 bytes, then the packed value.

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
    """What the store holds for one key."""

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


def pack(stored: StoredValue) -> bytes:
    """Packs a value as the store holds it."""
    flags = stored.tombstone * TOMBSTONE | stored.encoding << ENCODING_SHIFT
    version = stored.version
    header = HEADER.pack(
        LAYOUT,
        flags,
        version.origin,
        version.timestamp_micros,
        stored.event_time,
        stored.computed_at,
    )
    return header + stored.payload


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
    """Unpacks what the store holds for a key.

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
    return StoredValue(
        Version(timestamp, origin),
        event_time,
        computed_at,
        Encoding(encoding),
        data[HEADER_BYTES:],
        tombstone=bool(flags & TOMBSTONE),
    )
