"""Packs feature values: a vector as little-endian float32, anything else as Avro.

The one place that decides how a value that a feature function returned is written; the online
store, the change topic and the compute protocol carry the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from freshet import avro
from freshet.errors import FreshetError

FeatureValue = npt.NDArray[Any] | Sequence[float] | avro.FeatureTree
"""What a feature function may return: numbers in a row, or a JSON-like tree."""

VECTOR_DTYPE = np.dtype("<f4")

_EXACT_INTEGERS = 2**24  # every integer up to here is exact in float32


class Encoding(IntEnum):
    """How a value is packed, as in the store layout."""

    NONE = 0
    FLOAT32_VECTOR = 1
    AVRO = 2


class ValueEncodingError(FreshetError, ValueError):
    """A feature value that can't be written; the message says what, where and the fix."""


def encode_payload(value: object) -> tuple[Encoding, bytes]:
    """Packs a feature value.

    Args:
        value: a 1-D array or a sequence of numbers becomes a float32 vector; numbers, text, bytes,
            other lists and dicts become Avro.

    Raises:
        ValueEncodingError: None, NaN, infinity, more than one dimension, an integer vector that
            float32 would round, or something that Avro can't carry.
    """
    vector = _as_vector(value)
    if vector is not None:
        return Encoding.FLOAT32_VECTOR, _pack_vector(vector)
    if value is None:
        raise ValueEncodingError(
            "the value is None; return a number, a vector, text, or a dict or list of these"
        )
    try:
        return Encoding.AVRO, avro.encode_value(value)
    except avro.AvroError as e:
        raise ValueEncodingError(str(e)) from e


def decode_payload(encoding: int, payload: bytes | memoryview) -> Any:
    """Unpacks what :func:`encode_payload` made.

    Returns:
        A float32 array [d], a tree of Python values, or None where there is no value.

    Raises:
        ValueEncodingError: the payload is damaged or its encoding unknown.
    """
    if encoding == Encoding.FLOAT32_VECTOR:
        if len(payload) % VECTOR_DTYPE.itemsize:
            raise ValueEncodingError(f"{len(payload)} bytes are no whole number of float32")
        return np.frombuffer(payload, VECTOR_DTYPE)
    if encoding == Encoding.AVRO:
        try:
            return avro.decode_value(payload)
        except avro.AvroError as e:
            raise ValueEncodingError(str(e)) from e
    if encoding == Encoding.NONE:
        return None
    raise ValueEncodingError(f"encoding {encoding} is unknown; a later release wrote the value")


def _as_vector(value: object) -> npt.NDArray[Any] | None:
    """The value as an array if it is numbers in a row, else None."""
    if isinstance(value, np.ndarray):
        if value.ndim == 0 or value.dtype.kind not in "fiu":
            return None
        if value.ndim > 1:
            raise ValueEncodingError(
                f"the value has the shape {value.shape}; return one row of numbers, such as "
                "value.ravel()"
            )
        return value
    if isinstance(value, list | tuple) and all(
        isinstance(v, float | int | np.floating | np.integer) and not isinstance(v, bool)
        for v in value
    ):
        try:
            return np.asarray(value) if value else np.empty(0)
        except OverflowError as e:
            raise ValueEncodingError(f"a number of the value is too large: {e}") from e
    return None


def _pack_vector(vector: npt.NDArray[Any]) -> bytes:
    if vector.dtype.kind in "iuO" and vector.size:
        largest = max(abs(int(vector.max())), abs(int(vector.min())))
        if largest > _EXACT_INTEGERS:
            raise ValueEncodingError(
                f"the integer {largest} would be rounded in a float32 vector; return floats if "
                "that is fine, or a dict to keep integers exact"
            )
    with np.errstate(over="ignore", invalid="ignore"):
        packed = np.ascontiguousarray(vector, VECTOR_DTYPE)
    finite = np.isfinite(packed)
    if not finite.all():
        index = int(np.argmin(finite))
        raise ValueEncodingError(
            f"element {index} of {packed.size} is {vector[index]}, which is no finite float32; a "
            "feature value must be finite"
        )
    return packed.tobytes()
