"""Chunks come out as they went in, whichever language wrote them, or not at all."""

from __future__ import annotations

import struct
from dataclasses import replace

import lz4.frame
import pytest
from crcmod.predefined import mkPredefinedCrcFun
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet import avro
from freshet.chunks import (
    DELETE,
    ROUTE_DEPTH_MAX,
    Chunk,
    ChunkChange,
    Coverage,
    DamagedChunkError,
    Hop,
    decode_chunk,
    encode_chunk,
)
from freshet.values import Encoding
from freshet.version import Version
from tests.unit.golden_chunks import FOLDER, content

CHECKED_FROM = 14
CRC32C = mkPredefinedCrcFun("crc-32c")

CONTENT = content()
SMALL = replace(CONTENT, changes=CONTENT.changes[:2])

longs = st.integers(-(2**63), 2**63 - 1)
naturals = st.integers(0, 2**63 - 1)


@st.composite
def changes(draw: st.DrawFn) -> ChunkChange:
    kind = draw(st.sampled_from([DELETE, *Encoding]))
    value = draw(st.binary(max_size=60))
    length = 0 if kind == DELETE else len(value) - len(value) % 4
    return ChunkChange(
        shard=draw(st.integers(0, 3) | st.integers(0, 2**31 - 1)),
        offset=draw(naturals),
        key=draw(st.text(max_size=20)),
        version=Version(draw(naturals), draw(st.integers(0, 0xFFFF))),
        event_time=draw(longs),
        computed_at=draw(longs),
        kind=int(kind),
        is_first=draw(st.booleans()),
        regret_removed=draw(st.floats(width=32, allow_nan=False)),
        value=value[:length],
    )


@settings(max_examples=30)
@given(st.lists(changes(), max_size=6))
def test_changes_come_out_by_shard_in_their_order(some: list[ChunkChange]) -> None:
    found = decode_chunk(encode_chunk(replace(CONTENT, changes=tuple(some))))
    assert found == replace(CONTENT, changes=tuple(sorted(some, key=lambda change: change.shard)))


@pytest.mark.parametrize("writer", ["java", "python"])
def test_each_language_reads_what_the_other_wrote(writer: str) -> None:
    written = decode_chunk((FOLDER / f"{writer}.chunk").read_bytes())
    assert written == CONTENT
    assert decode_chunk(encode_chunk(written)) == CONTENT


def test_every_damaged_byte_and_every_cut_is_noticed() -> None:
    data = encode_chunk(SMALL)
    for at in range(len(data)):
        for bits in (0x01, 0x80, 0xFF):
            _assert_refused(_flipped(data, at, bits))
        _assert_refused(data[:at])
    _assert_refused(data + b"\0")


def test_nothing_but_a_refusal_comes_of_bytes_that_a_writer_spoilt() -> None:
    data = encode_chunk(SMALL)
    refused = 0
    for at in range(CHECKED_FROM, len(data)):
        for bits in (0x01, 0x80):
            try:
                decode_chunk(_sealed(_flipped(data, at, bits)))
            except DamagedChunkError:
                refused += 1
        _assert_refused(_sealed(data[:at]))
    assert refused > len(data) // 2
    _assert_refused(_sealed(data + b"\0"))


def _assert_refused(data: bytes) -> None:
    with pytest.raises(DamagedChunkError):
        decode_chunk(data)


def _flipped(data: bytes, at: int, bits: int) -> bytes:
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def _sealed(data: bytes) -> bytes:
    return data[:10] + struct.pack("<I", CRC32C(data[CHECKED_FROM:])) + data[CHECKED_FROM:]


def _with(**fields: object) -> bytes:
    """A chunk with fields as no writer of ours would set them."""
    return _sealed(avro.encode("Chunk", {**avro.decode(encode_chunk(SMALL))[1], **fields}))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"raw_bytes": (64 << 20) + 1}, "at most"),
        ({"raw_bytes": 10}, "bytes that it should have"),
        ({"change_count": 3}, "its header says 3"),
        ({"purpose": "EARLY"}, "early"),
        ({"coverage": [{"shard": 0, "after": 5, "upto": 5}]}, "no range"),
        ({"payload": lz4.frame.compress(b"x", block_linked=False)}, "content checksum"),
        ({"payload": b""}, "no LZ4 frame"),
    ],
)
def test_headers_that_cannot_be_are_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(DamagedChunkError, match=reason):
        decode_chunk(_with(**fields))


def test_changes_that_no_store_can_hold_are_refused() -> None:
    good = CONTENT.changes[0]
    for bad in (
        replace(good, kind=3),
        replace(good, kind=DELETE),
        replace(good, value=b"\0" * 5),
        replace(good, version=Version(-1, 0)),
        replace(good, version=Version(0, 65_536)),
        replace(good, offset=-1),
    ):
        with pytest.raises(ValueError, match="has a change of key 'vm-1' that can't be"):
            encode_chunk(replace(CONTENT, changes=(bad,)))


def test_a_route_is_a_tree() -> None:
    twice = Hop("a", True, children=(Hop("a", True),))
    with pytest.raises(ValueError, match="twice"):
        encode_chunk(_routed(twice))
    deep = Hop("end", True)
    for i in range(ROUTE_DEPTH_MAX):
        deep = Hop(f"r{i}", False, children=(deep,))
    with pytest.raises(ValueError, match="deeper"):
        encode_chunk(_routed(deep))


def _routed(route: Hop) -> Chunk:
    return replace(CONTENT, route=route, coverage=(Coverage(0, -1, 0),), changes=())
