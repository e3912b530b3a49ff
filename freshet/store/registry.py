"""What the store knows about its tables: a hash of table name to definition.

``freshet submit`` writes it, so that a client that knows only a table's name finds its time to
live and its topics. The hash is ``<prefix>freshet:tables``; a field is ``FeatureTable.to_dict()``
as JSON.
"""

from __future__ import annotations

import json
from typing import Any

from redis.exceptions import RedisError

from freshet.store.connection import AnyRedis, unavailable
from freshet.table import FeatureTable


def registry_key(store_prefix: str) -> str:
    """Name of the hash."""
    return f"{store_prefix}freshet:tables"


def register_table(
    redis: AnyRedis, table: FeatureTable, *, store_prefix: str = "", topic_prefix: str = ""
) -> None:
    """Makes a table known to clients of this store; replaces what was known before.

    Args:
        redis: the store of one region; each region that serves the table needs its own entry.
        table: the definition.
        store_prefix: goes before every key in Redis (``Config.store_prefix``).
        topic_prefix: goes before the name of every topic (``Config.topic_prefix``).

    Raises:
        StoreUnavailableError: the store does not answer, or refuses.
    """
    definition = json.dumps(table.to_dict(topic_prefix=topic_prefix))
    try:
        redis.hset(registry_key(store_prefix), table.name, definition)
    except RedisError as e:
        raise unavailable(redis, e) from e


def unregister_table(redis: AnyRedis, name: str, *, store_prefix: str = "") -> None:
    """Makes a table unknown to clients of this store.

    Raises:
        StoreUnavailableError: the store does not answer, or refuses.
    """
    try:
        redis.hdel(registry_key(store_prefix), name)
    except RedisError as e:
        raise unavailable(redis, e) from e


def registered_table(
    redis: AnyRedis, name: str, *, store_prefix: str = ""
) -> dict[str, Any] | None:
    """The definition of a table, as ``FeatureTable.to_dict()`` gave it; None if not registered.

    Raises:
        StoreUnavailableError: the store does not answer, or refuses.
    """
    try:
        definition: Any = redis.hget(registry_key(store_prefix), name)
    except RedisError as e:
        raise unavailable(redis, e) from e
    return None if definition is None else dict(json.loads(definition))


def registered_tables(redis: AnyRedis, *, store_prefix: str = "") -> dict[str, dict[str, Any]]:
    """The definitions of all registered tables by name, as ``FeatureTable.to_dict()`` gave them.

    Needs no more rights than a reader of features has.

    Raises:
        StoreUnavailableError: the store does not answer, or refuses.
    """
    names = registered_names(redis, store_prefix=store_prefix)
    found = {name: registered_table(redis, name, store_prefix=store_prefix) for name in names}
    return {name: each for name, each in found.items() if each is not None}


def registered_names(redis: AnyRedis, *, store_prefix: str = "") -> list[str]:
    """Names of all registered tables, sorted.

    Raises:
        StoreUnavailableError: the store does not answer, or refuses.
    """
    try:
        names: Any = redis.hkeys(registry_key(store_prefix))
    except RedisError as e:
        raise unavailable(redis, e) from e
    return sorted(n.decode() if isinstance(n, bytes) else n for n in names)
