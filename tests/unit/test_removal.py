"""Goal: a table is dropped only once its feature job has ended, which Flink says, or the caller.

Method: the command, with a real Kafka and Redis and no Flink; change events stand in the topic as a
feature job would have written them. That deletes get to all regions is tested with jobs, in
tests/integration/multicast/test_removal.py.
"""

from __future__ import annotations

import json
import struct
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from redis import Redis
from typer.testing import CliRunner

from freshet import Aggregate, Config, FeatureTable, Points, Version, avro
from freshet.cli.main import app
from freshet.errors import StackError
from freshet.stack.kafka import KafkaBroker
from freshet.stack.redis import RedisServer
from freshet.store.layout import key_name, pack_value, unpack
from freshet.store.registry import register_table, registered_names
from freshet.topics import create_missing_topics, topics_of_table

pytestmark = pytest.mark.integration

KEYS = ("a", "b", "c")
ORIGIN = 7
DEADLINE_S = 30.0


@pytest.fixture
def config(kafka: KafkaBroker, redis_server: RedisServer) -> Config:
    """A deployment without Flink, whose table has a few keys."""
    prefix = f"{uuid.uuid4().hex}."
    config = Config(
        kafka_bootstrap=kafka.bootstrap,
        redis={"local:home": redis_server.url},
        topic_prefix=prefix,
        store_prefix=prefix,
    )
    table = FeatureTable(name="t", function=Aggregate(), window=Points(4))
    topics = topics_of_table(table.to_dict(topic_prefix=prefix))
    create_missing_topics(config, topics)
    redis = Redis.from_url(redis_server.url)
    register_table(redis, table, store_prefix=prefix, topic_prefix=prefix)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, key in enumerate(KEYS, 1):
        version = Version(number, ORIGIN)
        redis.set(key_name(prefix, "t", key), pack_value([1.0], version, 1, 2))
        producer.produce(f"{prefix}changes.t", change(key, version), key.encode())
    assert producer.flush(DEADLINE_S) == 0
    return config


def change(key: str, version: Version) -> bytes:
    """A change event as a feature job writes it."""
    record = {
        "table": "t",
        "key": key,
        "version_timestamp": version.timestamp_micros,
        "version_origin": version.origin,
        "event_time": 1,
        "computed_at": 2,
        "operation": "UPSERT",
        "encoding": "FLOAT32_VECTOR",
        "value": struct.pack("<f", 1.0),
        "regret_removed": 0.0,
    }
    return avro.encode("FeatureChange", record)


def test_without_flink_the_caller_says_that_the_job_has_ended(
    config: Config, redis_server: RedisServer, tmp_path: Path
) -> None:
    file = tmp_path / "freshet.yaml"
    config.write(file)
    redis = Redis.from_url(redis_server.url)
    command = ["drop", "t", "--yes", "--json", "--config", str(file)]

    refused = CliRunner().invoke(app, command, env={"FRESHET_DEBUG": "1"})
    assert isinstance(refused.exception, StackError)
    assert "--job-has-ended" in str(refused.exception)
    assert "table t" in str(refused.exception)
    assert registered_names(redis, store_prefix=config.store_prefix) == ["t"]

    dropped = CliRunner().invoke(app, [*command, "--job-has-ended"])
    assert dropped.exit_code == 0, dropped.output
    assert json.loads(dropped.stdout) == {"table": "t", "keys": 3, "deleted_before": 0}
    assert registered_names(redis, store_prefix=config.store_prefix) == []
    for key in KEYS:
        raw = redis.get(key_name(config.store_prefix, "t", key))
        assert isinstance(raw, bytes)
        assert unpack(raw).tombstone
