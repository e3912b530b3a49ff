"""Reading a topic to its end tells its end from a broker that is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from freshet.errors import FreshetError
from freshet.stack.kafka import KafkaBroker
from freshet.topic_reading import read_topic

pytestmark = pytest.mark.integration

RECORDS = 5_000
VALUE = b"v" * 1_000
LITTLE_AT_ONCE = {"queued.max.messages.kbytes": "64", "fetch.message.max.bytes": "65536"}
"""So that most of a topic is not fetched yet when its first record is there."""


def properties(kafka: KafkaBroker, **more: str) -> Mapping[str, str]:
    return {"bootstrap.servers": kafka.bootstrap, **more}


def filled(kafka: KafkaBroker, topic: str) -> str:
    """A topic of two partitions, with as many records in each."""
    client = AdminClient(dict(properties(kafka)))
    client.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(RECORDS):
        for partition in (0, 1):
            producer.produce(topic, VALUE, str(number).encode(), partition)
        producer.poll(0)
    assert producer.flush(60) == 0
    return topic


def test_each_partition_is_read_in_order_to_its_end(kafka: KafkaBroker) -> None:
    topic = filled(kafka, "read-whole")
    read = [
        (message.partition(), message.key()) for message in read_topic(properties(kafka), topic)
    ]
    assert read == [(p, str(number).encode()) for p in (0, 1) for number in range(RECORDS)]


def test_nothing_may_be_left_before_the_end(kafka: KafkaBroker) -> None:
    topic = filled(kafka, "read-deleted")
    deleted = TopicPartition(topic, 0, OFFSET_END)
    client = AdminClient(dict(properties(kafka)))  # it must live until its answer is there
    client.delete_records([deleted])[deleted].result(30)
    assert {message.partition() for message in read_topic(properties(kafka), topic)} == {1}


def test_a_broker_that_falls_silent_is_no_end(kafka: KafkaBroker) -> None:
    topic = filled(kafka, "read-silent")
    records = read_topic(properties(kafka, **LITTLE_AT_ONCE), topic, silence_s=2)
    next(records)
    assert kafka.pid is not None
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        with pytest.raises(FreshetError, match=f"topic {topic}, partition 0 cannot be read"):
            list(records)
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
