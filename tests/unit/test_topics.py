"""Goal: a region's topics have legal names and take chunks, whatever the broker's defaults."""

from __future__ import annotations

import base64
import struct

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from freshet.config import DEFAULT_HOME_REGION, Config
from freshet.errors import FreshetError
from freshet.regions import Region
from freshet.stack.kafka import MESSAGE_BYTES_MAX, KafkaBroker
from freshet.topics import (
    CHUNK_BYTES_MAX,
    Topic,
    create_missing_topics,
    describe_log,
    topics_of_region,
)
from tests.integration.polling import eventually

ENVELOPE_BYTES = 1024
DEADLINE_S = 30.0


@pytest.mark.integration
def test_a_region_makes_an_inbox_that_takes_the_largest_chunk(kafka: KafkaBroker) -> None:
    config = Config(
        kafka_bootstrap=kafka.bootstrap,
        redis={},
        region="gcp:us-east1-b",
        regions={
            "local:home": Region("127.0.0.1:1"),
            "gcp:us-east1-b": Region(role="waypoint", inbox_partitions=2),
        },
    )
    names = ["inbox.gcp.us-east1-b", "dead-letters.inbox.gcp.us-east1-b"]

    assert create_missing_topics(config, topics_of_region(config)) == names
    assert create_missing_topics(config, topics_of_region(config)) == []

    chunk = bytes(CHUNK_BYTES_MAX - ENVELOPE_BYTES)
    assert len(chunk) > MESSAGE_BYTES_MAX, "the broker's own limit would do, too"
    producer = Producer(
        {**config.kafka_client_properties(), "message.max.bytes": 2 * CHUNK_BYTES_MAX}
    )
    delivered: list[object] = []
    producer.produce(
        names[0], chunk, partition=1, on_delivery=lambda error, _message: delivered.append(error)
    )
    assert producer.flush(DEADLINE_S) == 0
    assert delivered == [None]


@pytest.mark.integration
def test_a_topic_made_again_is_another_log(kafka: KafkaBroker) -> None:
    config = Config(kafka_bootstrap=kafka.bootstrap, redis={DEFAULT_HOME_REGION: "redis://x:1/0"})
    create_missing_topics(config, [Topic("a-log", 3)])
    first = describe_log(config, "a-log")
    assert first == describe_log(config, "a-log")
    assert first.partitions == 3

    admin = AdminClient(config.kafka_client_properties())
    (described,) = admin.describe_topics(TopicCollection(["a-log"])).values()
    uuid = described.result(DEADLINE_S).topic_id
    bits = (uuid.get_most_significant_bits(), uuid.get_least_significant_bits())
    told = base64.urlsafe_b64decode(first.id + "==")
    assert struct.unpack(">qq", told) == bits

    admin.delete_topics(["a-log"])["a-log"].result(DEADLINE_S)
    eventually(lambda: "a-log" not in admin.list_topics(timeout=DEADLINE_S).topics, "it is gone")
    create_missing_topics(config, [Topic("a-log", 2)])
    assert describe_log(config, "a-log").id != first.id

    with pytest.raises(FreshetError, match=r"topic no-log cannot be described .* create it first"):
        describe_log(config, "no-log")
