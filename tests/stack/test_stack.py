"""The stack starts real servers, and leaves no process behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import redis
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from freshet.errors import StackError
from freshet.stack import KafkaOptions, RedisOptions, Stack, StackOptions
from freshet.stack.kafka import KafkaBroker
from freshet.stack.processes import ProcessIdentity, processes_of_stack
from freshet.stack.redis import RedisServer
from freshet.topics import Topic, create_missing_topics
from tests.stack.waiting import wait_for

pytestmark = pytest.mark.integration

REGIONS = ("local:home", "local:away")


def test_stopping_leaves_no_process_and_no_data(tmp_path: Path) -> None:
    with Stack(tmp_path, StackOptions(regions=REGIONS, flink=None)) as stack:
        servers = [stack.kafka.process, *(server.process for server in stack.redis.values())]
        pids = stack.pids()
        assert {server.pid for server in servers if server} < set(pids)
        identities = [ProcessIdentity.of(pid) for pid in pids]
        assert [redis.Redis.from_url(stack.redis[name].url).ping() for name in REGIONS]

    assert processes_of_stack(stack.id) == []
    assert not any(identity.is_alive() for identity in identities if identity)
    assert not (tmp_path / "data").exists()
    assert (tmp_path / "logs" / "kafka.log").stat().st_size > 0


def test_a_server_that_does_not_start_takes_the_others_with_it(tmp_path: Path) -> None:
    kafka = KafkaOptions(settings={"num.io.threads": "none"})
    stack = Stack(tmp_path, StackOptions(kafka=kafka, flink=None))

    with pytest.raises(StackError, match=r"(?s)Kafka.*num\.io\.threads"):
        stack.start()

    assert stack.pids() == []


def test_a_missing_server_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESHET_SERVERS", str(tmp_path / "absent"))
    stack = Stack(tmp_path, StackOptions(flink=None))
    with pytest.raises(StackError, match="make setup"):
        stack.start()
    assert stack.pids() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_owner_that_is_ended_takes_its_stack_along(tmp_path: Path, number: int) -> None:
    script = """
        import sys, time
        from pathlib import Path
        from freshet.stack import Stack, StackOptions
        from freshet.stack.signals import exit_on_signals
        stack = Stack(Path(sys.argv[1]), StackOptions(kafka=None, flink=None))
        with exit_on_signals(), stack:
            print(stack.id, flush=True)
            time.sleep(600)
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert owner.stdout is not None
    stack_id = owner.stdout.readline().strip()
    assert processes_of_stack(stack_id), "the stack runs before its owner is ended"

    owner.send_signal(number)
    owner.communicate(timeout=60)

    assert owner.returncode != 0
    wait_for(lambda: not processes_of_stack(stack_id), "the stack is gone")


def test_an_interrupted_start_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while Kafka formats its storage, the phase when it has no broker process yet."""
    stack = Stack(tmp_path, StackOptions(flink=None))

    def interrupt() -> None:
        wait_for(lambda: (tmp_path / "logs" / "kafka-format.out").exists(), "Kafka formats")
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        stack.start()
    interrupter.join()

    # A thread that was between two processes must not start the second one now.
    until = time.monotonic() + 3
    wait_for(lambda: time.monotonic() > until or stack.pids(), "a late process or the end")
    assert stack.pids() == []


def test_two_stacks_run_side_by_side(tmp_path: Path, redis_server: RedisServer) -> None:
    with Stack(tmp_path, StackOptions(kafka=None, flink=None)) as other:
        assert other.home_redis.port != redis_server.port
        redis.Redis.from_url(other.home_redis.url).set("side", 1)
        assert redis.Redis.from_url(redis_server.url).get("side") is None


def test_redis_comes_back_with_its_data_or_empty(tmp_path: Path) -> None:
    with Stack(tmp_path, StackOptions(kafka=None, flink=None)) as stack:
        server = stack.home_redis
        client = redis.Redis.from_url(server.url)
        client.set("key", "value")
        first = server.pid

        server.kill()
        assert server.pid is None
        with pytest.raises(redis.ConnectionError):
            redis.Redis.from_url(server.url).ping()
        server.restart(keep_data=True)
        assert server.pid not in (None, first)
        assert redis.Redis.from_url(server.url).get("key") == b"value"

        server.kill()
        server.restart(keep_data=False)
        assert redis.Redis.from_url(server.url).get("key") is None


def test_redis_without_persistence_refuses_to_promise_its_data(tmp_path: Path) -> None:
    options = StackOptions(redis=RedisOptions(persistent=False), kafka=None, flink=None)
    with Stack(tmp_path, options) as stack:
        with pytest.raises(StackError, match="persistent=True"):
            stack.home_redis.restart(keep_data=True)
        stack.home_redis.restart(keep_data=False)
        assert redis.Redis.from_url(stack.home_redis.url).ping()


def test_kafka_comes_back_with_its_data_or_empty(tmp_path: Path) -> None:
    with Stack(tmp_path, StackOptions(regions=(), flink=None)) as stack:
        broker = stack.kafka
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("events", num_partitions=1)])["events"].result(timeout=30)
        produce(broker, "events", b"first")

        broker.kill()
        assert broker.pid is None
        broker.restart(keep_data=True)
        assert consume(broker, "events") == b"first"

        broker.restart(keep_data=False)
        assert "events" not in topics(broker)


def test_kafka_keeps_records_of_long_ago_and_of_the_future(kafka: KafkaBroker) -> None:
    """Replayed history and heartbeats carry event time, far from the broker's own clock."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("history", num_partitions=1)])["history"].result(timeout=30)
    for timestamp_ms in (1_000_000_000_000, 4_000_000_000_000):
        produce(kafka, "history", str(timestamp_ms).encode(), timestamp_ms)
    assert consume(kafka, "history") == b"1000000000000"


def test_a_mistyped_topic_is_not_created(kafka: KafkaBroker) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "message.timeout.ms": 5_000})
    producer.produce("evnts", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert errors and errors[0] is not None
    assert "evnts" not in topics(kafka)


def test_missing_topics_are_created_and_existing_ones_left_alone(kafka: KafkaBroker) -> None:
    from freshet.config import Config

    config = Config(kafka_bootstrap=kafka.bootstrap, redis={"local:home": "redis://127.0.0.1:1"})
    wanted = [Topic("made-a", 3), Topic("made-b", 1, {"cleanup.policy": "compact"})]
    assert sorted(create_missing_topics(config, wanted)) == ["made-a", "made-b"]
    assert create_missing_topics(config, [Topic("made-a", 9), *wanted]) == []

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    metadata = admin.list_topics(timeout=30).topics
    assert len(metadata["made-a"].partitions) == 3
    assert len(metadata["made-b"].partitions) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (StackOptions(regions=("a:b", "a:b")), "named twice"),
        (StackOptions(regions=("home",)), "provider:region"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, options: StackOptions, message: str
) -> None:
    with pytest.raises(StackError, match=message):
        Stack(tmp_path, options)


def produce(broker: KafkaBroker, topic: str, value: bytes, timestamp_ms: int = 0) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(
        topic, value, timestamp=timestamp_ms, on_delivery=lambda error, _: errors.append(error)
    )
    producer.flush(30)
    assert errors == [None]


def consume(broker: KafkaBroker, topic: str) -> bytes | None:
    """Value of the first record."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"test-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        return message.value()
    finally:
        consumer.close()


def topics(broker: KafkaBroker) -> set[str]:
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    return set(client.list_topics(timeout=30).topics)
