"""Goal: the newest versions stay, one or several, in whatever order and number writes come.

Method: the script on a real Redis, beside a model that looks at the set of all that was written.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from freshet.stack.redis import RedisServer
from freshet.store.layout import (
    KEPT_VERSIONS_MAX,
    StoredValue,
    key_name,
    pack,
    pack_tombstone,
    pack_value,
    unpack,
)
from freshet.store.writing import BATCH_KEYS, WriteResult, write_if_newer
from freshet.values import Encoding
from freshet.version import Version

pytestmark = pytest.mark.integration


@pytest.fixture
def redis(redis_server: RedisServer) -> Redis:
    client: Redis = Redis.from_url(redis_server.url)
    client.flushdb()
    return client


def value(version: Version) -> bytes:
    return pack_value([float(version.timestamp_micros % 1000)], version, 1, 2)


def test_the_largest_version_stays(redis: Redis) -> None:
    rng = random.Random(7)
    versions = [Version(t, o) for t in (5, 2**40, 2**53 + 1, 2**53 + 2, 2**63 - 1) for o in (0, 9)]
    keys = [key_name("", "t", str(i)) for i in range(2 * BATCH_KEYS + 1)]
    writes = [(key, version) for key in keys for version in versions]
    rng.shuffle(writes)
    largest: dict[str, Version] = {}
    expected = []
    for key, version in writes:
        before = largest.get(key)
        expected.append(
            WriteResult.WRITTEN if before is None or version > before else WriteResult.OUTDATED
        )
        largest[key] = max(version, before or version)
    assert write_if_newer(redis, [(key, value(v)) for key, v in writes]) == expected
    for key in keys:
        assert unpack(redis.get(key)).version == max(versions)  # type: ignore[arg-type]


def test_the_same_version_again_changes_nothing(redis: Redis) -> None:
    item = ("t:k", value(Version(1, 1)))
    assert write_if_newer(redis, [item, item]) == [WriteResult.WRITTEN, WriteResult.ALREADY_THERE]


def test_a_tombstone_keeps_older_writes_out_and_expires(redis: Redis) -> None:
    grave = pack_tombstone(Version(5, 1), 0, 0)
    results = write_if_newer(
        redis, [("t:k", value(Version(4, 1))), ("t:k", grave)], tombstone_expiry_ms=60_000
    )
    assert results == [WriteResult.WRITTEN] * 2
    assert 0 < redis.pttl("t:k") <= 60_000  # type: ignore[operator]
    assert write_if_newer(redis, [("t:k", value(Version(4, 2)))]) == [WriteResult.OUTDATED]
    assert write_if_newer(redis, [("t:k", value(Version(6, 1)))]) == [WriteResult.WRITTEN]
    assert redis.pttl("t:k") == -1, "a value has no expiry"


def test_what_others_wrote_is_left_alone(redis: Redis) -> None:
    redis.set("t:text", "somebody's text")
    redis.rpush("t:list", "1")
    items = [("t:text", value(Version(1, 1))), ("t:list", value(Version(1, 1)))]
    assert write_if_newer(redis, items) == [WriteResult.FOREIGN] * 2
    assert redis.get("t:text") == b"somebody's text"


def test_vectors_of_any_size(redis: Redis) -> None:
    big = pack_value(np.arange(10_000), Version(2, 1), 1, 2)
    assert write_if_newer(redis, [("t:k", big)]) == [WriteResult.WRITTEN]
    assert redis.get("t:k") == big


# Several versions.

# Timestamps where doubles, signs and the halves of 64 bits could go wrong.
TIMESTAMPS = st.sampled_from(
    [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1]
)
VERSIONS = st.builds(Version, TIMESTAMPS, st.sampled_from([0, 1, 255, 256, 0x7FFF, 0x8000, 0xFFFF]))
FORMS = st.sampled_from(["vector", "vector", "tree", "tombstone"])
KEPT = st.integers(2, KEPT_VERSIONS_MAX)


@st.composite
def histories(draw: st.DrawFn) -> list[StoredValue]:
    """Writes to one key: some versions, in any order, each at least once."""
    forms = draw(st.dictionaries(VERSIONS, FORMS, min_size=1, max_size=10))
    made = {}
    for version, form in forms.items():
        encoding = {"vector": Encoding.FLOAT32_VECTOR, "tree": Encoding.AVRO}.get(form)
        length = draw(st.integers(0, 5)) * (4 if form == "vector" else 1)
        payload = b"" if encoding is None else draw(st.binary(min_size=length, max_size=length))
        made[version] = StoredValue(
            version,
            draw(st.integers(0, 9)),
            draw(st.integers(0, 9)),
            encoding or Encoding.NONE,
            payload,
            tombstone=encoding is None,
        )
    again = draw(st.lists(st.sampled_from(list(made))))
    order = draw(st.permutations([*made, *again]))
    return [made[version] for version in order]


def newest(writes: Iterable[StoredValue], most: int) -> list[StoredValue]:
    """The model: what a key holds after these writes, newest first."""
    by_version = {write.version: write for write in writes}
    kept = sorted(by_version.values(), key=lambda write: write.version, reverse=True)[:most]
    deletes = [i for i, write in enumerate(kept) if write.tombstone]
    return kept[: deletes[0] + 1] if deletes else kept


def answer_of(write: StoredValue, before: list[StoredValue], most: int) -> WriteResult:
    """The model: what the script answers to a write after these."""
    earlier, kept = newest(before, most), newest([*before, write], most)
    if write.version in [stored.version for stored in earlier]:
        return WriteResult.ALREADY_THERE
    if write not in kept:
        return WriteResult.OUTDATED
    return WriteResult.WRITTEN if write == kept[0] else WriteResult.KEPT_AS_OLDER


@pytest.fixture(scope="module")
def shared_redis(redis_server: RedisServer) -> Redis:
    client: Redis = Redis.from_url(redis_server.url)
    return client


@given(writes=histories(), most=KEPT)
def test_the_newest_stay_in_any_order_and_number(
    shared_redis: Redis, writes: list[StoredValue], most: int
) -> None:
    shared_redis.delete("t:k")
    for i, write in enumerate(writes):
        (answer,) = write_if_newer(
            shared_redis, [("t:k", pack(write))], keep_versions=most, tombstone_expiry_ms=60_000
        )
        assert answer == answer_of(write, writes[:i], most)
        kept = newest(writes[: i + 1], most)
        assert shared_redis.get("t:k") == pack(*kept)
        assert (shared_redis.pttl("t:k") == -1) != kept[0].tombstone, "only a tombstone expires"


@given(writes=histories(), most=KEPT)
def test_a_batch_is_as_good_as_single_writes(
    shared_redis: Redis, writes: list[StoredValue], most: int
) -> None:
    shared_redis.delete("t:a", "t:b")
    items = [(name, pack(write)) for write in writes for name in ("t:a", "t:b")]
    answers = write_if_newer(shared_redis, items, keep_versions=most)
    assert answers[::2] == answers[1::2]
    assert answers[::2] == [answer_of(w, writes[:i], most) for i, w in enumerate(writes)]
    stored: list[bytes | None] = shared_redis.mget("t:a", "t:b")  # type: ignore[assignment]
    assert stored == [pack(*newest(writes, most))] * 2


@given(writes=histories(), more=KEPT, fewer=st.integers(1, KEPT_VERSIONS_MAX))
def test_a_table_may_keep_another_number_from_now_on(
    shared_redis: Redis, writes: list[StoredValue], more: int, fewer: int
) -> None:
    shared_redis.delete("t:k")
    write_if_newer(shared_redis, [("t:k", pack(w)) for w in writes], keep_versions=more)
    kept = newest(writes, more)
    top = max(write.version for write in writes)
    last = StoredValue(Version(2**63 - 1, 0xFFFF), 1, 1, Encoding.AVRO, b"last")
    if top == last.version:
        return
    (answer,) = write_if_newer(shared_redis, [("t:k", pack(last))], keep_versions=fewer)
    assert answer == WriteResult.WRITTEN
    assert shared_redis.get("t:k") == pack(*newest([last, *kept], fewer))


def test_concurrent_writers_end_with_the_newest(redis_server: RedisServer) -> None:
    keys = [f"t:{i}" for i in range(50)]
    writers, rounds, most = 4, 40, 6

    def write(origin: int) -> None:
        rng = random.Random(origin)
        own = Redis.from_url(redis_server.url)
        items = [(key, value(Version(t, origin))) for key in keys for t in range(rounds)]
        rng.shuffle(items)
        write_if_newer(own, items, keep_versions=most)

    redis = Redis.from_url(redis_server.url)
    redis.delete(*keys)
    with ThreadPoolExecutor(writers) as threads:
        for done in [threads.submit(write, origin) for origin in range(writers)]:
            done.result()
    versions = sorted((Version(t, w) for t in range(rounds) for w in range(writers)), reverse=True)
    expected = pack(*(unpack(value(version)) for version in versions[:most]))
    for key in keys:
        assert redis.get(key) == expected


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"somebody's text, long enough for a header",
        b"\x01\x06" + bytes(26),
        b"\x01\x0e" + bytes(60),
        b"\x01\x10" + bytes(26),
        b"\x01\x0a" + bytes(26),
        b"\x01\x0a" + bytes(26) + b"\x1c\0\0\0",
        b"\x01\x0a" + bytes(54) + b"\xff\xff\xff\xff",
        b"\x01\x0a" + bytes(54) + b"\x1b\0\0\0",
        b"\x01\x0a" + bytes(26) + b"\x02\x02" + bytes(26) + b"\x1c\0\0\0",
        b"\x01\x0a" + bytes(26) + b"\x01\x0a" + bytes(26) + b"\x1c\0\0\0",
    ],
)
def test_what_is_damaged_or_of_others_is_left_alone(redis: Redis, foreign: bytes) -> None:
    redis.set("t:k", foreign)
    redis.rpush("t:list", "1")
    items = [("t:k", value(Version(1, 1))), ("t:list", value(Version(1, 1)))]
    assert write_if_newer(redis, items, keep_versions=3) == [WriteResult.FOREIGN] * 2
    assert redis.get("t:k") == foreign


def test_several_versions_are_not_written_at_once(redis: Redis) -> None:
    both = pack(unpack(value(Version(2, 1))), unpack(value(Version(1, 1))))
    with pytest.raises(ValueError, match="'t:k' has several versions; write each"):
        write_if_newer(redis, [("t:k", both)], keep_versions=2)
    assert redis.exists("t:k") == 0
