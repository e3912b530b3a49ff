"""Goal: a client reads what the layout says, tells stale from fresh, and loses no feedback.

Method: a real Redis and a real Kafka; values are written as the job writes them, and feedback is
read back with a plain consumer.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer
from redis import Redis

from freshet import Aggregate, Client, Config, FeatureTable, FreshetError, Points, Version
from freshet.client import (
    FeatureStatus,
    FeedbackLostError,
    FeedbackQueueFullError,
    StoreUnavailableError,
)
from freshet.feedback import FeedbackProducer
from freshet.stack.kafka import KafkaBroker
from freshet.stack.redis import RedisServer
from freshet.store.layout import LayoutError, key_name, pack_tombstone, pack_value
from freshet.store.registry import register_table, registered_names
from freshet.store.writing import write_if_newer
from freshet.topics import Topic, create_missing_topics
from freshet.values import ValueEncodingError

pytestmark = pytest.mark.integration

NOW_MS = 1_700_000_000_000
TTL_MS = 60_000
NOWHERE = "127.0.0.1:1"
DEADLINE_S = 30.0
PREFIX = "p:"


def config_for(redis_url: str, **changes: Any) -> Config:
    return Config(
        **{
            "kafka_bootstrap": NOWHERE,
            "redis": {"local:home": redis_url},
            "store_prefix": PREFIX,
            **changes,
        }
    )


def table(name: str = "t", **changes: Any) -> FeatureTable:
    return FeatureTable(
        **{"name": name, "function": Aggregate(), "window": Points(3), "ttl": "1m", **changes}
    )


@pytest.fixture
def redis(redis_server: RedisServer) -> Redis:
    client: Redis = Redis.from_url(redis_server.url)
    client.flushdb()
    return client


@pytest.fixture
def client(redis: Redis, redis_server: RedisServer) -> Iterator[Client]:
    register_table(redis, table(), store_prefix=PREFIX)
    with Client(config_for(redis_server.url), clock=lambda: NOW_MS) as opened:
        yield opened


def put(redis: Redis, key: str, value: object, age_ms: int = 0, timestamp: int = 5) -> None:
    packed = pack_value(value, Version(timestamp, 1), NOW_MS - age_ms, NOW_MS - age_ms + 1)
    redis.set(key_name(PREFIX, "t", key), packed)


def test_a_present_feature(redis: Redis, client: Client) -> None:
    put(redis, "k", [1.5, 2.5], age_ms=1_000)
    feature = client.get("t", "k")
    assert feature.status == FeatureStatus.PRESENT == "PRESENT"
    assert feature.value.tolist() == [1.5, 2.5]
    assert feature.version == Version(5, 1)
    assert feature.event_time == NOW_MS - 1_000
    assert feature.computed_at == NOW_MS - 999
    assert feature.staleness_ms == 1_000


def test_a_value_beyond_the_ttl_is_expired(redis: Redis, client: Client) -> None:
    put(redis, "at the limit", [1.0], age_ms=TTL_MS)
    put(redis, "beyond", [1.0], age_ms=TTL_MS + 1)
    features = client.get_many("t", ["at the limit", "beyond"])
    assert features.statuses == [FeatureStatus.PRESENT, FeatureStatus.EXPIRED]
    assert [f.status for f in features] == features.statuses
    assert features[1].value.tolist() == [1.0]
    assert np.isnan(features.values[1]).all()


def test_missing_and_deleted_keys(redis: Redis, client: Client) -> None:
    grave = pack_tombstone(Version(9, 1), NOW_MS, NOW_MS)
    redis.set(key_name(PREFIX, "t", "deleted"), grave)
    put(redis, "k", [1.0, 2.0, 3.0])
    features = client.get_many("t", ["none", "deleted", "k"])
    assert features.statuses == ["MISSING", "MISSING", "PRESENT"]
    for feature in features[:2]:
        assert feature.status == "MISSING"
        assert (
            feature.value is feature.version is feature.event_time is feature.staleness_ms is None
        )
    assert features.versions == [None, None, Version(5, 1)]
    assert features.values.shape == (3, 3)
    assert np.isnan(features.values[:2]).all()
    assert features.event_times.tolist() == [-1, -1, NOW_MS]
    assert client.get_many("t", ["none", "deleted"]).statuses == ["MISSING", "MISSING"]
    assert len(client.get_many("t", [])) == 0


def test_the_fast_and_the_single_way_agree(redis: Redis, client: Client) -> None:
    """Two code paths decode; both must say the same for every mixture of values."""
    rng = np.random.default_rng(3)
    mixtures: dict[str, list[object]] = {
        "vectors": [rng.random(4) for _ in range(5)],
        "lengths": [rng.random(n) for n in (1, 2, 3)],
        "trees": [{"a": 1}, "text", [1.0]],
        "as long as a vector": ["sixteen bytes in", rng.random(4)],
        "empty": [[], []],
    }
    for name, values in mixtures.items():
        keys = [f"{name} {i}" for i in range(len(values))]
        for i, (key, value) in enumerate(zip(keys, values, strict=True)):
            put(redis, key, value, age_ms=i * TTL_MS, timestamp=i)
        redis.set(key_name(PREFIX, "t", f"{name} deleted"), pack_tombstone(Version(1, 2), 3, 4))
        keys = ["none", *keys, f"{name} deleted"]
        features = client.get_many("t", keys)
        iterated, single = list(features), [features[i] for i in range(len(features))]
        for a, b, status, version in zip(
            iterated, single, features.statuses, features.versions, strict=True
        ):
            assert (a.key, a.status, a.version) == (b.key, b.status, b.version)
            assert (a.status, a.version) == (status, version)
            assert (a.event_time, a.computed_at) == (b.event_time, b.computed_at)
            assert a.staleness_ms == b.staleness_ms
            assert np.array_equal(a.value, b.value), name


def test_values_of_a_batch_are_one_matrix_or_an_error(redis: Redis, client: Client) -> None:
    put(redis, "a", [1.0, 2.0])
    put(redis, "b", [3.0, 4.0])
    put(redis, "old and longer", [0.0, 0.0, 0.0], age_ms=TTL_MS + 1)
    put(redis, "longer", [5.0, 6.0, 7.0])
    put(redis, "tree", {"a": 1})
    assert client.get_many("t", ["a", "b"]).values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    mixed = client.get_many("t", ["old and longer", "a"]).values
    assert np.isnan(mixed[0]).all()
    assert mixed[1].tolist() == [1.0, 2.0]
    with pytest.raises(ValueEncodingError, match="vectors of several lengths"):
        _ = client.get_many("t", ["a", "longer"]).values
    with pytest.raises(ValueEncodingError, match="values that are no vectors"):
        _ = client.get_many("t", ["a", "tree"]).values


def test_every_kept_version_in_one_command(redis: Redis, client: Client) -> None:
    writes = []
    for timestamp in (2, 1, 3):
        for i in range(100):
            value, version = [float(timestamp), float(i)], Version(timestamp, 1)
            if i % 10 or timestamp == 2:
                packed = pack_value(value, version, NOW_MS - 10 * timestamp, NOW_MS)
                writes.append((key_name(PREFIX, "t", f"k{i}"), packed))
    write_if_newer(redis, writes, keep_versions=2)
    client.get("t", "warm-up: learns the table")
    before: Any = redis.info("commandstats")
    keys = [f"k{i}" for i in range(101)]
    kept = client.get_versions("t", keys)
    after: Any = redis.info("commandstats")
    assert after["cmdstat_mget"]["calls"] == before["cmdstat_mget"]["calls"] + 1
    assert len(kept.versions) == 2
    newest = [2 if i % 10 == 0 else 3 for i in range(100)]
    assert kept.newest.versions == [*(Version(t, 1) for t in newest), None]
    assert kept.newest.values[:100].tolist() == [[float(t), float(i)] for i, t in enumerate(newest)]
    assert kept.newest.versions == client.get_many("t", keys).versions
    older = kept.versions[1]
    assert older.versions == [None if i % 10 == 0 else Version(2, 1) for i in range(101)]
    assert np.nanmax(older.staleness_ms) == 20


def test_many_keys_take_one_command(redis: Redis, client: Client) -> None:
    keys = [f"ü {i}" for i in range(1_000)]
    for key in keys:
        put(redis, key, [1.0])
    client.get("t", "warm-up: learns the table")
    before: Any = redis.info("commandstats")
    assert client.get_many("t", keys).present.all()
    after: Any = redis.info("commandstats")
    calls = {
        name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"]
        for name in after
        if name != "cmdstat_info"
    }
    assert {name: count for name, count in calls.items() if count} == {"cmdstat_mget": 1}


def test_what_others_wrote_under_a_key_is_named(redis: Redis, client: Client) -> None:
    redis.set(key_name(PREFIX, "t", "k"), "somebody's text, long enough for a header")
    with pytest.raises(LayoutError, match=r"table 't', key 'k': .*layout"):
        client.get("t", "k")
    with pytest.raises(LayoutError):
        _ = client.get_many("t", ["none", "k"]).values


def test_a_client_may_bring_the_definition(redis: Redis, redis_server: RedisServer) -> None:
    put(redis, "k", [1.0], age_ms=2_000)
    config = config_for(redis_server.url)
    with Client(config, tables=[table(ttl="1s")], clock=lambda: NOW_MS) as client:
        assert client.get("t", "k").status == FeatureStatus.EXPIRED


def test_an_unknown_table_is_told_and_never_expires(
    redis: Redis, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(
        key_name(PREFIX, "tt", "k"), pack_value([1.0], Version(1, 1), NOW_MS - 10 * TTL_MS, 0)
    )
    assert client.get("tt", "k").status == FeatureStatus.PRESENT
    assert "table 'tt' is not registered" in caplog.text
    assert "did you mean 't'" in caplog.text
    assert registered_names(redis, store_prefix=PREFIX) == ["t"]


def test_a_store_that_is_away_is_named_without_its_password() -> None:
    config = config_for("redis://user:secret@127.0.0.1:1/0")
    with (
        Client(config, tables=[table()]) as client,
        pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1") as error,
    ):
        client.get("t", "k")
    assert "secret" not in str(error.value)


def test_a_region_without_a_store_is_named() -> None:
    with pytest.raises(FreshetError, match="'aws:mars' has no Redis in the configuration"):
        Client(config_for("redis://127.0.0.1:1/0"), "aws:mars")


def test_a_lost_connection_is_opened_again(redis: Redis, client: Client) -> None:
    put(redis, "k", [1.0])
    assert client.get("t", "k").status == FeatureStatus.PRESENT
    redis.client_kill_filter(_type="normal", skipme=True)
    assert client.get("t", "k").status == FeatureStatus.PRESENT


# Feedback


def consume(broker: KafkaBroker, topic: str, count: int) -> list[tuple[bytes, dict[str, Any]]]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: list[tuple[bytes, dict[str, Any]]] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append((message.key(), json.loads(message.value())))
    consumer.close()
    return found


@pytest.fixture
def feedback_config(kafka: KafkaBroker, redis: Redis, redis_server: RedisServer) -> Config:
    config = config_for(
        redis_server.url, kafka_bootstrap=kafka.bootstrap, topic_prefix=f"{uuid.uuid4().hex}."
    )
    register_table(redis, table(), store_prefix=PREFIX, topic_prefix=config.topic_prefix)
    create_missing_topics(config, [Topic(f"{config.topic_prefix}feedback.t", 2)])
    return config


def test_feedback_arrives_as_the_contract_says(feedback_config: Config, kafka: KafkaBroker) -> None:
    with Client(feedback_config) as client:
        client.feedback("t", "k ü", Version(5, 1), error=0.25, ts=NOW_MS, model="m")
        client.feedback("t", "query", "6.1")
    found = consume(kafka, f"{feedback_config.topic_prefix}feedback.t", 2)
    assert sorted(found) == [
        (
            "k ü".encode(),
            {
                "key": "k ü",
                "version": "5.1",
                "error": 0.25,
                "ts": NOW_MS,
                "region": "local:home",
                "model": "m",
            },
        ),
        (b"query", {"key": "query", "version": "6.1", "region": "local:home"}),
    ]


def test_feedback_of_many_keys(feedback_config: Config, kafka: KafkaBroker) -> None:
    keys = [f"k{i}" for i in range(500)]
    versions = [None if i % 5 == 0 else Version(i, 1) for i in range(500)]
    errors = np.arange(500) / 7
    errors[::10] = np.nan  # no feature and no label
    errors[3::10] = np.nan  # no label
    times = NOW_MS + np.arange(500)
    with Client(feedback_config) as client:
        assert client.feedback_many("t", keys, versions, errors, ts=times) == 450
    found = consume(kafka, f"{feedback_config.topic_prefix}feedback.t", 450)
    assert {body["key"]: (body["version"], body.get("error"), body["ts"]) for _, body in found} == {
        f"k{i}": (f"{i}.1" if i % 5 else None, None if i % 10 == 3 else i / 7, NOW_MS + i)
        for i in range(500)
        if i % 10
    }
    assert not any("errors" in body for _, body in found)


def test_feedback_with_the_errors_of_kept_versions(
    feedback_config: Config, kafka: KafkaBroker
) -> None:
    nan = float("nan")
    with Client(feedback_config) as client:
        client.feedback("t", "a", Version(5, 1), 0.5, errors=[1.5, None, 0.5])
        client.feedback("t", "b", "6.1", error=0.25, errors=[nan, nan])
        kept = [[1.0, nan, 3.0, nan], [4.0, 5.0, nan, nan]]
        versions = ["7.1", "8.1", "9.1", None]
        sent = client.feedback_many(
            "t", list("cdef"), versions, [1, 5, 3, 2], kept_errors=kept, ts=NOW_MS
        )
        assert sent == 4
    found = consume(kafka, f"{feedback_config.topic_prefix}feedback.t", 6)
    assert {body["ts"] for _, body in found if body["key"] in "cdef"} == {NOW_MS}
    assert {
        body["key"]: (body["version"], body["error"], body.get("errors")) for _, body in found
    } == {
        "a": ("5.1", 0.5, [1.5, None, 0.5]),
        "b": ("6.1", 0.25, None),
        "c": ("7.1", 1.0, [1.0, 4.0]),
        "d": ("8.1", 5.0, [None, 5.0]),
        "e": ("9.1", 3.0, [3.0]),
        "f": (None, 2.0, None),
    }


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("5.1", -1.0), "error must be a finite number of 0 or more, not -1.0"),
        (("5.1", float("nan")), "error must be"),
        (("5", 1.0), "version '5' is not"),
        ((None,), "without a version needs an error"),
        (("5.1", 1.0, [1.0, -2.0]), "error must be a finite number of 0 or more, not -2.0"),
        (("5.1", None, [1.0]), "need an error, that of what was served"),
        ((None, 1.0, [1.0]), "need the newest version"),
    ],
)
def test_wrong_feedback_is_refused(
    client: Client, arguments: tuple[Any, ...], problem: str
) -> None:
    version, error, errors = (*arguments, None, None)[:3]
    with pytest.raises(ValueError, match=problem):
        client.feedback("t", "k", version, error, errors=errors)


@pytest.mark.parametrize("kept", [[1.0], [[1.0, 2.0]], 1.0])
def test_errors_of_kept_versions_have_a_shape(client: Client, kept: Any) -> None:
    with pytest.raises(ValueError, match=r"kept_errors must have the shape \[versions, 1\]"):
        client.feedback_many("t", ["k"], ["5.1"], [1.0], kept_errors=kept)


def test_a_full_queue_is_told_and_blocks_only_briefly() -> None:
    producer = FeedbackProducer(
        {"bootstrap.servers": NOWHERE, "queue.buffering.max.messages": "10", "log_level": "0"}
    )
    for i in range(10):
        producer.send("t", str(i), "1.1")
    started = time.monotonic()
    with pytest.raises(FeedbackQueueFullError, match=r"queue of \d+ messages") as error:
        producer.send("t", "one more", "1.1")
    assert time.monotonic() - started < 5.0
    assert error.value.retry_after_s > 0
    with pytest.raises(FeedbackLostError, match="10 feedbacks were not acknowledged"):
        producer.flush(0.1)


def test_feedback_that_kafka_does_not_take_is_counted() -> None:
    producer = FeedbackProducer(
        {"bootstrap.servers": NOWHERE, "delivery.timeout.ms": "50", "linger.ms": "1"}
    )
    producer.send("t", "k", "1.1")
    with pytest.raises(FeedbackLostError, match="did not take 1 feedbacks: t: "):
        producer.flush(DEADLINE_S)
    assert producer.lost == 1
    producer.flush(0.1)  # told once


def test_feedback_that_an_interrupt_broke_off_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = FeedbackProducer({"bootstrap.servers": NOWHERE, "log_level": "0"})

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(producer, "_produce", interrupted)
    with pytest.raises(KeyboardInterrupt):
        producer.send("t", "k", "1.1")
    producer.flush(0.1)


def test_the_log_says_nothing_of_passwords(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "secret",
    }
    with Client(config_for(redis_server.url, kafka_properties=login)):
        pass
    assert "secret" not in caplog.text
