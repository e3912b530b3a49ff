"""Regions of a scenario run, each with its own servers, and are reached through links only.

Goal: a client in one region speaks to another's broker and Redis through the link between them and
nothing else; faults do to it what they say, and lose nothing once they are healed.

Method: two regions; a producer in one bootstraps at its link to the other, where a consumer reads.

Fails when: bytes took another way than the link (its counters), a message is missing or doubled
after a cut, a fault did not fire, or a killed server does not come back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from freshet.errors import ConfigError, StackError
from freshet.stack.processes import processes_of_stack
from freshet.wan.faults import FaultScript, fired
from freshet.wan.regions import Regions
from freshet.wan.scenario import Fault, Kind, Server, scenario_from_mapping
from tests.integration.polling import eventually

pytestmark = pytest.mark.integration

HOME, AWAY = "local:home", "local:away"
THERE = f"{HOME}->{AWAY}"
SCENARIO = {
    "regions": [{"name": HOME, "role": "home"}, {"name": AWAY}],
    "links": [
        {"source": HOME, "target": AWAY, "bandwidth_bps": 100e6, "delay_ms": 5, "both_ways": True}
    ],
}
PAYLOAD_BYTES = 10_000


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    """Two regions, linked both ways."""
    with Regions(tmp_path_factory.mktemp("regions"), scenario_from_mapping(SCENARIO)) as running:
        yield running
    assert processes_of_stack(running.id) == []


@contextlib.contextmanager
def closed(consumer: Consumer) -> Iterator[Consumer]:
    try:
        yield consumer
    finally:
        consumer.close()


def read_all(regions: Regions, topic: str, count: int) -> list[int]:
    """Keys of a topic's messages in the region away, read there."""
    settings = {
        "bootstrap.servers": regions[AWAY].bootstrap,
        "group.id": topic,
        "enable.partition.eof": True,
    }
    keys: list[int] = []

    def read() -> bool:
        messages = consumer.consume(1_000, timeout=0.2)
        keys.extend(int(message.key()) for message in messages if not message.error())
        # Up to the end, so that a message too many is seen.
        return bool(messages and messages[-1].error() and len(keys) >= count)

    with closed(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        eventually(read, f"{count} messages of {topic}")
    return keys


def make_topic(regions: Regions, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": regions[AWAY].bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()


def producer_from_home(regions: Regions) -> Producer:
    return Producer(
        {
            "bootstrap.servers": regions.addresses(HOME, AWAY).bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )


def produce(producer: Producer, topic: str, keys: range) -> None:
    for key in keys:
        producer.produce(topic, key=str(key), value=bytes(PAYLOAD_BYTES))
        producer.poll(0)


def test_all_bytes_take_the_link(regions: Regions) -> None:
    make_topic(regions, "linked")
    producer = producer_from_home(regions)
    before = regions.wan.states()
    produce(producer, "linked", range(100))
    assert producer.flush(30) == 0

    state = regions.wan.state(THERE)
    assert read_all(regions, "linked", 100) == list(range(100))
    assert state.forward.bytes_out - before[THERE].forward.bytes_out >= 100 * PAYLOAD_BYTES
    # The other way round the link is another one, which has no traffic.
    assert regions.wan.states()[f"{AWAY}->{HOME}"] == before[f"{AWAY}->{HOME}"]

    # Whoever comes through the link is told to come back through it.
    linked, local = regions.addresses(HOME, AWAY).bootstrap, regions[AWAY].bootstrap
    for bootstrap in (linked, local):
        (broker,) = (
            AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).brokers.values()
        )
        assert f"{broker.host}:{broker.port}" == bootstrap


def test_a_cut_link_delivers_everything_once_it_is_healed(regions: Regions) -> None:
    make_topic(regions, "cut")
    producer = producer_from_home(regions)
    produce(producer, "cut", range(20))
    assert producer.flush(30) == 0

    produce(producer, "cut", range(20, 300))
    with fired(regions, Fault(Kind.CUT, links=(THERE,))) as cut:
        produce(producer, "cut", range(300, 400))
        eventually(lambda: regions.wan.state(THERE).connections.refused, "the producer tries again")
    assert producer.flush(60) == 0

    assert cut.connections_reset >= 1
    assert cut.connections_refused >= 1
    assert read_all(regions, "cut", 400) == list(range(400))


def test_a_script_of_faults_runs_by_its_times(regions: Regions) -> None:
    store = redis.Redis.from_url(regions.addresses(HOME, AWAY).redis_url or "")
    store.set("key", "value")
    script = FaultScript(
        regions,
        [
            Fault(Kind.EMPTY, 1.2, 0.1, region=AWAY, server=Server.REDIS),
            Fault(Kind.STALL, 0.1, 0.9, links=(THERE,)),
            Fault(Kind.SLOW, 0.1, 1, links=(THERE,), delay_ms=30),
            Fault(Kind.RESET, 1, region=AWAY),
        ],
    )
    with script:
        eventually(lambda: script.fired, "the stall")
        with contextlib.suppress(redis.ConnectionError):  # by the reset
            store.get("key")
        script.wait(30)

    assert [each.fault.kind for each in script.fired] == [
        Kind.STALL,
        Kind.SLOW,
        Kind.RESET,
        Kind.EMPTY,
    ]
    stall, _, reset, _ = script.fired
    assert stall.bytes_held > 0
    for each in script.fired:
        assert each.started_s - script.started_s >= each.fault.start_s
        assert each.healed_s is not None
        assert each.healed_s - script.started_s >= each.fault.end_s
    assert reset.connections_reset >= 1
    assert regions.wan.state(THERE).stalled == set()
    assert store.get("key") is None  # over the link: the server is back, and knows nothing


def test_mistakes_are_told(regions: Regions) -> None:
    with pytest.raises(StackError, match=f"no link {HOME}->{HOME}; it has .*{THERE}"):
        regions.addresses(HOME, HOME)
    with pytest.raises(StackError, match="no region local:nowhere, only local:home, local:away"):
        regions.kill("local:nowhere", Server.BROKER)
    with (
        pytest.raises(ConfigError, match=r"no link 'x'"),
        fired(regions, Fault(Kind.CUT, links=("x",))),
    ):
        pass
