"""Goal: a batch in arrays, its single features and the layout say the same of every mixture.

Method: batches of values as the store returns them, of one or several versions; the expectation is
made from the values that were packed, by nothing that decodes.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.store.decoding import Feature, FeatureBatch, FeatureStatus
from freshet.store.kept import KeptVersions
from freshet.store.layout import (
    KEPT_VERSIONS_MAX,
    LayoutError,
    StoredValue,
    pack,
    pack_value,
)
from freshet.store.rows import all_of, newest_of
from freshet.values import Encoding, ValueEncodingError, encode_payload
from freshet.version import Version

NOW_MS = 1_000
TTL_MS = 100

Held = list[StoredValue]
"""What a key holds: its versions, newest first, or nothing."""

VERSIONS = st.builds(Version, st.integers(0, 2**63 - 1), st.integers(0, 0xFFFF))
TIMES = st.sampled_from([NOW_MS, NOW_MS - TTL_MS, NOW_MS - TTL_MS - 1, 0])
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def stored(draw: st.DrawFn, form: str, length: int) -> StoredValue:
    encoding, payload = Encoding.NONE, b""
    if form == "vector":
        numbers = draw(st.lists(NUMBERS, min_size=length, max_size=length))
        encoding, payload = Encoding.FLOAT32_VECTOR, np.array(numbers, "<f4").tobytes()
    elif form == "tree":
        encoding, payload = encode_payload("x" * length)
    version, times = draw(VERSIONS), (draw(TIMES), draw(TIMES))
    return StoredValue(version, *times, encoding, payload, tombstone=form == "delete")


@st.composite
def batches(draw: st.DrawFn) -> list[Held]:
    """What keys hold: often vectors of one length, sometimes anything."""
    lengths = draw(st.sampled_from([st.just(2), st.integers(0, 2), st.integers(0, 12)]))
    forms = ["vector"] * 6 + ["delete"] + ["tree"] * draw(st.booleans())
    most = draw(st.sampled_from([1, 2, KEPT_VERSIONS_MAX]))
    batch = []
    for _ in range(draw(st.integers(0, 6))):
        held: Held = []
        for _ in range(draw(st.integers(0, most))):
            held.append(stored(draw, draw(st.sampled_from(forms)), draw(lengths)))
            if held[-1].tombstone:
                break
        batch.append(held)
    return batch


def raw_of(batch: list[Held]) -> tuple[list[str], list[bytes | None]]:
    return [f"k{i}" for i in range(len(batch))], [pack(*held) if held else None for held in batch]


def batch_of(batch: list[Held]) -> FeatureBatch:
    return FeatureBatch("t", *raw_of(batch), NOW_MS, TTL_MS)


def kept_of(batch: list[Held]) -> KeptVersions:
    return KeptVersions("t", *raw_of(batch), NOW_MS, TTL_MS)


def version_of(held: Held, which: int) -> StoredValue | None:
    return held[which] if which < len(held) else None


def assert_is(feature: Feature, key: str, expected: StoredValue | None) -> None:
    assert feature.key == key
    if expected is None or expected.tombstone:
        assert feature == Feature(key, FeatureStatus.MISSING) or (
            feature.status == FeatureStatus.MISSING
            and feature.value is feature.version is feature.event_time is None
        )
        return
    fresh = expected.event_time >= NOW_MS - TTL_MS
    assert feature.status == (FeatureStatus.PRESENT if fresh else FeatureStatus.EXPIRED)
    assert feature.version == expected.version
    assert feature.event_time == expected.event_time
    assert feature.computed_at == expected.computed_at
    assert feature.staleness_ms == NOW_MS - expected.event_time
    assert np.array_equal(feature.value, expected.value)


def assert_batch(batch: FeatureBatch, expected: list[StoredValue | None]) -> None:
    assert len(batch) == len(expected)
    for i, (key, value) in enumerate(zip(batch.keys, expected, strict=True)):
        assert_is(batch[i], key, value)
    for feature, value in zip(batch, expected, strict=True):
        assert_is(feature, feature.key, value)
    singles = [batch[i] for i in range(len(batch))]
    assert batch.statuses == [f.status for f in singles]
    assert batch.versions == [f.version for f in singles]
    assert batch.present.tolist() == [f.status == "PRESENT" for f in singles]
    times = [-1 if f.event_time is None else f.event_time for f in singles]
    assert batch.event_times.tolist() == times
    assert_values(batch, [f for f in singles if f.status == "PRESENT"])


def assert_values(batch: FeatureBatch, present: list[Feature]) -> None:
    are_vectors = all(isinstance(f.value, np.ndarray) for f in present)
    if not are_vectors or len({len(f.value) for f in present}) > 1:
        with pytest.raises(ValueEncodingError):
            _ = batch.values
        return
    values = batch.values
    assert values.dtype == np.float32
    assert np.isnan(values[~batch.present]).all()
    for row, feature in zip(values[batch.present], present, strict=True):
        assert np.array_equal(row, feature.value)


@settings(max_examples=300)
@given(batches())
def test_the_newest_version_alone(batch: list[Held]) -> None:
    expected = [version_of(held, 0) for held in batch]
    assert_batch(batch_of(batch), expected)
    assert_batch(batch_of(batch)[1:], expected[1:])


@settings(max_examples=300)
@given(batches())
def test_every_version(batch: list[Held]) -> None:
    kept = kept_of(batch)
    assert kept.newest is kept.versions[0]
    most = max((sum(not v.tombstone for v in held) for held in batch), default=0)
    assert len(kept.versions) == max(1, most)
    for which, versions in enumerate(kept.versions):
        expected = [version_of(held, which) for held in batch]
        assert_batch(versions, expected)
        assert_batch(versions[1:], expected[1:])


@given(batches(), st.data())
def test_one_version_of_each(batch: list[Held], data: st.DataObject) -> None:
    indices = st.integers(0, KEPT_VERSIONS_MAX)
    which = data.draw(st.lists(indices, min_size=len(batch), max_size=len(batch)))
    expected = [version_of(held, i) for held, i in zip(batch, which, strict=True)]
    assert_batch(kept_of(batch).pick(which), expected)


@pytest.mark.parametrize("which", [[0], [0, 0, 0], [0, -1], [[0, 0]]])
def test_one_version_of_each_and_no_other(which: list[int]) -> None:
    with pytest.raises(ValueError, match="one index of 0 or more for each of 2 keys"):
        kept_of([[], []]).pick(which)


def vector(count: int, version: int, *, tombstone: bool = False) -> StoredValue:
    encoding, payload = encode_payload([float(version)] * count)
    if tombstone:
        encoding, payload = Encoding.NONE, b""
    return StoredValue(Version(version, 1), NOW_MS, NOW_MS, encoding, payload, tombstone=tombstone)


def test_vectors_of_one_length_are_decoded_at_once() -> None:
    """Every mixture of what a key may hold, so that no table falls back to the slow way."""
    grave = vector(0, 1, tombstone=True)
    three = [vector(3, 4), vector(3, 3), vector(3, 2)]
    batch: list[Held] = [three, three[:2], three[:1], [*three, grave], [three[0], grave], [grave]]
    _, raw = raw_of([*batch, []])
    rng = np.random.default_rng(1)
    for _ in range(50):
        part = [raw[i] for i in rng.integers(0, len(raw), rng.integers(0, 5))]
        assert all_of(part) is not None
        assert newest_of(part) is not None
    records = all_of(raw)
    assert records is not None
    assert records.shape == (7, 4)


def test_a_vector_as_long_as_two_is_told_apart() -> None:
    two = pack(vector(3, 2), vector(3, 1))
    (one,) = {pack(vector(n, 5)) for n in range(32) if 28 + 4 * n == len(two)}
    kept = KeptVersions("t", ["two", "one"], [two, one], NOW_MS, None)
    assert [f.value.tolist() for f in kept.newest] == [[2.0] * 3, [5.0] * 14]
    assert kept.versions[1].statuses == ["PRESENT", "MISSING"]


@pytest.mark.parametrize("behind", [0, 27, 2**32 - 1])
def test_damaged_lengths_are_noticed(behind: int) -> None:
    whole = pack(vector(3, 2), vector(3, 1))
    damaged = whole[:-4] + behind.to_bytes(4, "little")
    for raw in ([damaged], [whole, damaged]):
        keys = ["a", "b"][: len(raw)]
        batch = FeatureBatch("t", keys, raw, NOW_MS, None)
        with pytest.raises(LayoutError, match="the value is damaged: delete the key"):
            _ = list(batch)
        with pytest.raises(LayoutError, match="the value is damaged"):
            _ = batch.values
        with pytest.raises(LayoutError, match=rf"key {keys[-1]!r}: .* the value is damaged"):
            _ = KeptVersions("t", keys, raw, NOW_MS, None).versions


def test_flags_of_a_release_to_come_are_refused() -> None:
    value = bytearray(pack_value([1.0], Version(1, 1), NOW_MS, NOW_MS))
    value[1] |= 0x10
    batch = FeatureBatch("t", ["k"], [bytes(value)], NOW_MS, None)
    with pytest.raises(LayoutError, match=r"table 't', key 'k': the flags 18 are unknown"):
        _ = batch.values
