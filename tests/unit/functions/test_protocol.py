"""Goal: a batch comes out of the protocol as it went in, and a damaged one is refused."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.functions import Window, protocol
from freshet.functions.protocol import ProtocolError, ResponseItem, Status
from freshet.values import Encoding

INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    times = np.array(sorted(draw(st.lists(INT64, max_size=8))), np.int64)
    n = len(times)
    kind = draw(st.sampled_from(["scalar", "vector", "json"]))
    values: Any
    if kind == "json":
        document = st.dictionaries(st.text(max_size=3), FLOATS | st.text(max_size=3), max_size=2)
        values = draw(st.lists(document, min_size=n, max_size=n))
    else:
        d = draw(st.integers(1, 3)) if kind == "vector" else 1
        flat = np.array(draw(st.lists(FLOATS, min_size=n * d, max_size=n * d)), np.float64)
        values = flat.reshape(n, d) if kind == "vector" else flat
    return Window(draw(st.text(max_size=20)), times, values, draw(INT64))


@given(st.lists(st.tuples(st.binary(max_size=20), windows()), max_size=5))
def test_requests_round_trip(items: list[tuple[bytes, Window]]) -> None:
    request = protocol.pack_request(items)
    unpacked = protocol.unpack_request(request)
    assert protocol.count_items(request) == len(items)
    assert protocol.join_request(protocol.split_request(request)) == request
    assert len(unpacked) == len(items)
    for (context, window), item in zip(items, unpacked, strict=True):
        assert item.context == context
        assert item.window.key == window.key
        assert item.window.event_time == window.event_time
        assert np.array_equal(item.window.timestamps, window.timestamps)
        if isinstance(window.values, list):
            assert item.window.values == window.values
        else:
            assert isinstance(item.window.values, np.ndarray)
            assert item.window.values.shape == window.values.shape
            assert item.window.values.tobytes() == window.values.tobytes()
            assert item.window.values.flags.aligned
            assert item.window.values.flags.writeable


@given(
    st.lists(
        st.builds(
            ResponseItem,
            st.binary(max_size=20),
            st.sampled_from(Status),
            INT64,
            st.sampled_from(Encoding),
            st.binary(max_size=40),
        ),
        max_size=5,
    )
)
def test_responses_round_trip(items: list[ResponseItem]) -> None:
    packed = [
        protocol.pack_result(i.context, i.status, i.compute_nanos, i.encoding, i.payload)
        for i in items
    ]
    assert protocol.unpack_response(protocol.join_response(packed)) == items


@given(st.data())
def test_requests_cut_short_are_refused(data: st.DataObject) -> None:
    items = [(b"ctx", Window("key", np.arange(3), np.arange(3.0), 2))] * 2
    request = protocol.pack_request(items)
    length = data.draw(st.integers(0, len(request) - 1))
    with pytest.raises(ProtocolError):
        protocol.split_request(request[:length])
    with pytest.raises(ProtocolError):
        protocol.split_request(request + b"\0")


def test_request_bytes_are_as_documented() -> None:
    """One scalar item, byte by byte, as the Java side writes it."""
    window = Window("k", np.array([5, 7]), np.array([1.5, -2.0]), 7)
    expected = (
        struct.pack("<BI", 1, 1)
        + struct.pack("<I", 3)
        + b"ctx"
        + struct.pack("<H", 1)
        + b"k"
        + struct.pack("<qBII", 7, 0, 2, 1)
        + struct.pack("<2q", 5, 7)
        + struct.pack("<2d", 1.5, -2.0)
    )
    assert protocol.pack_request([(b"ctx", window)]) == expected


def test_response_bytes_are_as_documented() -> None:
    result = protocol.pack_result(b"ctx", Status.OK, 9, Encoding.FLOAT32_VECTOR, b"\0\0\x80?")
    expected = (
        struct.pack("<BI", 1, 1)
        + struct.pack("<I", 3)
        + b"ctx"
        + struct.pack("<BqBI", 0, 9, 1, 4)
        + struct.pack("<f", 1.0)
    )
    assert protocol.join_response([result]) == expected


def test_a_failure_carries_reason_and_stack() -> None:
    packed = protocol.pack_failure(b"", Status.FAILED, 1, "why", "where")
    (item,) = protocol.unpack_response(protocol.join_response([packed]))
    assert item.failure == {"reason": "why", "stack": "where"}
