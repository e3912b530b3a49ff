"""Avro single-object encoding of the records in ``schemas/``, and feature values as Avro trees.

A single object is ``C3 01``, the CRC-64-AVRO fingerprint of its schema (8 bytes, little-endian) and
the binary body, so that a reader finds the schema without a registry.
"""

from __future__ import annotations

import io
import json
import math
from functools import cache
from typing import Any, NamedTuple

import fastavro
import fastavro.schema
import numpy as np

from freshet.errors import FreshetError
from freshet.resources import earlier_schema_paths, schema_path

SCHEMA_NAMES = (
    "FeatureValue",
    "FeatureChange",
    "DeadLetter",
    "Progress",
    "Chunk",
    "ChunkPayload",
    "RegionReport",
)
"""Every record that a topic or the online store carries."""

MAGIC = b"\xc3\x01"
HEADER_BYTES = 10
MAX_DEPTH = 64
"""Deepest nesting of a feature value."""

_INT64 = range(-(2**63), 2**63)

FeatureTree = None | bool | int | float | str | bytes | list[Any] | dict[str, Any]
"""A feature value that is no float32 vector: any JSON-like tree, with bytes."""


class AvroError(FreshetError, ValueError):
    """Bytes that are no single object of ours, or a value that no schema of ours can carry."""


@cache
def load_schema(name: str) -> Any:
    """The parsed schema of a record in ``schemas/``."""
    return fastavro.parse_schema(json.loads(schema_path(name).read_text(encoding="utf-8")))


@cache
def fingerprint(name: str) -> bytes:
    """CRC-64-AVRO fingerprint of a record's schema, 8 bytes, little-endian."""
    return _fingerprint(load_schema(name))


def _fingerprint(schema: Any) -> bytes:
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


class _Writer(NamedTuple):
    """What a record was written with."""

    name: str
    schema: Any
    is_present: bool


@cache
def _writers() -> dict[bytes, _Writer]:
    """By fingerprint: topics and the online store hold what any release wrote."""
    writers = {}
    for name in SCHEMA_NAMES:
        for path in earlier_schema_paths(name):
            schema = fastavro.parse_schema(json.loads(path.read_text(encoding="utf-8")))
            writers[_fingerprint(schema)] = _Writer(name, schema, False)
        writers[fingerprint(name)] = _Writer(name, load_schema(name), True)
    return writers


def encode(name: str, record: dict[str, Any]) -> bytes:
    """Encodes a record as a single object.

    Raises:
        AvroError: the record does not fit its schema.
    """
    return MAGIC + fingerprint(name) + encode_body(name, record)


def encode_body(name: str, record: dict[str, Any]) -> bytes:
    """Encodes a record without a header.

    Raises:
        AvroError: the record does not fit its schema.
    """
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, load_schema(name), record)
    except (ValueError, TypeError, OverflowError, AttributeError) as e:
        raise AvroError(f"the record does not fit the schema {name}: {e}") from e
    return body.getvalue()


def decode(data: bytes | memoryview) -> tuple[str, dict[str, Any]]:
    """Decodes a single object of any record in ``schemas/``, whichever release wrote it.

    Returns:
        The name of its schema and the record, as the present schema has it.

    Raises:
        AvroError: not a single object, of an unknown schema, or cut short.
    """
    data = bytes(data)
    if len(data) < HEADER_BYTES or data[:2] != MAGIC:
        raise AvroError(
            f"{len(data)} bytes that start with {data[:2].hex() or 'nothing'} are no Avro single "
            "object, which starts with c301 and a fingerprint of 8 bytes"
        )
    writer = _writers().get(data[2:HEADER_BYTES])
    if writer is None:
        raise AvroError(
            f"no schema has the fingerprint {data[2:HEADER_BYTES].hex()}; the writer is of another "
            "release, upgrade this reader first"
        )
    return writer.name, _decode_body(writer, data, HEADER_BYTES)


def decode_body(name: str, data: bytes, start: int = 0) -> dict[str, Any]:
    """Decodes a record that has no header, of the present schema.

    Args:
        name: of its schema.
        start: index of its first byte; its last is that of the data.

    Raises:
        AvroError: damaged, cut short, or more than a record.
    """
    return _decode_body(_Writer(name, load_schema(name), True), data, start)


def _decode_body(writer: _Writer, data: bytes, start: int) -> dict[str, Any]:
    body = io.BytesIO(data)
    body.seek(start)
    reader_schema = None if writer.is_present else load_schema(writer.name)
    try:
        record: dict[str, Any] = fastavro.schemaless_reader(body, writer.schema, reader_schema)
    except (EOFError, ValueError, IndexError, UnicodeDecodeError, StopIteration) as e:
        raise _damaged(writer, data, repr(e)) from e
    if body.tell() != len(data):
        raise _damaged(writer, data, "its record ends before them")
    return record


def _damaged(writer: _Writer, data: bytes, how: str) -> AvroError:
    return AvroError(f"a {writer.name} of {len(data)} bytes is damaged: {how}")


def decode_as(name: str, data: bytes | memoryview) -> dict[str, Any]:
    """Decodes a single object that must be of the given schema.

    Raises:
        AvroError: as :func:`decode`, or of another schema.
    """
    found, record = decode(data)
    if found != name:
        raise AvroError(f"expected a {name}, found a {found}")
    return record


def encode_value(value: object) -> bytes:
    """Encodes a feature value that is no vector as a single ``FeatureValue``.

    Args:
        value: None, bool, int (64 bit), finite float, str, bytes, or a list, tuple, array or
            str-keyed dict of these; numpy scalars count as Python numbers.

    Raises:
        AvroError: something in it can't be carried; the message says what and where.
    """
    return encode("FeatureValue", {"value": _to_tree(value, "value", 0)})


def decode_value(data: bytes | memoryview) -> FeatureTree:
    """Decodes a single ``FeatureValue`` into Python values.

    Raises:
        AvroError: as :func:`decode_as`.
    """
    tree: FeatureTree = _from_tree(decode_as("FeatureValue", data)["value"])
    return tree


def _to_tree(value: object, where: str, depth: int) -> Any:
    """The value with each union branch named, so that fastavro need not try them one by one."""
    if depth > MAX_DEPTH:
        raise AvroError(f"{where} is nested deeper than {MAX_DEPTH}")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None:
        return None
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int):
        if value not in _INT64:
            raise AvroError(f"{where} = {value} does not fit 64 bits; return it as text")
        return ("long", value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise AvroError(f"{where} is {value}, and a feature value must be finite")
        return ("double", value)
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, bytes | bytearray | memoryview):
        return ("bytes", bytes(value))
    if isinstance(value, list | tuple):
        items = enumerate(value)
        return (
            "array",
            [{"element": {"value": _to_tree(v, f"{where}[{i}]", depth + 1)}} for i, v in items],
        )
    if isinstance(value, dict):
        return ("map", _to_map(value, where, depth))
    raise AvroError(
        f"{where} is a {type(value).__name__}; use numbers, text, bytes, lists and dicts of these"
    )


def _to_map(value: dict[Any, Any], where: str, depth: int) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise AvroError(f"{where} has the key {key!r}; the keys of a dict must be text")
    return {
        key: {"value": _to_tree(item, f"{where}.{key}", depth + 1)} for key, item in value.items()
    }


def _from_tree(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_from_tree(item["element"]["value"]) for item in tree]
    if isinstance(tree, dict):
        return {key: _from_tree(item["value"]) for key, item in tree.items()}
    return tree
