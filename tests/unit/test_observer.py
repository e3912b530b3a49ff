"""Goal: the observer counts what the jobs say once, and knows when a step is done.

Method: the records that a job would write are produced to a real Kafka.
"""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from freshet import Aggregate, Config, FeatureTable, Points
from freshet.avro import encode
from freshet.errors import FreshetError
from freshet.observer import Observer, ProductionLog, percentiles_ms
from freshet.stack.kafka import KafkaBroker
from freshet.topics import create_missing_topics, topics_of_table

DEADLINE_S = 60.0
EVENT_TIME_MS = 1_000_000


def make_table(name: str, kafka: KafkaBroker) -> tuple[Config, FeatureTable]:
    table = FeatureTable(name=name, function=Aggregate(), window=Points(4))
    config = Config(kafka_bootstrap=kafka.bootstrap, redis={"local:home": "redis://127.0.0.1:1"})
    create_missing_topics(config, topics_of_table(table.to_dict()))
    return config, table


def change(table: str, key: str, micros: int, event_time_ms: int = EVENT_TIME_MS) -> bytes:
    record = {
        "table": table,
        "key": key,
        "version_timestamp": micros,
        "version_origin": 1,
        "event_time": event_time_ms,
        "computed_at": 1,
        "operation": "UPSERT",
        "encoding": "NONE",
        "value": b"",
        "regret_removed": 0.0,
    }
    return encode("FeatureChange", record)


def progress(table: str, subtask: int, watermark: int, parallelism: int = 1) -> bytes:
    record = {
        "region": "local:home",
        "table": table,
        "subtask": subtask,
        "parallelism": parallelism,
        "watermark": watermark,
        "reported_at": 1,
        "writes": 1,
    }
    return encode("Progress", record)


def dead_letter(table: str) -> bytes:
    record = {
        "table": table,
        "stage": "EVENT",
        "reason": "the value is not JSON",
        "topic": f"events.{table}",
        "partition": 0,
        "offset": 7,
        "key": b"a",
        "value": b"{",
        "event_time": -1,
        "stack": None,
    }
    return encode("DeadLetter", record)


@pytest.mark.integration
def test_changes_are_counted_once_and_timed(kafka: KafkaBroker) -> None:
    config, table = make_table("observed_changes", kafka)
    production = ProductionLog()
    production.produced(EVENT_TIME_MS, time.time() - 2.0)
    producer = Producer(config.kafka_client_properties())
    topic = "changes.observed_changes"
    for key, micros in (("a", 10), ("a", 20), ("a", 20), ("b", 10), ("a", 10), ("a", 30)):
        producer.produce(topic, key=key, value=change(table.name, key, micros))
    # An event time that was never produced cannot be timed, and is counted all the same.
    producer.produce(topic, key="b", value=change(table.name, "b", 40, event_time_ms=5))
    producer.flush(DEADLINE_S)
    with Observer(config, [table], production) as observer:
        stored = {table.name: {"a": (30, 1), "b": (40, 1)}}
        assert observer.wait_for_changes(stored, DEADLINE_S)
        assert not observer.wait_for_changes({table.name: {"a": (31, 1)}}, 0.1)
    watch = observer.tables[table.name]
    assert watch.changes == 5
    assert watch.updates == {"a": 3, "b": 2}
    assert watch.newest == stored[table.name]
    assert len(watch.initial_freshness_ms) == 2
    assert len(watch.freshness_ms) == 2
    samples = watch.initial_freshness_ms + watch.freshness_ms
    assert all(2_000 <= sample < 2_000 + DEADLINE_S * 1_000 for sample in samples)


@pytest.mark.integration
def test_a_step_is_done_when_every_subtask_of_every_table_says_so(kafka: KafkaBroker) -> None:
    config, first = make_table("observed_first", kafka)
    _, second = make_table("observed_second", kafka)
    producer = Producer(config.kafka_client_properties())

    def say(table: str, subtask: int, watermark: int, parallelism: int) -> None:
        value = progress(table, subtask, watermark, parallelism)
        producer.produce("progress", key=f"local:home/{table}/{subtask}", value=value)
        producer.flush(DEADLINE_S)

    with Observer(config, [first, second], ProductionLog()) as observer:
        say("observed_first", 0, 2_000, 2)
        say("observed_second", 0, 1_000, 1)
        say("somebody_elses", 0, 9_000, 1)
        assert not observer.wait_until_complete(1_000, 0.5)
        say("observed_first", 1, 1_000, 2)
        assert observer.wait_until_complete(1_000, DEADLINE_S)
        assert not observer.wait_until_complete(2_000, 0.5)
        say("observed_first", 1, 2_000, 2)
        say("observed_second", 0, 2_500, 1)
        assert observer.wait_until_complete(2_000, DEADLINE_S)


@pytest.mark.integration
def test_dead_letters_are_kept_with_their_reasons(kafka: KafkaBroker) -> None:
    config, table = make_table("observed_letters", kafka)
    producer = Producer(config.kafka_client_properties())
    with Observer(config, [table], ProductionLog()) as observer:
        assert not observer.wait_for_dead_letters(1, 0.1)
        producer.produce("dead-letters.observed_letters", value=dead_letter(table.name))
        producer.flush(DEADLINE_S)
        assert observer.wait_for_dead_letters(1, DEADLINE_S)
    (letter,) = observer.tables[table.name].dead_letters
    assert (letter["reason"], letter["value"]) == ("the value is not JSON", b"{")


@pytest.mark.integration
def test_a_record_that_is_no_avro_is_told_not_swallowed(kafka: KafkaBroker) -> None:
    config, table = make_table("observed_damage", kafka)
    producer = Producer(config.kafka_client_properties())
    producer.produce("changes.observed_damage", key="a", value=b"not avro")
    producer.flush(DEADLINE_S)
    with (
        Observer(config, [table], ProductionLog()) as observer,
        pytest.raises(FreshetError, match=r"changes\.observed_damage"),
    ):
        observer.wait_for_changes({table.name: {"a": (1, 1)}}, DEADLINE_S)


def test_percentiles_of_nothing_are_nothing() -> None:
    assert percentiles_ms([]) == {"p50": None, "p99": None}
    assert percentiles_ms([1.0, 2.0, 3.0])["p50"] == 2.0
