"""The Kafka topics of tables and regions: what each is called, and the settings it is made with."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from freshet.config import Config
from freshet.errors import FreshetError, NotAnsweringError
from freshet.kafka_access import check_access
from freshet.regions import DEFAULT_INBOX_PARTITIONS, dead_letters_topic, inbox_topic

DEFAULT_PARTITIONS = 4
"""Partitions of a topic that carries a table's keys."""

_REQUEST_TIMEOUT_MS = 30_000
_POLL_INTERVAL_S = 0.05
_CHANGE_OVERHEAD_BYTES = 128 * 1024

# The newest record of each key is all that a reader needs: a table's changes rebuild its online
# store, and progress is a state, not a history.
_COMPACTED = {"cleanup.policy": "compact"}

_PROGRESS_SEGMENT_BYTES = 8 * 1024 * 1024
_PROGRESS_SEGMENT_MS = 10 * 60 * 1000

# It is read from its beginning by whoever starts, and reports come several times a second. Only
# segments that are closed are compacted. Its times are home's broker's own: they tell when a region
# was last heard, which a region's clock that is off must not.
_PROGRESS = _COMPACTED | {
    "segment.bytes": str(_PROGRESS_SEGMENT_BYTES),
    "segment.ms": str(_PROGRESS_SEGMENT_MS),
    "min.cleanable.dirty.ratio": "0.1",
    "message.timestamp.type": "LogAppendTime",
}

CHUNK_BYTES_MAX = 8 * 1024 * 1024
"""Largest chunk between regions, as a record."""

_INBOX_RETENTION_MS = 60 * 60 * 1000
_INBOX_SEGMENT_MS = 15 * 60 * 1000

# A chunk that was lost is made good by catch-up, so an inbox is no archive. Its times are the
# broker's own: a sender's clock that is off must not delete what has just come.
_INBOX = {
    "cleanup.policy": "delete",
    "retention.ms": str(_INBOX_RETENTION_MS),
    "segment.ms": str(_INBOX_SEGMENT_MS),
    "message.timestamp.type": "LogAppendTime",
    "max.message.bytes": str(CHUNK_BYTES_MAX),
}


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
        Topic(definition["changes_topic"], partitions, _COMPACTED | _room_for(definition)),
        Topic(definition["progress_topic"], 1, _PROGRESS),
        Topic(definition["dead_letters_topic"], 1),
    ]


def topics_of_region(config: Config) -> list[Topic]:
    """The topics on the broker of the configuration's region that its region job reads and writes.

    Progress goes to the home region's broker, where the tables' topics are.
    """
    return [
        inbox_of_region(config, config.region),
        Topic(dead_letters_topic(config.region, config.topic_prefix), 1),
    ]


def inbox_of_region(config: Config, region: str) -> Topic:
    """The topic of what is sent to a region, on its own broker."""
    known = config.regions.get(region)
    return Topic(
        inbox_topic(region, config.topic_prefix),
        DEFAULT_INBOX_PARTITIONS if known is None else known.inbox_partitions,
        _INBOX,
    )


def topics_of_multicast(
    config: Config, definitions: Iterable[Mapping[str, Any]], partitions: int = DEFAULT_PARTITIONS
) -> list[Topic]:
    """The topics on home's broker that a multicast job of these tables reads and writes.

    Args:
        config: of the home region.
        definitions: as for :func:`topics_of_table`.
        partitions: of the tables' changes.
    """
    needed = {
        name
        for definition in definitions
        for name in (definition["changes_topic"], definition["progress_topic"])
    }
    topics = [
        topic
        for definition in definitions
        for topic in topics_of_table(definition, partitions)
        if topic.name in needed
    ]
    return [*topics, Topic(dead_letters_topic(config.home_region, config.topic_prefix), 1)]


def progress_topic(config: Config) -> Topic:
    """The topic of reports, on home's broker."""
    return Topic(f"{config.topic_prefix}progress", 1, _PROGRESS)


def _room_for(definition: Mapping[str, Any]) -> dict[str, str]:
    """A change event carries its value whole; Kafka's default limit is 1 MiB."""
    return {"max.message.bytes": str(definition["max_value_bytes"] + _CHANGE_OVERHEAD_BYTES)}


def _wait_for(admin: KafkaAdminClient, names: list[str]) -> None:
    """A topic is created when the controller says so; brokers tell of it a moment later."""
    deadline = time.monotonic() + _REQUEST_TIMEOUT_MS / 1000
    while not set(names) <= set(admin.list_topics()):
        if time.monotonic() > deadline:
            raise FreshetError(f"Kafka created topics {', '.join(names)}, but does not list them")
        time.sleep(_POLL_INTERVAL_S)


@dataclass(frozen=True)
class Log:
    """A topic as a log: offsets mean something only together with its id (KIP-516)."""

    id: str
    """In Kafka's own text form."""

    partitions: int


def describe_log(config: Config, topic: str) -> Log:
    """Asks the broker of the configuration's region for a topic's id and partitions.

    Raises:
        FreshetError: there is no such topic, or the broker does not answer or refuses.
    """
    admin = _admin(config, None)
    try:
        (found,) = admin.describe_topics([topic])
    except KafkaError as error:
        raise FreshetError(f"Kafka at {config.kafka_bootstrap} failed: {error}") from error
    finally:
        admin.close()
    if found["error_code"]:
        raise FreshetError(
            f"topic {topic} cannot be described at {config.kafka_bootstrap}:"
            f" {for_code(found['error_code']).__name__}; create it first, by submitting its table"
        )
    text = base64.urlsafe_b64encode(uuid.UUID(str(found["topic_id"])).bytes).decode()
    return Log(text.rstrip("="), len(found["partitions"]))


def _admin(config: Config, region: str | None) -> KafkaAdminClient:
    check_access(config.kafka_client_properties(region), config.kafka_fields(region))
    properties = config.kafka_admin_properties(region)
    try:
        return KafkaAdminClient(request_timeout_ms=_REQUEST_TIMEOUT_MS, **properties)
    except KafkaError as error:
        where = ",".join(properties["bootstrap_servers"])
        name, _ = config.kafka_fields(region)
        raise NotAnsweringError(
            f"Kafka at {where} does not answer ({error}); check {name} and that the broker runs"
        ) from error


def create_missing_topics(
    config: Config, topics: Iterable[Topic], region: str | None = None
) -> list[str]:
    """Creates the topics that do not exist, with the broker's replication, and waits for them.

    Args:
        config: of the deployment.
        topics: that there must be.
        region: on whose broker; None for the one of the configuration's region.

    Returns:
        The names of the created ones.

    Raises:
        NotAnsweringError: Kafka does not answer.
        FreshetError: it refuses.
    """
    admin = _admin(config, region)
    try:
        existing = set(admin.list_topics())
        missing = {topic.name: topic for topic in topics if topic.name not in existing}
        created = []
        for topic in missing.values():
            request = NewTopic(topic.name, topic.partitions, -1, topic_configs=dict(topic.settings))
            try:
                admin.create_topics([request], timeout_ms=_REQUEST_TIMEOUT_MS)
                created.append(topic.name)
            except TopicAlreadyExistsError:
                # Somebody else was faster: the topic is there, which is what was wanted.
                continue
            except (TopicAuthorizationFailedError, ClusterAuthorizationFailedError) as error:
                where, properties = config.kafka_fields(region)
                raise FreshetError(
                    f"topic {topic.name} is missing, or the user of {properties} may not see it,"
                    f" and may not create it at {where}; let it CREATE topics of this prefix, or"
                    " create the topic and let it DESCRIBE it (docs/security.md)"
                ) from error
            except KafkaError as error:
                raise FreshetError(f"topic {topic.name} cannot be created: {error}") from error
        _wait_for(admin, created)
        return created
    except KafkaError as error:
        where = ",".join(config.kafka_admin_properties(region)["bootstrap_servers"])
        kind = NotAnsweringError if error.retriable else FreshetError
        raise kind(f"Kafka at {where} failed: {error}") from error
    finally:
        admin.close()
