"""Goal: a region's topics have legal names and take chunks, whatever the broker's defaults."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from freshet.config import Config
from freshet.regions import Region
from freshet.stack.kafka import MESSAGE_BYTES_MAX, KafkaBroker
from freshet.topics import CHUNK_BYTES_MAX, create_missing_topics, topics_of_region

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
