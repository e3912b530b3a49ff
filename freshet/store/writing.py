"""Writes to the online store by the same script as the job: newer versions win, on the server.

A table that keeps several versions has its newest ones, in whatever order they were written.

For tests, tools and back-filling; a running job's writer is the one in Java.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import Any

from redis import Redis

from freshet.resources import script_path
from freshet.store.layout import KEEPS_OLDER, TOMBSTONE

BATCH_KEYS = 200
"""Keys of one script call; longer calls would hold up other clients."""


class WriteResult(IntEnum):
    """What the script answers for a key."""

    KEPT_AS_OLDER = 2
    """A newer version was there; this one is kept behind it. Only where several are kept."""
    WRITTEN = 1
    """It is the newest version now."""
    ALREADY_THERE = 0
    """The same version was there, as the newest or as an older one."""
    OUTDATED = -1
    """Newer versions were there, as many as are kept, or a newer tombstone."""
    FOREIGN = -2
    """What is there is no value of this layout; it was left alone."""


def write_if_newer(
    redis: Redis,
    items: Iterable[tuple[str | bytes, bytes]],
    *,
    keep_versions: int = 1,
    tombstone_expiry_ms: int = 0,
) -> list[WriteResult]:
    """Writes values whose versions are newer than what is there.

    Args:
        redis: a standalone Redis; on a cluster, one of its nodes and keys of one hash slot.
        items: name of the Redis key (``layout.key_name``) and packed value (``layout.pack``).
        keep_versions: how many versions the table keeps (``FeatureTable.keep_versions``).
        tombstone_expiry_ms: how long tombstones are kept, milliseconds; 0 for ever.

    Returns:
        One result for each item, in order.

    Raises:
        ValueError: an item has several versions; write each of them alone.
    """
    script = redis.register_script(_source())
    pipeline = redis.pipeline(transaction=False)
    pending = list(items)
    for start in range(0, len(pending), BATCH_KEYS):
        batch = pending[start : start + BATCH_KEYS]
        arguments: list[Any] = []
        for name, value in batch:
            flags = value[1]
            if flags & KEEPS_OLDER:
                raise ValueError(f"the value for {name!r} has several versions; write each alone")
            arguments += (value, tombstone_expiry_ms if flags & TOMBSTONE else 0)
        if keep_versions > 1:
            arguments.append(keep_versions)
        script(keys=[name for name, _ in batch], args=arguments, client=pipeline)
    answers: list[list[int]] = pipeline.execute()
    return [WriteResult(code) for answer in answers for code in answer]


@cache
def _source() -> str:
    return script_path("write_if_newer.lua").read_text(encoding="utf-8")
