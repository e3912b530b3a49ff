"""What a snapshot says of Kafka and Redis, while they are there and while they are not.

Goal: figures are those of the servers, only what is new is read, and what is away is told and comes
back by itself.

Method: a reader of a real broker and a real Redis; the broker is halted and goes on.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from freshet import avro
from freshet.config import Config
from freshet.stack.kafka import KafkaBroker
from freshet.stack.redis import RedisServer
from freshet.status.following import Following
from freshet.status.reader import StatusReader
from freshet.status.snapshot import Snapshot, TableStatus
from freshet.store.connection import connect
from freshet.store.registry import register_table, unregister_table
from freshet.topic_reading import TopicTail
from tests.stack.waiting import wait_for
from tests.unit.multicast.reports import region_report
from tests.unit.status.snapshots import HOSTILE
from tests.unit.test_client import table as definition

pytestmark = pytest.mark.integration

PREFIX = "status."
HOME, AWAY = "local:home", "local:away"


class Deployment:
    """Topics and a store, as jobs fill them."""

    def __init__(self, kafka: KafkaBroker, redis: RedisServer) -> None:
        self.kafka = kafka
        self.config = Config.from_dict(
            {
                "kafka_bootstrap": kafka.bootstrap,
                "redis": {HOME: redis.url},
                "home_region": HOME,
                "topic_prefix": PREFIX,
                "store_prefix": PREFIX,
            }
        )
        self.table = definition()
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def create(self, topic: str, partitions: int = 1) -> None:
        client = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        name = f"{PREFIX}{topic}"
        client.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
        wait_for(lambda: client.list_topics(name, 10).topics[name].partitions, f"{name} is there")

    def delete(self, topic: str) -> None:
        client = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        name = f"{PREFIX}{topic}"
        client.delete_topics([name])[name].result(30)
        wait_for(lambda: not client.list_topics(name, 10).topics[name].partitions, "it is gone")

    def send(self, topic: str, *values: bytes) -> None:
        for value in values:
            self._producer.produce(f"{PREFIX}{topic}", value)
        assert self._producer.flush(60) == 0

    def of(self, snapshot: Snapshot, name: str) -> TableStatus:
        return next(table for table in snapshot.tables if table.table == name)


@pytest.fixture
def deployment(kafka: KafkaBroker, redis_server: RedisServer) -> Iterator[Deployment]:
    """One registered table, and empty topics."""
    made = Deployment(kafka, redis_server)
    topics = ("progress", f"changes.{made.table.name}", f"dead-letters.{made.table.name}")
    for topic in topics:
        made.create(topic)
    redis = connect(made.config)
    register_table(redis, made.table, store_prefix=PREFIX, topic_prefix=PREFIX)
    try:
        yield made
    finally:
        unregister_table(redis, made.table.name, store_prefix=PREFIX)
        redis.close()
        for topic in topics:
            made.delete(topic)


def report(**fields: Any) -> bytes:
    return region_report(AWAY, time.time_ns() // 1_000_000, **fields)


def progress(table: str) -> bytes:
    values = {"region": HOME, "table": table, "subtask": 0, "parallelism": 1, "watermark": 0}
    return avro.encode("Progress", values | {"reported_at": 0, "writes": 0})


def test_a_tail_has_each_record_once_and_begins_anew_with_a_topic(deployment: Deployment) -> None:
    name = f"{PREFIX}tail"
    tail = TopicTail({"bootstrap.servers": deployment.kafka.bootstrap}, name)

    def read() -> list[bytes | None]:
        return [message.value() for message in tail.new()]

    assert read() == [], "there is no such topic"
    deployment.create("tail")
    assert read() == []
    deployment.send("tail", b"a", b"b")
    assert read() == [b"a", b"b"]
    assert read() == []
    deployment.send("tail", *[b"c"] * 3_000)
    assert read() == [b"c"] * 3_000
    deployment.delete("tail")
    deployment.create("tail")
    deployment.send("tail", b"d")
    wait_for(lambda: b"d" in read(), "the new topic is read")
    tail.close()


def test_figures_are_those_of_the_servers(deployment: Deployment) -> None:
    name = deployment.table.name
    with StatusReader(deployment.config) as reader:
        first = reader.snapshot(30)
        assert first.problems == []
        table = deployment.of(first, name)
        assert (table.policy, table.changes, table.dead_letters) == (deployment.table.policy, 0, 0)
        assert table.slo_ms == deployment.table.to_dict()["freshness_slo_ms"]
        assert (table.updates_per_s, table.keys) == (None, None)
        assert first.regions == ()

        deployment.send(f"changes.{name}", *[b"x"] * 50)
        deployment.send(f"dead-letters.{name}", b"x", b"x")
        delay = {"count": 1, "p50_ms": 5.0, "p99_ms": 7.0, "max_ms": 7.0}
        deployment.send("progress", report(table=name, applied=3, delay=delay), progress(HOSTILE))
        second = reader.snapshot(30)
        assert second.problems == []
        table = deployment.of(second, name)
        assert (table.changes, table.dead_letters) == (50, 2)
        assert table.updates_per_s is not None
        assert table.updates_per_s > 0
        (region,) = second.regions
        assert (region.region, region.applied, region.delay_p99_ms) == (AWAY, 3, 7.0)
        assert region.meets_slo
        assert deployment.of(second, HOSTILE).changes is None, "brokers have no such topic"

        deployment.send("progress", report(table=name, applied=9))
        assert reader.snapshot(30).regions[0].applied == 9


def test_a_broker_that_is_away_is_told_and_read_again_when_it_is_back(
    deployment: Deployment,
) -> None:
    name, pid = deployment.table.name, deployment.kafka.pid
    assert pid is not None
    with Following(lambda: deployment.config) as following:
        wait_for(lambda: not following.snapshot().problems, "both are read")
        os.kill(pid, signal.SIGSTOP)
        try:
            (problem,) = following.snapshot().problems
            assert problem.startswith("Kafka: no answer for")
            assert deployment.of(following.snapshot(), name).policy, "Redis is read on"
            wait_for(
                lambda: "cannot be read from Kafka" in following.snapshot().problems[0],
                "it is given up",
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        deployment.send(f"changes.{name}", b"x")
        wait_for(
            lambda: (
                not (seen := following.snapshot()).problems
                and deployment.of(seen, name).changes == 1
            ),
            "it is read again",
        )


def test_top_on_a_terminal_shows_and_sorts_until_it_is_quit(
    deployment: Deployment, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    deployment.config.write(file)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "freshet.cli.main", "top", "--interval", "0.2"],
        env={**os.environ, "FRESHET_CONFIG": str(file), "TERM": "xterm", "COLUMNS": "90"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    shown = b""

    def has(text: bytes) -> bool:
        nonlocal shown
        with contextlib.suppress(OSError):  # nobody has the other end any more
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 1 << 16)
        return text in shown

    try:
        wait_for(lambda: has(b"(worst first)") and has(b"freshet top - "), "the view is there")
        assert b"\x1b[?1049h" in shown, "the terminal's other screen is used"
        os.write(ours, b"s")
        wait_for(lambda: has(b"(name)"), "it is sorted by something else")
        os.write(ours, b"q")
        wait_for(lambda: has(b"\x1b[?1049l"), "the terminal is given back")
        assert process.wait(30) == 0
    finally:
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read().strip() in (b"", b"Asking the servers ...")
        os.close(ours)


def test_a_stack_that_is_started_anew_is_found(
    deployment: Deployment, redis_server: RedisServer
) -> None:
    """Its new configuration has other ports than the one that the watching began with."""
    gone = Config.from_dict(
        {
            "kafka_bootstrap": deployment.kafka.bootstrap,
            "redis": {HOME: "redis://127.0.0.1:1/0"},
            "home_region": HOME,
            "topic_prefix": PREFIX,
        }
    )
    configs = [gone, gone]
    with Following(lambda: configs.pop(0) if configs else deployment.config) as following:
        (problem,) = following.snapshot().problems
        assert problem.startswith(f"Redis of {HOME}: ")
        wait_for(lambda: not following.snapshot().problems, "the new one is read")
