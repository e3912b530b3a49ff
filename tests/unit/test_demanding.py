"""Goal: a reader of a table that computes on demand asks for what is missing or stale, waits for it
within bounds, and then takes what there is.

Method: a real Redis and a real Kafka. In place of the job, a thread takes demands from the topic
and writes what a test has told it; the job itself answers in ``tests/integration``.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from redis import Redis

from freshet import (
    Aggregate,
    Client,
    Config,
    FeatureTable,
    OnDemand,
    Points,
    Version,
    demanding,
)
from freshet.feedback import FeedbackProducer
from freshet.stack.kafka import KafkaBroker
from freshet.stack.redis import RedisServer
from freshet.store.layout import key_name, pack_tombstone, pack_value
from freshet.store.registry import register_table
from freshet.store.writing import write_if_newer
from freshet.topics import Topic, create_missing_topics
from tests.integration.polling import eventually

pytestmark = pytest.mark.integration

NOW_MS = 1_700_000_000_000
MAX_STALENESS_MS = 60_000
PARTITIONS = 1
"""So that records are in order."""

NOWHERE = "127.0.0.1:1"


def table(max_wait: str, **changes: Any) -> FeatureTable:
    rule = OnDemand(max_staleness="1m", max_wait=max_wait)
    fields = {"name": "t", "function": Aggregate(), "window": Points(3), "on_demand": rule}
    return FeatureTable(**{**fields, **changes})


def put(redis: Redis, key: str, timestamp: int, age_ms: float = 0.0) -> None:
    event_time = int(NOW_MS - age_ms)
    value = pack_value([float(timestamp)], Version(timestamp, 1), event_time, event_time)
    write_if_newer(redis, [(key_name("", "t", key), value)], keep_versions=2)


class Answerer:
    """Takes demands, and writes the versions that it was told to write."""

    def __init__(self, redis: Redis, broker: KafkaBroker, topic: str) -> None:
        self.demands: list[tuple[bytes, dict[str, Any]]] = []
        self.answers: dict[str, tuple[int, float]] = {}
        """Key to timestamp of the version and age of its events, milliseconds."""
        self._redis = redis
        self._consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": uuid.uuid4().hex}
        )
        self._consumer.assign([TopicPartition(topic, i, 0) for i in range(PARTITIONS)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            demand = json.loads(message.value())
            self.demands.append((message.key(), demand))
            if demand["key"] in self.answers:
                put(self._redis, demand["key"], *self.answers[demand["key"]])

    def until(self, key: str) -> list[tuple[bytes, dict[str, Any]]]:
        """All records, once there is one of this key."""
        return eventually(lambda: self.demands if key in self._keys() else None, f"record of {key}")

    def _keys(self) -> set[str]:
        return {demand["key"] for _, demand in self.demands}

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()


@pytest.fixture
def redis(redis_server: RedisServer) -> Redis:
    client: Redis = Redis.from_url(redis_server.url)
    client.flushdb()
    return client


@pytest.fixture
def config(kafka: KafkaBroker, redis_server: RedisServer) -> Config:
    config = Config(
        kafka_bootstrap=kafka.bootstrap,
        redis={"local:home": redis_server.url},
        topic_prefix=f"{uuid.uuid4().hex}.",
    )
    create_missing_topics(config, [Topic(f"{config.topic_prefix}feedback.t", PARTITIONS)])
    return config


@pytest.fixture
def job(redis: Redis, kafka: KafkaBroker, config: Config) -> Iterator[Answerer]:
    answerer = Answerer(redis, kafka, f"{config.topic_prefix}feedback.t")
    yield answerer
    answerer.close()


def reads(redis: Redis) -> int:
    stats: Any = redis.info("commandstats")
    return int(stats.get("cmdstat_mget", {"calls": 0})["calls"])


def test_a_missing_value_is_asked_for_and_waited_for(
    redis: Redis, config: Config, job: Answerer
) -> None:
    register_table(redis, table("20s"), topic_prefix=config.topic_prefix)
    job.answers["k ü"] = (5, 0.0)
    with Client(config, clock=lambda: NOW_MS + 0.5) as client:
        feature = client.get("t", "k ü")
        assert feature.status == "PRESENT"
        assert feature.version == Version(5, 1)
        assert client.get("t", "k ü").version == Version(5, 1), "fresh now"
    assert job.demands == [("k ü".encode(), {"key": "k ü", "demand": True, "ts": NOW_MS})]


def test_only_what_is_missing_or_stale_is_asked_for(
    redis: Redis, config: Config, job: Answerer
) -> None:
    put(redis, "fresh", 1, MAX_STALENESS_MS)
    put(redis, "stale", 1, MAX_STALENESS_MS + 1)
    grave = pack_tombstone(Version(3, 1), NOW_MS, NOW_MS)
    redis.set(key_name("", "t", "deleted"), grave)
    # A newer version ends the wait also if its own events are old.
    job.answers = {"stale": (2, 10 * MAX_STALENESS_MS), "deleted": (4, 0.0), "missing": (5, 0.0)}
    keys = ["stale", "fresh", "missing", "deleted", "stale"]
    with Client(config, tables=[table("20s")], clock=lambda: NOW_MS) as client:
        batch = client.get_many("t", keys)
        timestamps = [version.timestamp_micros for version in batch.versions if version]
        assert timestamps == [2, 1, 5, 4, 2]
        assert batch.present.all()
    asked = sorted(demand["key"] for _, demand in job.demands)
    assert asked == ["deleted", "missing", "stale"], "once each"


def test_kept_versions_are_read_after_the_wait(redis: Redis, config: Config, job: Answerer) -> None:
    put(redis, "k", 1, 2 * MAX_STALENESS_MS)
    job.answers["k"] = (2, 0.0)
    on_demand = table("20s", keep_versions=2)
    with Client(config, tables=[on_demand], clock=lambda: NOW_MS) as client:
        kept = client.get_versions("t", ["k"])
        assert [batch.versions for batch in kept.versions] == [[Version(2, 1)], [Version(1, 1)]]


def test_without_an_answer_the_reader_takes_what_there_is(redis: Redis, config: Config) -> None:
    put(redis, "stale", 1, 2 * MAX_STALENESS_MS)
    with Client(config, tables=[table("300ms")], clock=lambda: NOW_MS) as client:
        client.get("t", "warm-up: connects")
        before = reads(redis)
        batch = client.get_many("t", ["stale", "missing"])
        assert batch.statuses == ["PRESENT", "MISSING"]
        # 5 + 10 + 20 + 40 ms, then every 50 ms: never in a busy loop.
        assert 1 < reads(redis) - before <= 1 + 4 + 6


def test_who_waited_in_vain_does_not_wait_again_at_once(
    redis: Redis, config: Config, job: Answerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demanding, "PATIENCE", 1e9)
    put(redis, "a", 1, 2 * MAX_STALENESS_MS)
    with Client(config, tables=[table("50ms")], clock=lambda: NOW_MS) as client:
        client.get("t", "a")
        before = reads(redis)
        assert client.get("t", "a").version == Version(1, 1)
        assert reads(redis) == before + 1
        put(redis, "a", 2)
        assert client.get("t", "a").version == Version(2, 1), "a later value comes with a read"

        monkeypatch.setattr(demanding, "PATIENCE", 0)
        client.get("t", "b")
        before = reads(redis)
        client.get("t", "b")
        assert reads(redis) > before + 1, "it was long ago"
        client.feedback("t", "last", "1.1")
    keys = [demand["key"] for _, demand in job.until("last")]
    assert keys.count("a") == 2, "it was asked for each time that it was stale"
    assert keys.count("b") == 2


def test_a_table_without_it_asks_for_nothing(redis: Redis, config: Config, job: Answerer) -> None:
    with Client(config, tables=[table("20s", on_demand=None)]) as client:
        before = reads(redis)
        assert client.get("t", "missing").status == "MISSING"
        assert reads(redis) == before + 1
        client.feedback("t", "last", "1.1")
    assert [demand["key"] for _, demand in job.until("last")] == ["last"]


def test_demands_that_kafka_does_not_take_are_forgotten(
    redis: Redis, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    away = Config(
        kafka_bootstrap=NOWHERE,
        redis=config.redis,
        kafka_properties={"queue.buffering.max.messages": "10", "log_level": "0"},
    )
    with Client(away, tables=[table("50ms")], clock=lambda: NOW_MS) as client:
        assert client.get_many("t", [str(i) for i in range(12)]).statuses == ["MISSING"] * 12
        assert "table 't' is read as it is: the queue" in caplog.text
    # Closing neither waits for demands nor complains about them.
    producer = FeedbackProducer({"bootstrap.servers": NOWHERE, "log_level": "0"})
    producer.demand("t", "k", NOW_MS)
    producer.flush(3600.0)
