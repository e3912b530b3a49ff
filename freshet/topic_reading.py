"""Reads a topic once, from its beginning to where it ends now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from freshet.errors import FreshetError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_TIMEOUT_S = 10.0
_BATCH_RECORDS = 1_000


def read_topic(properties: Mapping[str, str], topic: str) -> Iterator[Message]:
    """The records of a topic, each partition's in their order; none if there is no such topic.

    Args:
        properties: of a librdkafka client.
        topic: its name.

    Raises:
        FreshetError: the broker does not answer.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {
            **properties,
            "group.id": "freshet-reader",  # nothing is committed
            "enable.auto.commit": "false",
            "log_level": "0",
        }
    )
    try:
        for partition in consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions:
            place = TopicPartition(topic, partition, OFFSET_BEGINNING)
            _, end = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
            consumer.assign([place])
            yield from _read_to(consumer, end)
    except KafkaException as error:
        raise FreshetError(
            f"topic {topic} cannot be read from Kafka at {properties['bootstrap.servers']}:"
            f" {error.args[0].str()}; check that the broker runs"
        ) from error
    finally:
        consumer.close()


def _read_to(consumer: Consumer, end: int) -> Iterator[Message]:
    reached = 0
    while reached < end:
        messages = consumer.consume(_BATCH_RECORDS, _TIMEOUT_S)
        if not messages:
            # Compaction may have left nothing between here and the end.
            break
        for message in messages:
            if message.error() is None:
                reached = int(message.offset() or 0) + 1
                yield message
