"""Reads and writes chunks, the values of ``inbox.<region>``, for tools and tests.

The jobs have a codec of their own, in Java (``dev.freshet.connectors.chunk``); the schemas are
``Chunk`` and ``ChunkPayload``, the format is described in ``docs/topics-and-schemas.md``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Literal

import lz4.frame
from crcmod.predefined import mkPredefinedCrcFun

from freshet import avro
from freshet.errors import FreshetError
from freshet.values import Encoding
from freshet.version import Version

RAW_BYTES_MAX = 64 << 20
"""Largest size of a chunk's changes before compression."""

ROUTE_DEPTH_MAX = 64
"""Longest path of a route."""

DELETE = -1
"""Kind of a tombstone; other kinds are an :class:`Encoding`."""

Purpose = Literal["LIVE", "EARLY", "CATCH_UP"]

_CHECKSUM = struct.Struct("<I")
_CHECKED_FROM = avro.HEADER_BYTES + _CHECKSUM.size
_ORIGIN_MAX = 0xFFFF
_FLOAT32_BYTES = 4

_LZ4_MAGIC = bytes.fromhex("04224d18")
_LZ4_FLAGS = 0x64  # version 1, independent blocks, content checksum, nothing else


class DamagedChunkError(FreshetError, ValueError):
    """Bytes that are no whole chunk of this release; the message says what is wrong."""


@dataclass(frozen=True)
class Hop:
    """What is left of a tree: a region, and where it sends on to."""

    region: str
    applies: bool
    """Whether the region is a destination; a waypoint only sends on."""

    clock_ahead_micros: int | None = None
    """How far the region's clock is ahead of home's; None if unknown."""

    children: tuple[Hop, ...] = ()


@dataclass(frozen=True)
class Coverage:
    """A range of a shard's log: the chunk has all of it, or newer changes of its keys."""

    shard: int
    after: int
    """Offset before the range; -1 for the log's beginning."""

    upto: int
    """Last offset of the range."""


@dataclass(frozen=True)
class ChunkChange:
    """The newest change of a key."""

    shard: int
    offset: int
    """Of the change."""

    key: str
    version: Version
    event_time: int
    """Epoch milliseconds."""

    computed_at: int
    """Epoch milliseconds of home's clock."""

    kind: int
    """:data:`DELETE`, or the value's :class:`Encoding`."""

    is_first: bool
    """Whether it stands for the key's first value."""

    regret_removed: float
    """Regret of the key that this update removed; a float32."""

    value: bytes
    """Packed as in the store."""


@dataclass(frozen=True)
class Chunk:
    """Changes of one table on their way to other regions."""

    id: int
    """Unique among the chunks of its sender."""

    sender: str
    table: str
    log: str
    """Id of the changes topic that the offsets are of."""

    purpose: Purpose
    plan: int
    stripe: int
    route: Hop
    coverage: tuple[Coverage, ...]
    sent_at_micros: int
    """When home sent the newest change, by home's clock."""

    deadline_ms: int
    """When the oldest change is due, epoch milliseconds of home's clock."""

    changes: tuple[ChunkChange, ...]
    """By shard, as :func:`decode_chunk` gives them; :func:`encode_chunk` takes any order."""


def encode_chunk(chunk: Chunk) -> bytes:
    """Encodes a chunk.

    Raises:
        ValueError: it breaks a rule of the format.
    """
    problem = _problem(chunk)
    if problem:
        raise ValueError(f"the chunk {chunk.id} of {chunk.sender} {problem}")
    raw = avro.encode_body("ChunkPayload", _payload(chunk.changes))
    if len(raw) > RAW_BYTES_MAX:
        raise ValueError(f"the changes of a chunk have {len(raw)} bytes, over {RAW_BYTES_MAX}")
    record = {
        "checksum": bytes(_CHECKSUM.size),
        "id": chunk.id,
        "sender": chunk.sender,
        "table": chunk.table,
        "log": chunk.log,
        "purpose": chunk.purpose,
        "plan": chunk.plan,
        "stripe": chunk.stripe,
        "route": _hop_record(chunk.route),
        "coverage": [vars(covered) for covered in chunk.coverage],
        "sent_at_micros": chunk.sent_at_micros,
        "deadline_ms": chunk.deadline_ms,
        "change_count": len(chunk.changes),
        "raw_bytes": len(raw),
        "payload": lz4.frame.compress(
            raw, block_linked=False, content_checksum=True, store_size=False
        ),
    }
    data = bytearray(avro.encode("Chunk", record))
    _CHECKSUM.pack_into(data, avro.HEADER_BYTES, _crc32c()(data[_CHECKED_FROM:]))
    return bytes(data)


def decode_chunk(data: bytes | memoryview) -> Chunk:
    """Decodes a chunk with all of its changes.

    Raises:
        DamagedChunkError: it is no whole chunk, or one that this release can't read.
    """
    data = bytes(data)
    header = avro.MAGIC + avro.fingerprint("Chunk")
    if data[: avro.HEADER_BYTES] != header:
        raise DamagedChunkError(
            f"{len(data)} bytes do not begin as a chunk of this release does, with {header.hex()}; "
            "upgrade the reader if a newer release wrote them, else check the topic"
        )
    if len(data) < _CHECKED_FROM or _checksum_of(data) != _crc32c()(data[_CHECKED_FROM:]):
        raise DamagedChunkError(
            f"a chunk of {len(data)} bytes has another checksum than it says: it was damaged on "
            "its way or cut short"
        )
    try:
        chunk = _chunk(avro.decode_as("Chunk", data))
        problem = _problem(chunk)
    except (avro.AvroError, RecursionError) as e:
        problem = f"can't be used: {e}"
    if problem:
        raise DamagedChunkError(f"a chunk of {len(data)} bytes {problem}")
    return chunk


@cache
def _crc32c() -> Any:
    return mkPredefinedCrcFun("crc-32c")


def _checksum_of(data: bytes) -> int:
    found: int = _CHECKSUM.unpack_from(data, avro.HEADER_BYTES)[0]
    return found


def _hop_record(hop: Hop) -> dict[str, Any]:
    return {**vars(hop), "children": [_hop_record(child) for child in hop.children]}


def _payload(changes: Iterable[ChunkChange]) -> dict[str, Any]:
    ordered = sorted(changes, key=lambda change: change.shard)
    timestamp = min((change.version.timestamp_micros for change in ordered), default=0)
    time = min((change.computed_at for change in ordered), default=0)
    return {
        "base_version_timestamp": timestamp,
        "base_time": time,
        "shards": [
            _shard_record(shard, list(group), timestamp, time)
            for shard, group in groupby(ordered, lambda change: change.shard)
        ],
    }


def _shard_record(
    shard: int, changes: list[ChunkChange], timestamp: int, time: int
) -> dict[str, Any]:
    base = min(change.offset for change in changes)
    return {
        "shard": shard,
        "base_offset": base,
        "changes": [
            {
                "key": change.key,
                "offset": _wrapped(change.offset - base),
                "version_timestamp": _wrapped(change.version.timestamp_micros - timestamp),
                "version_origin": change.version.origin,
                "event_time": _wrapped(change.event_time - time),
                "computed_at": _wrapped(change.computed_at - time),
                "kind": change.kind,
                "is_first": change.is_first,
                "regret_removed": change.regret_removed,
                "value": change.value,
            }
            for change in changes
        ],
    }


def _chunk(record: dict[str, Any]) -> Chunk:
    raw = _decompressed(record["payload"], record["raw_bytes"])
    changes = tuple(_changes(avro.decode_body("ChunkPayload", raw)))
    if len(changes) != record["change_count"]:
        raise DamagedChunkError(
            f"a chunk has {len(changes)} changes, and its header says {record['change_count']}"
        )
    rest = {name: record[name] for name in ("id", "sender", "table", "log", "purpose")}
    return Chunk(
        **rest,
        plan=record["plan"],
        stripe=record["stripe"],
        route=_hop(record["route"]),
        coverage=tuple(Coverage(**covered) for covered in record["coverage"]),
        sent_at_micros=record["sent_at_micros"],
        deadline_ms=record["deadline_ms"],
        changes=changes,
    )


def _hop(record: dict[str, Any]) -> Hop:
    return Hop(**{**record, "children": tuple(_hop(child) for child in record["children"])})


def _decompressed(frame: bytes, raw_bytes: int) -> bytes:
    if not 0 <= raw_bytes <= RAW_BYTES_MAX:
        raise DamagedChunkError(
            f"a chunk's changes have {raw_bytes} bytes, and at most {RAW_BYTES_MAX} are allowed"
        )
    if not frame.startswith(_LZ4_MAGIC) or frame[4:5] != bytes([_LZ4_FLAGS]):
        raise DamagedChunkError(
            "a chunk's payload is no LZ4 frame with independent blocks and a content checksum only"
        )
    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        # One byte more than there should be shows a frame that has more.
        raw: bytes = decompressor.decompress(frame, max_length=raw_bytes + 1)
    except RuntimeError as e:
        raise DamagedChunkError(f"a chunk's LZ4 frame is damaged: {e}") from e
    if len(raw) != raw_bytes or not decompressor.eof or decompressor.unused_data:
        raise DamagedChunkError(
            f"a chunk's LZ4 frame is cut short or has not the {raw_bytes} bytes that it should have"
        )
    return raw


def _changes(payload: dict[str, Any]) -> Iterator[ChunkChange]:
    timestamp, time = payload["base_version_timestamp"], payload["base_time"]
    for shard in payload["shards"]:
        for change in shard["changes"]:
            yield ChunkChange(
                shard=shard["shard"],
                offset=_wrapped(shard["base_offset"] + change["offset"]),
                key=change["key"],
                version=Version(
                    _wrapped(timestamp + change["version_timestamp"]), change["version_origin"]
                ),
                event_time=_wrapped(time + change["event_time"]),
                computed_at=_wrapped(time + change["computed_at"]),
                kind=change["kind"],
                is_first=change["is_first"],
                regret_removed=change["regret_removed"],
                value=change["value"],
            )


def _wrapped(number: int) -> int:
    """Modulo 2^64, as a signed number, so that any two longs have a difference."""
    return (number + 2**63) % 2**64 - 2**63


def _problem(chunk: Chunk) -> str | None:
    """What is wrong with the chunk, as the end of a sentence."""
    if chunk.purpose == "EARLY" and chunk.coverage:
        return f"is an early one and covers {chunk.coverage}; early chunks cover nothing"
    for covered in chunk.coverage:
        if covered.shard < 0 or covered.after < -1 or covered.upto <= covered.after:
            return f"covers {covered}, which is no range"
    problems = (_change_problem(change) for change in chunk.changes)
    return _route_problem(chunk.route) or next((found for found in problems if found), None)


def _route_problem(route: Hop) -> str | None:
    seen: set[str] = set()
    level: tuple[Hop, ...] = (route,)
    for _ in range(ROUTE_DEPTH_MAX):
        for hop in level:
            if hop.region in seen:
                return f"has the region {hop.region!r} twice in its route"
            seen.add(hop.region)
        level = tuple(child for hop in level for child in hop.children)
    return f"has a route deeper than {ROUTE_DEPTH_MAX} hops" if level else None


def _change_problem(change: ChunkChange) -> str | None:
    """As the store layout's rules and ``dev.freshet.connectors.chunk.KeyChange``."""
    rules = {
        "shards and offsets are at least 0": change.shard >= 0 and change.offset >= 0,
        "a version's timestamp is at least 0": change.version.timestamp_micros >= 0,
        "a version's origin is 0 to 65535": 0 <= change.version.origin <= _ORIGIN_MAX,
        "its kind of value is unknown": DELETE <= change.kind <= max(Encoding),
        "a float32 vector's bytes are a multiple of 4": change.kind != Encoding.FLOAT32_VECTOR
        or len(change.value) % _FLOAT32_BYTES == 0,
        "a delete has no value": change.kind != DELETE or not change.value,
    }
    broken = [rule for rule, kept in rules.items() if not kept]
    return f"has a change of key {change.key!r} that can't be: {broken[0]}" if broken else None
