"""Removes a feature table: every key is deleted, in all regions, by versioned tombstones.

A delete is a change like any other, so it reaches the regions along the multicast's trees, and one
that is away when it happens gets it when it is back: old values do not come back from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from confluent_kafka import Producer
from redis import Redis
from redis.exceptions import RedisError

from freshet import avro
from freshet.config import Config
from freshet.errors import FreshetError, JobError, StackError
from freshet.store.connection import AnyRedis, connect, unavailable
from freshet.store.layout import key_name, pack_tombstone
from freshet.store.registry import registered_names, registered_table, unregister_table
from freshet.store.writing import WriteResult, write_if_newer
from freshet.submission import feature_job_of
from freshet.topic_reading import read_topic
from freshet.version import Version

_DELETE = "DELETE"
_BATCH_KEYS = 1_000
_FLUSH_DEADLINE_S = 30.0


@dataclass(frozen=True)
class Removal:
    """What was removed."""

    table: str
    keys: int
    """Deleted now."""

    deleted_before: int
    """Whose newest change is a delete already."""


def drop_table(config: Config, table: str, *, job_has_ended: bool = False) -> Removal:
    """Deletes every key of a table, tells all regions, and forgets the table.

    Each delete is in home's store before its change event, as with every value. What was
    interrupted is finished by calling it again. The table's topics stay: regions that are away
    read there what they have missed.

    Args:
        config: of the home region.
        table: its name.
        job_has_ended: whether the caller knows that its feature job has; Flink is not asked then,
            which on Kubernetes there is one of for each job.

    Raises:
        JobError: its feature job runs, and would bring keys back.
        StackError: no Flink is configured that could be asked.
        FreshetError: the table is not known, or a server does not answer.
    """
    redis = connect(config, config.home_region)
    try:
        definition = _definition(config, redis, table)
        if not job_has_ended:
            _check_job_has_ended(config, table)
        newest, deleted_before = _newest(config, definition["changes_topic"])
        producer = Producer(
            {**config.kafka_client_properties(config.home_region), "enable.idempotence": True}
        )
        left = iter(newest.items())
        while batch := list(islice(left, _BATCH_KEYS)):
            _delete(config, redis, producer, definition, batch)
        unregister_table(redis, table, store_prefix=config.store_prefix)
    finally:
        redis.close()
    return Removal(table, len(newest), deleted_before)


def _check_job_has_ended(config: Config, table: str) -> None:
    if config.flink_rest is None:
        raise StackError(
            f"no Flink is configured that could tell whether the feature job of table {table} has"
            " ended; set flink_rest in the configuration, or make sure yourself that it has, since"
            " it would bring keys back, and say so with --job-has-ended"
        )
    job = feature_job_of(config, table)
    if job is not None:
        raise JobError(
            f"table {table} has job {job.id}, which is {job.state} and would bring keys back;"
            " cancel it first"
        )


def _definition(config: Config, redis: AnyRedis, table: str) -> dict[str, Any]:
    found = registered_table(redis, table, store_prefix=config.store_prefix)
    if found is None:
        known = ", ".join(registered_names(redis, store_prefix=config.store_prefix)) or "none"
        raise FreshetError(f"no table {table!r} is known in {config.home_region}; known: {known}")
    return found


def _newest(config: Config, topic: str) -> tuple[dict[str, Version], int]:
    """Newest version of each key that is not deleted, and how many keys are."""
    newest: dict[str, tuple[Version, bool]] = {}
    for change in _changes(config, topic):
        version = Version(change["version_timestamp"], change["version_origin"])
        before = newest.get(change["key"])
        if before is None or version > before[0]:
            newest[change["key"]] = version, change["operation"] == _DELETE
    kept = {key: version for key, (version, is_deleted) in newest.items() if not is_deleted}
    return kept, len(newest) - len(kept)


def _changes(config: Config, topic: str) -> Iterator[Mapping[str, Any]]:
    for message in read_topic(config.kafka_client_properties(config.home_region), topic):
        try:
            name, change = avro.decode(message.value() or b"")
        except avro.AvroError:
            continue  # the multicast job has made a dead letter of it
        if name == "FeatureChange":
            yield change


def _delete(
    config: Config,
    redis: AnyRedis,
    producer: Producer,
    definition: Mapping[str, Any],
    keys: Sequence[tuple[str, Version]],
) -> None:
    table, now_ms = definition["table"], time.time_ns() // 1_000_000
    versions = {
        # Newer than what is there, whatever the clock of its writer was.
        key: Version(max(now_ms * 1_000, version.timestamp_micros + 1), version.origin)
        for key, version in keys
    }
    items = [
        (key_name(config.store_prefix, table, key), pack_tombstone(version, now_ms, now_ms))
        for key, version in versions.items()
    ]
    results = _write(config, redis, items, int(definition["keep_versions"]))
    for (key, version), result in zip(versions.items(), results, strict=True):
        if result in (WriteResult.OUTDATED, WriteResult.KEPT_AS_OLDER):
            raise FreshetError(
                f"key {key!r} of table {table} got a newer value meanwhile; stop what writes it,"
                " and drop the table again"
            )
        producer.produce(
            definition["changes_topic"], _change(table, key, version, now_ms), key.encode()
        )
    if producer.flush(_FLUSH_DEADLINE_S):
        raise FreshetError(
            f"Kafka at {config.kafka_bootstrap} did not take every delete of table {table} within"
            f" {_FLUSH_DEADLINE_S:g} s; drop it again"
        )


def _write(
    config: Config, redis: AnyRedis, items: Sequence[tuple[str, bytes]], keep_versions: int
) -> list[WriteResult]:
    expiry_ms = config.tombstone_retention_ms

    def write(node: Redis, some: Sequence[tuple[str, bytes]]) -> list[WriteResult]:
        return write_if_newer(
            node, some, keep_versions=keep_versions, tombstone_expiry_ms=expiry_ms
        )

    try:
        if isinstance(redis, Redis):
            return write(redis, items)
        return [
            result
            for item in items
            for result in write(
                redis.get_redis_connection(redis.get_node_from_key(item[0])), [item]
            )
        ]
    except RedisError as e:
        raise unavailable(redis, e) from e


def _change(table: str, key: str, version: Version, now_ms: int) -> bytes:
    return avro.encode(
        "FeatureChange",
        {
            "table": table,
            "key": key,
            "version_timestamp": version.timestamp_micros,
            "version_origin": version.origin,
            "event_time": now_ms,
            "computed_at": now_ms,
            "operation": _DELETE,
            "encoding": "NONE",
            "value": b"",
            "regret_removed": 0.0,
        },
    )
