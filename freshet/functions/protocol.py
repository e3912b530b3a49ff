"""The compute batch: how the operator asks a feature function, and how it answers.

All integers are little-endian. The Java side is ``dev.freshet.operators.compute``.

request
    u8 format = 1 | u32 count | count items of
    u32 context_len | context (opaque, echoed) | u16 key_len | key, UTF-8 | i64 event_time_ms |
    u8 kind | u32 n | u32 d (1 unless vectors) | n x i64 timestamps, ms, ascending |
    scalar, vector: n*d x f64; json: n x (u32 len | JSON, UTF-8)

response
    u8 format = 1 | u32 count | count items, in the order of the request, of
    u32 context_len | context | u8 status | i64 compute_nanos | u8 encoding | u32 payload_len |
    payload (of a failure: JSON {"reason": ..., "stack": ...}; of a rate limit: JSON
    {"retry_after_ms": ...})
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from freshet.functions.window import Window
from freshet.values import Encoding

FORMAT = 1

_HEAD = struct.Struct("<BI")
_CONTEXT_LEN = struct.Struct("<I")
_KEY_LEN = struct.Struct("<H")
_WINDOW_HEAD = struct.Struct("<qBII")
_RESULT_HEAD = struct.Struct("<BqBI")

Buffer = bytes | bytearray | memoryview


class ProtocolError(ValueError):
    """A batch that breaks the format: a defect of the operator, not of a key."""


class Kind(IntEnum):
    """Kind of the values of a window, as the table's source.kind."""

    SCALAR = 0
    VECTOR = 1
    JSON = 2


class Status(IntEnum):
    """How the computation of one key ended."""

    OK = 0
    FAILED = 1
    TIMED_OUT = 2
    RATE_LIMITED = 3
    """Not a failure: to be tried again later."""


@dataclass(frozen=True)
class RequestItem:
    """One key of a request."""

    context: bytes
    window: Window


@dataclass(frozen=True)
class ResponseItem:
    """One key of a response."""

    context: bytes
    status: Status
    compute_nanos: int
    encoding: Encoding
    payload: bytes

    @property
    def failure(self) -> dict[str, str]:
        """Reason and stack of a failure.

        Raises:
            ValueError: the status is no failure's.
        """
        if self.status not in (Status.FAILED, Status.TIMED_OUT):
            raise ValueError("the key did not fail")
        return dict(json.loads(self.payload))

    @property
    def retry_after_ms(self) -> int:
        """When to try a rate-limited key again, milliseconds.

        Raises:
            ValueError: the status is another.
        """
        if self.status != Status.RATE_LIMITED:
            raise ValueError("the key was not rate limited")
        return int(json.loads(self.payload)["retry_after_ms"])


def pack_request(items: Iterable[tuple[bytes, Window]]) -> bytes:
    """Packs (context, window) pairs, as the operator does."""
    parts = [_pack_item(context, window) for context, window in items]
    return join_request(parts)


def join_request(parts: Sequence[Buffer]) -> bytes:
    """A request of items that :func:`split_request` made."""
    return b"".join((_HEAD.pack(FORMAT, len(parts)), *parts))


def count_items(batch: Buffer) -> int:
    """Number of items of a request or a response.

    Raises:
        ProtocolError: it is of another format.
    """
    if len(batch) < _HEAD.size:
        raise ProtocolError(f"a batch of {len(batch)} bytes is shorter than its head")
    batch_format, count = _HEAD.unpack_from(batch)
    if batch_format != FORMAT:
        raise ProtocolError(
            f"the batch has the format {batch_format}, and this worker knows {FORMAT}; the jar and "
            "the Python package are of different releases"
        )
    return int(count)


def split_request(request: Buffer) -> list[memoryview]:
    """The items of a request, each still packed; views, nothing is copied.

    Raises:
        ProtocolError: the request breaks the format.
    """
    count = count_items(request)
    view = memoryview(request)
    parts, offset = [], _HEAD.size
    try:
        for _ in range(count):
            start = offset
            offset = _skip_item(view, offset)
            parts.append(view[start:offset])
    except struct.error as e:
        raise ProtocolError(f"the request is cut short in item {len(parts)} of {count}") from e
    if offset != len(view):
        raise ProtocolError(f"the request has {len(view)} bytes, its items take {offset}")
    return parts


def unpack_item(part: Buffer) -> RequestItem:
    """Unpacks one item of :func:`split_request`.

    The arrays of the window are copies, aligned and writable: the bytes in a batch are neither, and
    a function that changes its window must not change what a retry will see.
    """
    context, key, offset = _read_names(part)
    event_time, kind, n, d = _WINDOW_HEAD.unpack_from(part, offset)
    offset += _WINDOW_HEAD.size
    timestamps = np.frombuffer(part, "<i8", n, offset).copy()
    offset += 8 * n
    if kind == Kind.JSON:
        return RequestItem(
            context, Window(key, timestamps, _read_json(part, n, offset), event_time)
        )
    values = np.frombuffer(part, "<f8", n * d, offset).copy()
    if kind == Kind.VECTOR:
        values = values.reshape(n, d)
    return RequestItem(context, Window(key, timestamps, values, event_time))


def unpack_request(request: Buffer) -> list[RequestItem]:
    """Unpacks all items of a request.

    Raises:
        ProtocolError: the request breaks the format.
    """
    return [unpack_item(part) for part in split_request(request)]


def item_names(part: Buffer) -> tuple[bytes, str]:
    """Context and key of one item of :func:`split_request`."""
    context, key, _ = _read_names(part)
    return context, key


def pack_result(
    context: bytes, status: Status, compute_nanos: int, encoding: Encoding, payload: bytes
) -> bytes:
    """Packs one item of a response."""
    return b"".join(
        (
            _CONTEXT_LEN.pack(len(context)),
            context,
            _RESULT_HEAD.pack(status, compute_nanos, encoding, len(payload)),
            payload,
        )
    )


def pack_failure(
    context: bytes, status: Status, compute_nanos: int, reason: str, stack: str = ""
) -> bytes:
    """Packs the failure of one key."""
    payload = json.dumps({"reason": reason, "stack": stack}).encode()
    return pack_result(context, status, compute_nanos, Encoding.NONE, payload)


def pack_rate_limited(context: bytes, compute_nanos: int, retry_after_s: float) -> bytes:
    """Packs the result of a key that is to be tried again after so long, rounded up to 1 ms."""
    payload = json.dumps({"retry_after_ms": max(0, math.ceil(retry_after_s * 1000))}).encode()
    return pack_result(context, Status.RATE_LIMITED, compute_nanos, Encoding.NONE, payload)


def join_response(results: Sequence[bytes]) -> bytes:
    """A response of items that :func:`pack_result` made."""
    return b"".join((_HEAD.pack(FORMAT, len(results)), *results))


def unpack_response(response: Buffer) -> list[ResponseItem]:
    """Unpacks a response, as the operator does.

    Raises:
        ProtocolError: the response breaks the format.
    """
    count = count_items(response)
    view = memoryview(response)
    items, offset = [], _HEAD.size
    try:
        for _ in range(count):
            context, offset = _read_context(view, offset)
            status, nanos, encoding, length = _RESULT_HEAD.unpack_from(view, offset)
            offset += _RESULT_HEAD.size
            payload = bytes(view[offset : offset + length])
            offset += length
            items.append(ResponseItem(context, Status(status), nanos, Encoding(encoding), payload))
    except struct.error as e:
        raise ProtocolError(f"the response is cut short in item {len(items)} of {count}") from e
    if offset != len(view):
        raise ProtocolError(f"the response has {len(view)} bytes, its items take {offset}")
    return items


def _pack_item(context: bytes, window: Window) -> bytes:
    key = window.key.encode()
    timestamps = np.ascontiguousarray(window.timestamps, "<i8")
    if isinstance(window.values, list):
        kind, d = Kind.JSON, 1
        documents = [json.dumps(value).encode() for value in window.values]
        values = b"".join(_CONTEXT_LEN.pack(len(doc)) + doc for doc in documents)
    else:
        array = np.ascontiguousarray(window.values, "<f8")
        kind, d = (Kind.SCALAR, 1) if array.ndim == 1 else (Kind.VECTOR, array.shape[1])
        values = array.tobytes()
    return b"".join(
        (
            _CONTEXT_LEN.pack(len(context)),
            context,
            _KEY_LEN.pack(len(key)),
            key,
            _WINDOW_HEAD.pack(window.event_time, kind, len(timestamps), d),
            timestamps.tobytes(),
            values,
        )
    )


def _skip_item(view: memoryview, offset: int) -> int:
    """Offset of the item after the one at offset."""
    (context_len,) = _CONTEXT_LEN.unpack_from(view, offset)
    offset += _CONTEXT_LEN.size + context_len
    (key_len,) = _KEY_LEN.unpack_from(view, offset)
    offset += _KEY_LEN.size + key_len
    _, kind, n, d = _WINDOW_HEAD.unpack_from(view, offset)
    offset += _WINDOW_HEAD.size + 8 * n
    if kind == Kind.JSON:
        for _ in range(n):
            (length,) = _CONTEXT_LEN.unpack_from(view, offset)
            offset += _CONTEXT_LEN.size + length
    elif kind in (Kind.SCALAR, Kind.VECTOR):
        offset += 8 * n * d
    else:
        raise ProtocolError(f"the kind of values {kind} is unknown")
    if offset > len(view):
        raise struct.error
    return offset


def _read_context(buffer: Buffer, offset: int) -> tuple[bytes, int]:
    (length,) = _CONTEXT_LEN.unpack_from(buffer, offset)
    offset += _CONTEXT_LEN.size
    return bytes(buffer[offset : offset + length]), offset + length


def _read_names(part: Buffer) -> tuple[bytes, str, int]:
    context, offset = _read_context(part, 0)
    (key_len,) = _KEY_LEN.unpack_from(part, offset)
    offset += _KEY_LEN.size
    return context, str(part[offset : offset + key_len], "utf-8"), offset + key_len


def _read_json(part: Buffer, n: int, offset: int) -> list[dict[str, Any]]:
    values = []
    for _ in range(n):
        (length,) = _CONTEXT_LEN.unpack_from(part, offset)
        offset += _CONTEXT_LEN.size
        values.append(json.loads(bytes(part[offset : offset + length])))
        offset += length
    return values
