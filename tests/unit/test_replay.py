"""Goal: a replay sends each reading once, in order of time, and says how far event time is.

Method: real files and a real Kafka; each partition is read back in order with a plain consumer.
"""

from __future__ import annotations

import gzip
import json
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition
from redis import Redis
from typer.testing import CliRunner

from freshet import Aggregate, Config, FeatureTable, Points, Source, Version
from freshet.cli.main import app
from freshet.replay import (
    HEARTBEAT_HEADER,
    EventReplayer,
    Pace,
    ReplayError,
    load_recording,
    parse_time_ms,
    replay,
)
from freshet.stack.kafka import KafkaBroker
from freshet.stack.redis import RedisServer
from freshet.store.layout import key_name, pack_value
from freshet.store.registry import register_table
from freshet.store.writing import write_if_newer
from freshet.topics import create_missing_topics, topics_of_table

STEP_MS = 300_000
BEGIN_MS = 1_700_000_100_000 // STEP_MS * STEP_MS
PARTITIONS = 3
DEADLINE_S = 30.0


@pytest.fixture
def recording_file(tmp_path: Path) -> Path:
    """Six steps of two series, one reading missing."""
    values = np.arange(12, dtype=np.float32).reshape(6, 2)
    values[2, 1] = np.nan
    path = tmp_path / "readings.npz"
    np.savez(path, values=values, ids=["a", 'b "quoted"'], step_seconds=STEP_MS // 1000)
    return path


def test_npz(recording_file: Path) -> None:
    recording = load_recording(str(recording_file), start_ms=BEGIN_MS)
    assert recording.ids == ["a", 'b "quoted"']
    assert len(recording) == 11
    assert recording.timestamps.tolist() == sorted(recording.timestamps)
    assert list(recording.values[:3]) == [0.0, 1.0, 2.0]
    assert recording.timestamps[-1] == BEGIN_MS + 5 * STEP_MS


def test_an_npz_without_a_start_ends_now(recording_file: Path) -> None:
    recording = load_recording(str(recording_file))
    assert 0 <= time.time() * 1000 - recording.timestamps[-1] < 2 * STEP_MS


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "readings.csv.gz"
    rows = "series,timestamp,value\nb,2024-01-01T00:00:01Z,2\na,1704067200000,1.5\n\n"
    path.write_bytes(gzip.compress(rows.encode()))
    recording = load_recording(str(path))
    assert [recording.ids[i] for i in recording.series] == ["a", "b"]
    assert recording.timestamps.tolist() == [1704067200000, 1704067201000]
    assert list(recording.values) == [1.5, 2.0]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.csv", b"a,1,2\nb,then,3\n", "line 2: 'then' is no time"),
        ("x.csv", b"a,1,much\n", "line 1: could not convert"),
        ("x.csv", b"a,1\n", "line 1: .*a line is series,timestamp,value"),
        ("x.npz", b"no zip", "is no recording"),
        ("x.parquet", b"", "neither .npz nor .csv"),
    ],
)
def test_files_that_are_no_recording(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ReplayError, match=problem):
        load_recording(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"missing\.csv can't be read"):
        load_recording(str(tmp_path / "missing.csv"))


def test_between_and_steps(recording_file: Path) -> None:
    recording = load_recording(str(recording_file), start_ms=BEGIN_MS)
    part = recording.between(BEGIN_MS + STEP_MS, BEGIN_MS + 3 * STEP_MS)
    assert part.timestamps.tolist() == [BEGIN_MS + STEP_MS] * 2 + [BEGIN_MS + 2 * STEP_MS]
    assert len(recording.between(BEGIN_MS + 3 * STEP_MS, BEGIN_MS)) == 0
    steps = list(recording.steps(2 * STEP_MS))
    assert sum(len(step) for _, step in steps) == len(recording)
    for end_ms, step in steps:
        assert end_ms % (2 * STEP_MS) == 0
        assert all(end_ms - 2 * STEP_MS < t <= end_ms for t in step.timestamps)
    assert list(recording.between(0, 1).steps(STEP_MS)) == []


def test_times() -> None:
    assert parse_time_ms("1704067200000") == 1704067200000
    assert parse_time_ms("2024-01-01") == 1704067200000
    assert parse_time_ms("2024-01-01T01:00:00+01:00") == 1704067200000
    with pytest.raises(ValueError, match="is no time"):
        parse_time_ms("yesterday")


def test_pace_follows_event_time() -> None:
    pace, started = Pace(speed_up=1000), time.monotonic()
    for event_time_ms in (5_000_000, 5_100_000, 5_200_000):
        pace.wait_until(event_time_ms)
    assert time.monotonic() - started >= 0.2
    with pytest.raises(ValueError, match="speed-up"):
        Pace(-1)


# With Kafka


def read_partitions(broker: KafkaBroker, topic: str) -> list[list[Any]]:
    """Each partition's records: events as dicts, heartbeats as numbers, in order."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": uuid.uuid4().hex})
    partitions: list[list[Any]] = []
    for partition in range(PARTITIONS):
        place = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=DEADLINE_S)
        consumer.assign([place])
        records: list[Any] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(records) < end and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.headers() and message.headers()[0][0] == HEARTBEAT_HEADER:
                assert message.key() is None
                assert message.value() is None
                records.append(message.timestamp()[1])
            else:
                event = json.loads(message.value())
                assert message.key() == event["name"].encode()
                records.append(event)
        assert len(records) == end
        partitions.append(records)
    consumer.close()
    return partitions


@pytest.fixture
def config(kafka: KafkaBroker, redis_server: RedisServer) -> Config:
    return Config(
        kafka_bootstrap=kafka.bootstrap,
        redis={"local:home": redis_server.url},
        topic_prefix=f"{uuid.uuid4().hex}.",
        store_prefix=f"{uuid.uuid4().hex}:",
    )


@pytest.fixture
def replayed_table(config: Config, redis_server: RedisServer) -> FeatureTable:
    table = FeatureTable(
        name="replayed",
        function=Aggregate(),
        window=Points(3),
        source=Source(topic="readings", key="name", timestamp="at", value="cpu"),
    )
    definition = table.to_dict(topic_prefix=config.topic_prefix)
    create_missing_topics(config, topics_of_table(definition, PARTITIONS))
    with Redis.from_url(redis_server.url) as redis:
        register_table(
            redis, table, store_prefix=config.store_prefix, topic_prefix=config.topic_prefix
        )
    return table


def check_replayed(partitions: list[list[Any]], expected_events: int, ends: list[int]) -> None:
    events = []
    for records in partitions:
        assert [r for r in records if isinstance(r, int)] == ends, "a heartbeat in each partition"
        event_time = 0
        for record in records:
            if isinstance(record, int):
                event_time = record
            else:
                assert record["at"] > event_time, "an event after the heartbeat that ruled it out"
                events.append((record["at"], record["name"], record["cpu"]))
    assert len(events) == len(set(events)) == expected_events


@pytest.mark.integration
def test_replay_sends_each_reading_once_and_heartbeats(
    kafka: KafkaBroker, config: Config, replayed_table: FeatureTable, recording_file: Path
) -> None:
    recording = load_recording(str(recording_file), start_ms=BEGIN_MS)
    definition = replayed_table.to_dict(topic_prefix=config.topic_prefix)
    replayer = EventReplayer(config, definition, recording.ids)
    summary = replay(recording, replayer, step_ms=STEP_MS)
    ends = [BEGIN_MS + i * STEP_MS for i in range(6)]
    assert (summary.events, summary.first_ms, summary.last_ms) == (11, ends[0], ends[-1])
    check_replayed(read_partitions(kafka, definition["source"]["topic"]), 11, ends)
    assert read_partitions(kafka, definition["feedback_topic"]) == [ends] * PARTITIONS


@pytest.mark.integration
def test_blocks_of_readings(
    kafka: KafkaBroker, config: Config, replayed_table: FeatureTable
) -> None:
    definition = replayed_table.to_dict(topic_prefix=config.topic_prefix)
    replayer = EventReplayer(config, definition, ["a", "b", "c"], feedback_topics=())
    block = np.arange(12.0).reshape(4, 3)
    block[0, 0] = np.nan
    assert replayer.produce_step(block, np.arange(4) + BEGIN_MS) == 11
    replayer.heartbeat(BEGIN_MS + 3)
    replayer.flush()
    check_replayed(read_partitions(kafka, definition["source"]["topic"]), 11, [BEGIN_MS + 3])
    with pytest.raises(ValueError, match="values have the shape"):
        replayer.produce_step(block, [1, 2])


@pytest.mark.integration
def test_a_missing_topic_is_named(config: Config) -> None:
    table = FeatureTable(name="nowhere", function=Aggregate(), window=Points(3))
    with pytest.raises(ReplayError, match=r"events\.nowhere.*submit the table first"):
        EventReplayer(config, table.to_dict(topic_prefix=config.topic_prefix), ["a"])


# The commands


@pytest.fixture
def environment(config: Config, tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "config.yaml"
    config.write(path)
    return {"FRESHET_CONFIG": str(path)}


def run(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"], env=environment)
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.mark.integration
def test_the_replay_command(
    kafka: KafkaBroker,
    config: Config,
    environment: dict[str, str],
    replayed_table: FeatureTable,
    recording_file: Path,
) -> None:
    begin, until = BEGIN_MS + STEP_MS, BEGIN_MS + 5 * STEP_MS
    arguments = ["--data", str(recording_file), "--start", str(BEGIN_MS), "--step", "5m"]
    limits = ["--from", str(begin), "--until", str(until), "--speed-up", "100000"]
    summary = run(environment, "replay", "replayed", *arguments, *limits)
    assert summary["events"] == 7
    topic = f"{config.topic_prefix}readings"
    assert summary["topic"] == topic
    check_replayed(read_partitions(kafka, topic), 7, [begin + i * STEP_MS for i in range(4)])


@pytest.mark.integration
def test_the_get_and_feedback_commands(
    kafka: KafkaBroker,
    config: Config,
    environment: dict[str, str],
    replayed_table: FeatureTable,
    redis_server: RedisServer,
) -> None:
    value = pack_value({"raw": b"\x00", "n": 1}, Version(7, 1), 1_000, 2_000)
    with Redis.from_url(redis_server.url) as redis:
        redis.set(key_name(config.store_prefix, "replayed", "tree"), value)
        vector = pack_value([1.5, 2.0], Version(8, 1), 1_000, 2_000)
        redis.set(key_name(config.store_prefix, "replayed", "vector"), vector)
    found = run(environment, "get", "replayed", "tree", "vector", "none")
    tree, vector_shown, none = found["features"]
    assert tree["value"] == {"raw": {"base64": "AA=="}, "n": 1}
    assert tree["version"] == "7.1"
    assert vector_shown["value"] == [1.5, 2.0]
    assert vector_shown["staleness_ms"] > 0
    assert (none["status"], none["value"], none["version"]) == ("MISSING", None, None)
    text = CliRunner().invoke(app, ["get", "replayed", "vector", "none"], env=environment)
    assert "PRESENT" in text.stdout
    assert "MISSING" in text.stdout

    arguments = ["--version", "8.1", "--error", "0.5", "--kept-error", "0.7", "--kept-error", "0.5"]
    sent = run(environment, "feedback", "replayed", "vector", *arguments)
    assert (sent["error"], sent["errors"]) == (0.5, [0.7, 0.5])
    consumer_topic = f"{config.topic_prefix}feedback.replayed"
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([consumer_topic])
    deadline, message = time.monotonic() + DEADLINE_S, None
    while message is None and time.monotonic() < deadline:
        message = consumer.poll(0.1)
    consumer.close()
    assert message is not None
    body = json.loads(message.value())
    assert (body["version"], body["error"], body["errors"]) == ("8.1", 0.5, [0.7, 0.5])


@pytest.mark.integration
def test_the_get_command_shows_every_kept_version(
    config: Config,
    environment: dict[str, str],
    replayed_table: FeatureTable,
    redis_server: RedisServer,
) -> None:
    name = key_name(config.store_prefix, "replayed", "kept")
    writes = [(name, pack_value([n], Version(n, 1), n, n)) for n in (5, 7, 6)]
    with Redis.from_url(redis_server.url) as redis:
        write_if_newer(redis, writes, keep_versions=2)
    newest = run(environment, "get", "replayed", "kept", "none")["features"]
    assert [feature["version"] for feature in newest] == ["7.1", None]
    every = run(environment, "get", "replayed", "none", "kept", "--all-versions")["features"]
    assert [(feature["key"], feature["version"], feature["value"]) for feature in every] == [
        ("none", None, None),
        ("kept", "7.1", [7.0]),
        ("kept", "6.1", [6.0]),
    ]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["feedback", "t", "k", "--version", "8"], "version '8' is not"),
        (["feedback", "t", "k", "--version", "8.1", "--error=-1"], "0 or more"),
        (["replay", "unknown", "--data", "x.csv"], "table 'unknown' is not known"),
        (["replay", "t", "--data", "x.csv", "--step", "often"], "'often' is no duration"),
        (["get", "t", "k", "--region", "aws:mars"], "'aws:mars' has no Redis"),
    ],
)
def test_commands_fail_with_one_clear_line(
    environment: dict[str, str], arguments: list[str], problem: str
) -> None:
    result = CliRunner().invoke(app, arguments, env=environment)
    assert result.exit_code == 1, result.output
    assert problem in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
