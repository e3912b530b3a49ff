"""Real servers for tests, on loopback and free ports; each is ended with the test session.

A test that needs them is marked ``integration``. None of them is a stand-in.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from freshet.stack import FlinkOptions, KafkaOptions, Stack, StackOptions
from freshet.stack.kafka import KafkaBroker
from freshet.stack.redis import RedisServer

# A shell starts what runs in its background with interrupts ignored, and so would every command
# under test; tests send them interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Kafka, one Redis and a Flink cluster with two TaskManagers (one slot each).

    Shared by the whole session: a test cancels its jobs, uses topics and tables of its own, and
    brings back what it killed.
    """
    flink = FlinkOptions(
        task_managers=2,
        checkpoint_interval_ms=1_000,
        short_lived=True,
        # Flink's REST API tells metrics that are at most so old; the default is 10 s.
        settings={"metrics.fetcher.update-interval": "1000"},
    )
    options = StackOptions(kafka=KafkaOptions(short_lived=True), flink=flink)
    with Stack(tmp_path_factory.mktemp("stack"), options) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A Kafka broker alone."""
    options = StackOptions(regions=(), kafka=KafkaOptions(short_lived=True), flink=None)
    with Stack(tmp_path_factory.mktemp("kafka"), options) as running:
        yield running.kafka


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis server alone; tests use keys of their own."""
    options = StackOptions(kafka=None, flink=None)
    with Stack(tmp_path_factory.mktemp("redis"), options) as running:
        yield running.home_redis
