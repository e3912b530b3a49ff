"""Reads a topic from its beginning to where it ends now, once or again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from freshet.errors import FreshetError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

    from freshet.kafka_access import Access

_TIMEOUT_S = 10.0
SILENCE_S = 30.0
_POLL_S = 1.0
_BATCH_RECORDS = 1_000
_GONE = ("_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART")


def read_topic(
    properties: Mapping[str, str], topic: str, *, silence_s: float = SILENCE_S
) -> Iterator[Message]:
    """The records of a topic, each partition's in their order; none if there is no such topic.

    Args:
        properties: of a librdkafka client.
        topic: its name.
        silence_s: seconds without a record after which the broker counts as gone.

    Raises:
        BrokerRefusesError: the broker refuses this client.
        FreshetError: the broker does not answer, or stops answering before the end, or the topic
            may not be read.
    """
    from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

    access, consumer = _connected(properties)
    place = topic
    try:
        found = access.metadata(consumer, topic).topics[topic]
        _check_may_see(topic, found.error)
        for partition in found.partitions:
            place = f"{topic}, partition {partition}"
            begin = TopicPartition(topic, partition, OFFSET_BEGINNING)
            _, end = consumer.get_watermark_offsets(begin, timeout=_TIMEOUT_S)
            consumer.assign([begin])
            yield from _read_to(consumer, end, silence_s)
    except KafkaException as error:
        raise _unreadable(place, properties, error) from error
    finally:
        consumer.close()


class TopicTail:
    """Follows a topic of one partition: each reading has what has come since the one before.

    A topic that was gone is read anew when it is back. Not safe to share between threads.
    """

    def __init__(
        self, properties: Mapping[str, str], topic: str, *, timeout_s: float = _TIMEOUT_S
    ) -> None:
        """Describes the reader; it connects when it is first asked.

        Args:
            properties: of a librdkafka client.
            topic: its name.
            timeout_s: seconds without an answer after which the broker counts as gone.
        """
        self._properties = properties
        self._topic = topic
        self._timeout_s = timeout_s
        self._access, self._consumer = _connected(properties)
        self._position: int | None = None
        """Behind the last record that was read; None before the topic was found."""

    def new(self) -> Iterator[Message]:
        """The records up to where the topic ends now; none while there is no such topic.

        Raises:
            FreshetError: the broker does not answer, or stops answering before the end.
        """
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        begin = TopicPartition(self._topic, 0, OFFSET_BEGINNING)
        try:
            if self._position is None and not self._exists():
                return
            _, end = self._consumer.get_watermark_offsets(begin, timeout=self._timeout_s)
            if self._position is None or end < self._position:
                self._position = 0
                self._consumer.assign([begin])
            if self._position < end:
                for message in _read_to(self._consumer, end, self._timeout_s, self._position):
                    self._position = int(message.offset() or 0) + 1
                    yield message
                self._position = end
        except KafkaException as error:
            if error.args[0].name() not in _GONE:
                raise _unreadable(self._topic, self._properties, error) from error
            self._position = None

    def _exists(self) -> bool:
        found = self._access.metadata(self._consumer, self._topic, self._timeout_s)
        _check_may_see(self._topic, found.topics[self._topic].error)
        return bool(found.topics[self._topic].partitions)

    def close(self) -> None:
        """Closes the connections."""
        self._consumer.close()


def _connected(properties: Mapping[str, str]) -> tuple[Access, Consumer]:
    """A consumer, and what hears of its refusals."""
    from confluent_kafka import Consumer

    from freshet.kafka_access import Access

    access = Access(properties["bootstrap.servers"])
    consumer = access.client(
        Consumer,
        {
            **properties,
            "group.id": "freshet-reader",  # nothing is committed
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "log_level": "0",
        },
    )
    return access, consumer


def _unreadable(place: str, properties: Mapping[str, str], error: Exception) -> FreshetError:
    return FreshetError(
        f"topic {place} cannot be read from Kafka at {properties['bootstrap.servers']}:"
        f" {error.args[0].str()}; check that the broker runs"
    )


def _check_may_see(topic: str, error: KafkaError | None) -> None:
    from confluent_kafka import KafkaError

    if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise FreshetError(
            f"topic {topic} may not be read by the user of kafka_properties; let it READ the topic"
            " (docs/security.md)"
        )


def _read_to(consumer: Consumer, end: int, silence_s: float, reached: int = 0) -> Iterator[Message]:
    """What the assigned partition has before an offset, which itself may have no record.

    Compaction and aborted transactions leave none there, so the consumer must tell that nothing is
    left; silence alone would also be that of a broker which is gone.
    """
    from confluent_kafka import KafkaError, KafkaException

    heard = time.monotonic()
    while reached < end:
        first = consumer.poll(_POLL_S)
        # And what is there already: waiting for a full batch would take all of a timeout.
        batch = [] if first is None else [first, *consumer.consume(_BATCH_RECORDS, 0)]
        for message in batch:
            error = message.error()
            if error is None:
                reached, heard = int(message.offset() or 0) + 1, time.monotonic()
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                # Told once for each end that was reached, so maybe of an earlier one.
                reached = max(reached, int(message.offset() or 0))
            elif not error.retriable():
                raise KafkaException(error)
        if time.monotonic() - heard > silence_s:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
