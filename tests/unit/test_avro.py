"""Goal: Avro values survive the trip, are found by fingerprint, and damage is noticed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet import avro
from freshet.avro import AvroError
from freshet.resources import schema_path

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)

# As Java's SchemaNormalization.parsingFingerprint64 gives them, little-endian.
FINGERPRINTS = {
    "FeatureValue": "cf6c727133e828b7",
    "FeatureChange": "fe58c961c8415c1f",
    "DeadLetter": "52a2233f32f0652d",
    "Progress": "7fcb52e06e4b2ede",
    "Chunk": "5f5c68426ba51352",
    "ChunkPayload": "4abcfb2bed085a7d",
    "RegionReport": "b9ed6499c2646cc3",
}


def same(a: Any, b: Any) -> bool:
    """Equal in value and in type: True is not 1, 1 is not 1.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


@given(TREES)
def test_values_round_trip(tree: Any) -> None:
    assert same(avro.decode_value(avro.encode_value(tree)), tree)


@given(TREES)
def test_values_are_written_as_fastavro_would_without_our_hints(tree: Any) -> None:
    encoded = avro.encode_value(tree)
    assert avro.encode("FeatureValue", avro.decode_as("FeatureValue", encoded)) == encoded


def test_numpy_counts_as_python() -> None:
    tree = {
        "f": np.float32(1.5),
        "i": np.int64(3),
        "b": np.bool_(True),
        "a": np.arange(2),
        "t": (1,),
    }
    expected = {"f": 1.5, "i": 3, "b": True, "a": [0, 1], "t": [1]}
    assert same(avro.decode_value(avro.encode_value(tree)), expected)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"n": [1, 2**63]}, "value.n[1] = 9223372036854775808 does not fit 64 bits"),
        ([float("nan")], "value[0] is nan"),
        (float("-inf"), "value is -inf"),
        ({"a": {1: 2}}, "value.a has the key 1"),
        ({"a": {2, 3}}, "value.a is a set"),
        (1j, "value is a complex"),
    ],
)
def test_what_avro_can_not_carry_is_named(value: object, reason: str) -> None:
    with pytest.raises(AvroError) as error:
        avro.encode_value(value)
    assert reason in str(error.value)


def test_endless_nesting_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(AvroError, match="nested deeper than 64"):
        avro.encode_value(endless)


def test_damaged_bytes_are_noticed() -> None:
    data = avro.encode_value({"key": [1.5, "text"]})
    for length in range(len(data)):
        with pytest.raises(AvroError):
            avro.decode(data[:length])
    with pytest.raises(AvroError, match="no schema has the fingerprint"):
        avro.decode(data[:2] + bytes(8) + data[10:])
    with pytest.raises(AvroError, match="expected a Progress, found a FeatureValue"):
        avro.decode_as("Progress", data)


@pytest.mark.parametrize("name", avro.SCHEMA_NAMES)
def test_fingerprints_are_those_of_java(name: str) -> None:
    """A changed schema changes this on purpose: readers of both releases must know both."""
    assert avro.fingerprint(name).hex() == FINGERPRINTS[name]


def test_a_change_event_round_trips() -> None:
    change = {
        "table": "t",
        "key": "k",
        "version_timestamp": 12,
        "version_origin": 1,
        "event_time": 3,
        "computed_at": 4,
        "operation": "UPSERT",
        "encoding": "FLOAT32_VECTOR",
        "is_first": False,
        "value": b"\0\0\x80?",
        "regret_removed": 0.5,
    }
    assert avro.decode(avro.encode("FeatureChange", change)) == ("FeatureChange", change)
    with pytest.raises(AvroError, match="FeatureChange"):
        avro.encode("FeatureChange", {**change, "version_timestamp": "12"})


def test_schemas_name_their_files() -> None:
    for name in avro.SCHEMA_NAMES:
        assert json.loads(schema_path(name).read_text())["name"] == name
