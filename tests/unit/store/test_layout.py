"""Goal: the layout is what docs/store-layout.md says, byte by byte, and damage is noticed."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.store import layout
from freshet.store.layout import LayoutError, StoredValue
from freshet.table.definition import MAX_KEEP_VERSIONS
from freshet.values import Encoding, ValueEncodingError, decode_payload, encode_payload
from freshet.version import Version

PAGE = Path(__file__).parents[3] / "docs" / "store-layout.md"
INT64 = st.integers(-(2**63), 2**63 - 1)
STORED = st.builds(
    StoredValue,
    st.builds(Version, st.integers(0, 2**63 - 1), st.integers(0, 0xFFFF)),
    INT64,
    INT64,
    st.sampled_from(Encoding),
    st.binary(max_size=40),
    st.booleans(),
)


@given(STORED)
def test_values_round_trip(stored: StoredValue) -> None:
    assert layout.unpack(layout.pack(stored)) == stored


def test_the_header_is_the_one_of_the_page() -> None:
    """The table on the page, taken at its word, packs the same bytes."""
    row = re.compile(r"^\| (\d+) \| (\d+|…) \| ?(\w*) \| [^|]+ \|$", re.MULTILINE)
    rows = row.findall(PAGE.read_text(encoding="utf-8"))
    codes = {"u8": "B", "u16": "H", "i64": "q"}
    fixed = [(int(offset), int(size), codes[kind]) for offset, size, kind in rows[:-1]]
    packed = struct.pack("<" + "".join(code for _, _, code in fixed), 1, 0b010, 7, 8, 9, 10)
    end = 0
    for offset, size, code in fixed:
        assert offset == end
        assert struct.calcsize(f"<{code}") == size
        end += size
    assert int(rows[-1][0]) == end == layout.HEADER_BYTES
    value = layout.pack_value(np.array([1.5, -2.0], np.float32), Version(8, 7), 9, 10)
    assert value == packed + struct.pack("<2f", 1.5, -2.0)


def test_numpy_reads_the_same_header() -> None:
    value = layout.pack_tombstone(Version(5, 6), event_time=7, computed_at=8)
    (record,) = np.frombuffer(value, layout.HEADER_DTYPE)
    assert record.tolist() == layout.HEADER.unpack(value) == (1, 1, 6, 5, 7, 8)


def test_a_table_keeps_as_many_versions_as_the_layout_allows() -> None:
    assert layout.KEPT_VERSIONS_MAX == MAX_KEEP_VERSIONS


@given(STORED, st.lists(STORED, max_size=8))
def test_versions_are_nested(newest: StoredValue, older: list[StoredValue]) -> None:
    data = layout.pack(newest, *older)
    for which, expected in enumerate([newest, *older]):
        part = layout.kept_part(data, which)
        assert part is not None
        assert layout.unpack(part) == expected
    assert layout.kept_part(data, len(older) + 1) is None
    assert layout.kept_part(None, which) is None
    if older:
        page = PAGE.read_text(encoding="utf-8")
        assert "at *size − 4 − length*" in page
        (length,) = struct.unpack("<I", data[-4:])
        header = 28
        assert data[header : len(data) - 4 - length] == newest.payload


def test_key_names() -> None:
    assert layout.key_name("", "cpu_stl", "vm-17") == "cpu_stl:vm-17"
    assert layout.key_name("prod:", "t", "ü:1") == "prod:t:ü:1"


def test_a_tombstone_has_no_value() -> None:
    stored = layout.unpack(layout.pack_tombstone(Version(1, 1), 2, 3))
    assert stored.tombstone
    assert stored.value is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "0 bytes are shorter than the header"),
        (b"a text of somebody else", "another program"),
        (b"x" * 40, "the layout 120"),
        (b"\x01\x06" + bytes(26), "the encoding 3 is unknown"),
    ],
)
def test_foreign_bytes_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(LayoutError, match=problem):
        layout.unpack(data)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_vectors_are_float32(numbers: list[float]) -> None:
    for value in (numbers, tuple(numbers), np.array(numbers), np.array(numbers, np.float32)):
        encoding, payload = encode_payload(value)
        assert encoding == Encoding.FLOAT32_VECTOR
        assert payload == struct.pack(f"<{len(numbers)}f", *numbers)
        assert decode_payload(encoding, payload).tolist() == numbers


@pytest.mark.parametrize(
    "value", [3, 2.5, "text", b"bytes", True, [True, False], ["a"], {"a": [1]}, [[1.0], [2.0]]]
)
def test_anything_else_is_avro(value: object) -> None:
    encoding, payload = encode_payload(value)
    assert encoding == Encoding.AVRO
    assert decode_payload(encoding, payload) == value


def test_integers_that_float32_would_round_are_refused() -> None:
    assert encode_payload([2**24])[0] == Encoding.FLOAT32_VECTOR
    for value in ([2**24 + 1], np.array([-(2**40)]), [2**70, 1]):
        with pytest.raises(ValueEncodingError, match=r"would be rounded|too large|no finite"):
            encode_payload(value)
    assert encode_payload([2.0**30])[0] == Encoding.FLOAT32_VECTOR


def test_damaged_payloads_are_noticed() -> None:
    with pytest.raises(ValueEncodingError, match="no whole number of float32"):
        decode_payload(Encoding.FLOAT32_VECTOR, b"123")
    with pytest.raises(ValueEncodingError, match="no Avro single object"):
        decode_payload(Encoding.AVRO, b"123")
    with pytest.raises(ValueEncodingError, match="unknown"):
        decode_payload(9, b"")
