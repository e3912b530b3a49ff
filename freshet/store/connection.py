"""Connects to the Redis of a region, and reads many keys of it in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis import Connection, Redis, RedisCluster
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from freshet.config import Config
from freshet.errors import FreshetError

AnyRedis = Redis | RedisCluster

SOCKET_TIMEOUT_S = 5.0
RETRIES = 3
RETRY_BASE_S = 0.01
RETRY_CAP_S = 0.5


class StoreUnavailableError(FreshetError):
    """The online store does not answer, or refuses."""


def region_url(config: Config, region: str | None = None) -> str:
    """URL of a region's Redis.

    Args:
        region: ``provider:region``; None for the configuration's.

    Raises:
        FreshetError: the configuration has no such region.
    """
    name = region or config.region
    if name not in config.redis:
        known = ", ".join(config.redis)
        raise FreshetError(f"region {name!r} has no Redis in the configuration; known are {known}")
    return config.redis[name]


def connect(config: Config, region: str | None = None) -> AnyRedis:
    """A client of a region's Redis, which connects when it is first used.

    Reads and versioned writes may be repeated, so a lost connection is retried.
    """
    url = region_url(config, region)
    retry = Retry(ExponentialWithJitterBackoff(base=RETRY_BASE_S, cap=RETRY_CAP_S), RETRIES)
    options: dict[str, Any] = {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
    }
    if config.redis_cluster:
        cluster: RedisCluster = RedisCluster.from_url(url, **options)
        return cluster
    redis: Redis = Redis.from_url(
        url,
        retry=retry,
        retry_on_error=[RedisConnectionError, RedisTimeoutError],
        **options,
    )
    return redis


def fetch(redis: AnyRedis, names: Sequence[bytes]) -> list[bytes | None]:
    """Values of many keys in one round trip (on a cluster one to each node), None if missing.

    Raises:
        StoreUnavailableError: Redis does not answer, or refuses.
    """
    try:
        if isinstance(redis, Redis):
            return _fetch_from_node(redis, names)
        return _fetch_from_cluster(redis, names)
    except RedisError as e:
        raise unavailable(redis, e) from e


def unavailable(redis: AnyRedis, error: RedisError) -> StoreUnavailableError:
    """The error as ours, naming the server without its password."""
    return StoreUnavailableError(
        f"the online store at {_address(redis)} can't be used: {type(error).__name__}: {error}; "
        "check that it runs and that the configuration names it"
    )


def _fetch_from_node(redis: Redis, names: Sequence[bytes]) -> list[bytes | None]:
    """MGET, packed here: redis-py packs argument by argument, which takes longer than the trip."""
    if not names:
        return []
    command = b"".join(
        (
            b"*%d\r\n$4\r\nMGET\r\n" % (len(names) + 1),
            *[b"$%d\r\n%b\r\n" % (len(name), name) for name in names],
        )
    )
    pool = redis.connection_pool
    connection: Connection = pool.get_connection()
    try:

        def attempt() -> list[bytes | None]:
            connection.send_packed_command([command])
            values: list[bytes | None] = connection.read_response()
            return values

        return connection.retry.call_with_retry(attempt, lambda _: connection.disconnect())
    finally:
        pool.release(connection)


def _fetch_from_cluster(redis: RedisCluster, names: Sequence[bytes]) -> list[bytes | None]:
    """One pipeline of GET, split by node; MGET would take one trip for each hash slot."""
    pipeline = redis.pipeline()
    for name in names:
        pipeline.get(name)
    values: list[bytes | None] = pipeline.execute()
    return values


def _address(redis: AnyRedis) -> str:
    if isinstance(redis, RedisCluster):
        return ", ".join(str(node.name) for node in redis.get_nodes())
    options = redis.connection_pool.connection_kwargs
    if "path" in options:
        return str(options["path"])
    return f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
