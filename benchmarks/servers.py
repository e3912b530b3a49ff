"""The servers that benchmarks run against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from redis import Redis

from benchmarks.context import Context
from freshet.config import DEFAULT_HOME_REGION, Config
from freshet.stack import FlinkOptions, RedisOptions, Stack, StackOptions

# Nothing connects to it: a client that reads features needs no Kafka.
_NO_KAFKA = "127.0.0.1:9"


@contextmanager
def redis_server(context: Context, name: str) -> Iterator[str]:
    """A Redis without persistence of any kind, as its URL."""
    options = StackOptions(redis=RedisOptions(persistent=False), kafka=None, flink=None)
    with Stack(context.folder(name), options) as stack:
        yield stack.home_redis.url


def database(redis_url: str, number: int) -> str:
    """URL of another database of the same server."""
    return f"{redis_url.rsplit('/', 1)[0]}/{number}"


def config_of(redis_url: str) -> Config:
    """A configuration that knows this Redis only."""
    return Config(kafka_bootstrap=_NO_KAFKA, redis={DEFAULT_HOME_REGION: redis_url})


@contextmanager
def stack(
    context: Context, name: str, task_managers: int, flink: FlinkOptions | None = None
) -> Iterator[Stack]:
    """Kafka, Redis and Flink, as ``freshet up`` starts them.

    Args:
        name: of its folder in the scratch folder.
        task_managers: how many.
        flink: other options than the default; ``task_managers`` in them is not used.
    """
    flink = replace(flink or FlinkOptions(), task_managers=task_managers)
    with Stack(context.folder(name), StackOptions(flink=flink)) as running:
        yield running


def used_memory(redis: Redis) -> int:
    """Bytes that Redis has allocated."""
    return int(_info(redis, "memory")["used_memory"])


def server_version(redis: Redis) -> str:
    """Version and allocator, which decide memory."""
    server, memory = _info(redis, "server"), _info(redis, "memory")
    return f"Redis {server['redis_version']}, allocator {memory['mem_allocator']}"


def _info(redis: Redis, section: str) -> dict[str, Any]:
    found: dict[str, Any] = redis.info(section)  # type: ignore[assignment]  # it may be async
    return found
