"""Goal: of two writes the newer version stays, in whatever order and number they come."""

from __future__ import annotations

import random

import numpy as np
import pytest
from redis import Redis

from freshet.stack.redis import RedisServer
from freshet.store.layout import key_name, pack_tombstone, pack_value, unpack
from freshet.store.writing import BATCH_KEYS, WriteResult, write_if_newer
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
    newest: dict[str, Version] = {}
    expected = []
    for key, version in writes:
        before = newest.get(key)
        expected.append(
            WriteResult.WRITTEN if before is None or version > before else WriteResult.OUTDATED
        )
        newest[key] = max(version, before or version)
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
