"""The Kafka topics of a table: their names come from its definition, their settings from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from freshet.config import Config
from freshet.errors import FreshetError

DEFAULT_PARTITIONS = 4
"""Partitions of a topic that carries a table's keys."""

_REQUEST_TIMEOUT_S = 30.0

# The newest record of each key is all that a reader needs: a table's changes rebuild its online
# store, and progress is a state, not a history.
_COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True)
class Topic:
    """A topic as it is created when it is missing; an existing one is left as it is."""

    name: str
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)


def topics_of_table(
    definition: Mapping[str, Any], partitions: int = DEFAULT_PARTITIONS
) -> list[Topic]:
    """Every topic that the table's feature job reads or writes.

    Args:
        definition: the table as ``FeatureTable.to_dict(topic_prefix)`` gives it.
        partitions: of the topics that are keyed by entity.
    """
    return [
        Topic(definition["source"]["topic"], partitions),
        Topic(definition["feedback_topic"], partitions),
        Topic(definition["changes_topic"], partitions, _COMPACTED),
        Topic(definition["progress_topic"], 1, _COMPACTED),
        Topic(definition["dead_letters_topic"], 1),
    ]


def create_missing_topics(config: Config, topics: Iterable[Topic]) -> list[str]:
    """Creates the topics that do not exist, with the broker's replication, and waits for them.

    Returns:
        The names of the created ones.

    Raises:
        FreshetError: Kafka does not answer, or refuses.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    # What goes wrong is raised; the library need not print it as well.
    admin = AdminClient({**config.kafka_client_properties(), "log_level": "0"})
    try:
        existing = set(admin.list_topics(timeout=_REQUEST_TIMEOUT_S).topics)
    except KafkaException as error:
        raise FreshetError(
            f"Kafka at {config.kafka_bootstrap} does not answer ({error.args[0].str()}); check"
            " kafka_bootstrap and that the broker runs"
        ) from error
    missing = {topic.name: topic for topic in topics if topic.name not in existing}
    if not missing:
        return []
    requests = admin.create_topics(
        [
            NewTopic(topic.name, num_partitions=topic.partitions, config=dict(topic.settings))
            for topic in missing.values()
        ],
        operation_timeout=_REQUEST_TIMEOUT_S,
    )
    created = []
    for name, request in requests.items():
        try:
            request.result()
            created.append(name)
        except KafkaException as error:
            # Somebody else was faster: the topic is there, which is what was wanted.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise FreshetError(
                    f"topic {name} cannot be created: {error.args[0].str()}"
                ) from error
    return created
