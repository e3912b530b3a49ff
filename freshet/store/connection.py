"""Connects to the Redis of a region, and reads many keys of it in one round trip."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from typing import Any

from redis import Connection, Redis, RedisCluster
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    AuthorizationError,
    ClusterError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from freshet.config import Config
from freshet.errors import ConfigError, FreshetError, NotAnsweringError
from freshet.resources import script_path
from freshet.secrets import mask_url
from freshet.store.layout import key_name

AnyRedis = Redis | RedisCluster

# A login that is refused is an error of the connection for redis-py, too.
_REFUSALS = (AuthenticationError, AuthorizationError, ssl.SSLCertVerificationError)

# Besides lost connections: what a server or a cluster says that fails over, or is full.
_PASSING = (
    RedisConnectionError,
    RedisTimeoutError,
    ClusterError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)

SOCKET_TIMEOUT_S = 5.0
RETRIES = 3
RETRY_BASE_S = 0.01
RETRY_CAP_S = 0.5


class StoreUnavailableError(FreshetError):
    """The online store does not answer, or refuses."""


class StoreNotAnsweringError(StoreUnavailableError, NotAnsweringError):
    """The online store does not answer now; it does not refuse."""


def region_url(config: Config, region: str | None = None) -> str:
    """URL of a region's Redis, with its secrets.

    Args:
        region: ``provider:region``; None for the configuration's.

    Raises:
        FreshetError: the configuration has no such region, or a secret is not there any more.
    """
    name = region or config.region
    if name not in config.redis:
        known = ", ".join(config.redis)
        raise FreshetError(f"region {name!r} has no Redis in the configuration; known are {known}")
    return config.redis_url(name)


def connect(config: Config, region: str | None = None) -> AnyRedis:
    """A client of a region's Redis, which connects when it is first used; of a cluster, at once.

    Reads and versioned writes may be repeated, so a lost connection is retried.

    Raises:
        StoreUnavailableError: the cluster does not answer, or refuses.
        FreshetError: the configuration has no such region, or a secret is not there any more.
    """
    url = region_url(config, region)
    try:
        return _connect(url, config)
    except ValueError:
        # Its message has parts of the URL.
        shown = mask_url(config.redis[region or config.region])
        raise ConfigError([f"redis: {shown!r} has an option that redis-py refuses"]) from None
    except RedisClusterException as e:
        raise _unavailable(mask_url(config.redis[region or config.region]), e) from e


def _connect(url: str, config: Config) -> AnyRedis:
    retry = Retry(ExponentialWithJitterBackoff(base=RETRY_BASE_S, cap=RETRY_CAP_S), RETRIES)
    options: dict[str, Any] = {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
    }
    if url.startswith("rediss:"):
        # As Java's client does; redis-py would take any host's certificate of these authorities.
        options["ssl_check_hostname"] = True
        options["ssl_ca_certs"] = config.redis_ca
        options["ssl_certfile"] = config.redis_certificate
        options["ssl_keyfile"] = config.redis_key
    if config.redis_cluster:
        nodes: RedisCluster = RedisCluster.from_url(url, **options)
        return nodes
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


def check_writer(config: Config, region: str, table: str) -> None:
    """Makes sure that a region's Redis lets a job in, before there is one.

    What a job asks and reads is tried; what it writes is not, since nothing may be left behind.

    Args:
        config: of the deployment.
        region: whose Redis.
        table: name of a table that the job writes.

    Raises:
        StoreUnavailableError: it does not answer, or refuses.
        ConfigError: a secret is not there any more.
    """
    redis = connect(config, region)
    # No key of an entity: those have one character at least.
    name = key_name(config.store_prefix, table, "")
    try:
        if isinstance(redis, Redis):
            asked = redis.pipeline(transaction=False)
            asked.info("server")
            asked.eval(script_path("write_if_newer.lua").read_text(encoding="utf-8"), 0)
            asked.get(name)
            asked.getrange(name, 0, 0)
            asked.exists(name)
            asked.execute()
        else:
            redis.get(name)
    except RedisError as e:
        raise unavailable(redis, e) from e
    finally:
        redis.close()


def unavailable(redis: AnyRedis, error: RedisError) -> StoreUnavailableError:
    """The error as ours, naming the server without its password, and the fix."""
    return _unavailable(_address(redis), error)


def _unavailable(where: str, error: Exception) -> StoreUnavailableError:
    # A cluster that cannot be connected to says why in its error's cause.
    told = error.__cause__ or error if isinstance(error, RedisClusterException) else error
    kind = StoreNotAnsweringError if _may_pass(told) else StoreUnavailableError
    return kind(
        f"the online store at {where} can't be used: {type(error).__name__}: {error}; {_fix(told)}"
    )


def _may_pass(error: BaseException) -> bool:
    refused = any(isinstance(cause, _REFUSALS) for cause in _causes(error))
    return isinstance(error, _PASSING) and not refused


def _fix(error: BaseException) -> str:
    if isinstance(error, AuthenticationError | AuthenticationWrongNumberOfArgsError):
        return "correct the user and the password of its URL in redis"
    if isinstance(error, NoPermissionError):
        return "give the user of its URL the rights that docs/security.md lists"
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return (
            "name the authority of its certificate in redis_ca, and the host that it is made out"
            " to in its URL"
        )
    ended = (ssl.SSLError, ConnectionResetError, BrokenPipeError)
    if any(isinstance(cause, ended) for cause in causes):
        # How a server says that it wants a certificate is left to chance: TLS 1.3 lets a client
        # write before it has heard.
        return (
            "check that it runs, that its URL begins with rediss:// where this port speaks TLS and"
            " with redis:// where it does not, and, where it asks for a certificate, set"
            " redis_certificate and redis_key to one whose authority it trusts"
        )
    return "check that it runs and that the configuration names it"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


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
