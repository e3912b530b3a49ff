"""Topics of a test: what producers, models and readers of changes do, with a plain client."""

from __future__ import annotations

import contextlib
import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from freshet import avro
from tests.integration.polling import eventually
from tests.reference.model import Demand, Event, Feedback, Input

HEARTBEAT = [("freshet-heartbeat", b"")]
_TIMEOUT_S = 30.0
_LOG = logging.getLogger("tests.kafka")


class Record(NamedTuple):
    """One record as it lies in a topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


def event_json(event: Event) -> bytes:
    """An event as producers write it."""
    fields = {"key": event.key, "ts": event.timestamp_ms, "value": event.value}
    return json.dumps(fields | ({"id": event.id} if event.id else {})).encode()


def feedback_json(feedback: Feedback) -> bytes:
    """Feedback as models write it; the errors of other versions change no choice."""
    optional = {"error": feedback.error, "ts": feedback.timestamp_ms}
    fields: dict[str, Any] = {name: value for name, value in optional.items() if value is not None}
    fields["key"] = feedback.key
    fields["version"] = None if feedback.version is None else str(feedback.version)
    if feedback.error is not None and feedback.version is not None:
        fields["errors"] = [feedback.error + 1.0, feedback.error, None]
    return json.dumps(fields).encode()


def demand_json(demand: Demand) -> bytes:
    """A demand as clients write it."""
    return json.dumps({"key": demand.key, "demand": True, "ts": demand.timestamp_ms}).encode()


class Topics:
    """Reads and writes the topics of one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        # A broker that ends with the session is no news; librdkafka would print it.
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 2,
                "message.max.bytes": 4 << 20,
                # Without it a retry, common right after a topic is made, puts records out of order.
                "enable.idempotence": True,
            },
            logger=_LOG,
        )
        self._admin = AdminClient({"bootstrap.servers": bootstrap}, logger=_LOG)

    def create(self, partitions: Mapping[str, int]) -> None:
        """Creates topics with so many partitions, in which every record stays."""
        requests = self._admin.create_topics([NewTopic(n, p) for n, p in partitions.items()])
        for request in requests.values():
            request.result(_TIMEOUT_S)

    def partitions(self, topic: str) -> int:
        """Number of the topic's partitions."""
        return len(self._admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = -1,
        **more: Any,
    ) -> None:
        """Sends one record; :meth:`flush` makes sure of it."""
        while True:
            try:
                self._producer.produce(topic, value, key, partition, **more)
                return
            except BufferError:
                self._producer.poll(0.1)

    def send_inputs(
        self,
        events_topic: str,
        feedback_topic: str,
        inputs: Iterable[Input],
        partition: Callable[[], int] = lambda: -1,
    ) -> None:
        """Sends events and feedback keyed by entity, in this order.

        Args:
            events_topic: for the events.
            feedback_topic: for the feedback.
            inputs: what to send.
            partition: asked for each; -1 for the one of its key.
        """
        for given in inputs:
            match given:
                case Event():
                    topic, value = events_topic, event_json(given)
                case Feedback():
                    topic, value = feedback_topic, feedback_json(given)
                case Demand():
                    topic, value = feedback_topic, demand_json(given)
            self.send(topic, value, given.key.encode(), partition())
        self.flush()

    def heartbeat(self, time_ms: int, *topics: str) -> None:
        """Says in every partition of the topics that event time has come so far."""
        for topic in topics:
            for partition in range(self.partitions(topic)):
                self.send(topic, None, partition=partition, headers=HEARTBEAT, timestamp=time_ms)
        self.flush()

    def flush(self) -> None:
        """Waits until everything that was sent is in its topic."""
        assert self._producer.flush(_TIMEOUT_S) == 0, "Kafka did not take every record"

    def ends(self, topic: str) -> dict[int, int]:
        """Offset of the next record of each partition that ever had one."""
        asked = {
            TopicPartition(topic, partition): OffsetSpec.latest()
            for partition in range(self.partitions(topic))
        }
        found = self._admin.list_offsets(asked, request_timeout=_TIMEOUT_S)
        ends = {at.partition: each.result().offset for at, each in found.items()}
        return {partition: offset for partition, offset in ends.items() if offset > 0}

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The same of what a consumer group has committed: a job's sources do with a checkpoint."""
        asked = [ConsumerGroupTopicPartitions(group)]
        found = self._admin.list_consumer_group_offsets(asked, request_timeout=_TIMEOUT_S)
        return {
            at.partition: at.offset
            for at in found[group].result().topic_partitions
            if at.topic == topic and at.offset > 0
        }

    def read(self, topic: str) -> list[Record]:
        """Every record that is in the topic now, by partition and offset."""
        with self.follow(topic) as follower:
            return sorted(follower.to_the_end())

    def read_as(self, schema: str, topic: str) -> list[dict[str, Any]]:
        """The same, decoded; the schema's name as in ``schemas/``."""
        return [avro.decode_as(schema, r.value) for r in self.read(topic) if r.value is not None]

    @contextlib.contextmanager
    def follow(self, topic: str) -> Iterator[Follower]:
        """Reads a topic from its beginning on, as it grows."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": f"test-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            },
            logger=_LOG,
        )
        try:
            yield Follower(consumer, topic, self.partitions(topic))
        finally:
            consumer.close()


class Follower:
    """A reader of one topic that never goes back."""

    def __init__(self, consumer: Consumer, topic: str, partitions: int) -> None:
        self._consumer = consumer
        self._partitions = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)]
        self._next = dict.fromkeys(range(partitions), 0)
        consumer.assign(self._partitions)

    def new(self) -> list[Record]:
        """What has come since the last call; waits a moment for the first."""
        records = []
        for message in self._consumer.consume(10_000, 0.1):
            assert message.error() is None, message.error()
            self._next[message.partition()] = message.offset() + 1
            records.append(
                Record(
                    message.partition(),
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.timestamp()[1],
                    tuple(message.headers() or ()),
                )
            )
        return records

    def to_the_end(self) -> list[Record]:
        """What has come since the last call, up to where the topic ends now."""
        ends = {
            at.partition: self._consumer.get_watermark_offsets(at, _TIMEOUT_S)
            for at in self._partitions
        }
        records: list[Record] = []

        def reached() -> bool:
            records.extend(self.new())
            return all(
                self._next[partition] >= end or begin == end
                for partition, (begin, end) in ends.items()
            )

        eventually(reached, "read a topic to its end")
        return records
