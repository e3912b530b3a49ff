"""Writes to the online store by the same script as the job: newer versions win, on the server.

For tests, tools and back-filling; a running job's writer is the one in Java.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import Any

from redis import Redis

from freshet.resources import script_path
from freshet.store.layout import TOMBSTONE

BATCH_KEYS = 200
"""Keys of one script call; longer calls would hold up other clients."""


class WriteResult(IntEnum):
    """What the script answers for a key."""

    WRITTEN = 1
    ALREADY_THERE = 0
    """The same version was there."""
    OUTDATED = -1
    """A newer version was there."""
    FOREIGN = -2
    """What is there is no value of this layout; it was left alone."""


def write_if_newer(
    redis: Redis,
    items: Iterable[tuple[str | bytes, bytes]],
    *,
    tombstone_expiry_ms: int = 0,
) -> list[WriteResult]:
    """Writes values whose versions are newer than what is there.

    Args:
        redis: a standalone Redis; on a cluster, one of its nodes and keys of one hash slot.
        items: name of the Redis key (``layout.key_name``) and packed value (``layout.pack``).
        tombstone_expiry_ms: how long tombstones are kept, milliseconds; 0 for ever.

    Returns:
        One result for each item, in order.
    """
    script = redis.register_script(_source())
    pipeline = redis.pipeline(transaction=False)
    pending = list(items)
    for start in range(0, len(pending), BATCH_KEYS):
        batch = pending[start : start + BATCH_KEYS]
        arguments: list[Any] = []
        for _, value in batch:
            arguments += (value, tombstone_expiry_ms if _is_tombstone(value) else 0)
        script(keys=[name for name, _ in batch], args=arguments, client=pipeline)
    answers: list[list[int]] = pipeline.execute()
    return [WriteResult(code) for answer in answers for code in answer]


def _is_tombstone(value: bytes) -> bool:
    return bool(value[1] & TOMBSTONE)


@cache
def _source() -> str:
    return script_path("write_if_newer.lua").read_text(encoding="utf-8")
