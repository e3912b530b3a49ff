"""Whether regions' stores have the newest version of every key."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from redis import Redis

from benchmarks.wide_area import wait_for
from freshet.store.layout import HEADER_BYTES, HEADER_DTYPE, key_name

_CHUNK = 5_000


def wait_until_equal(
    urls: Mapping[str, str], table: str, versions: Mapping[bytes, int], deadline_s: float
) -> None:
    """Waits until every region's store has the newest version of every key.

    Args:
        urls: of each region's Redis.
        table: of the keys.
        versions: the newest of each key, microseconds.
        deadline_s: for each region.

    Raises:
        RuntimeError: one has not.
    """
    keys = list(versions)
    newest = np.array([versions[key] for key in keys])
    for region, url in urls.items():
        with Redis.from_url(url) as store:
            wait_for(
                lambda store=store: bool((stored_versions(store, table, keys) == newest).all()),
                deadline_s,
                f"{region} has the newest of each key",
            )


def stored_versions(store: Redis, table: str, keys: list[bytes]) -> npt.NDArray[np.int64]:
    """Versions in a store, microseconds, 0 where there is none."""
    names = [key_name("", table, key.decode()) for key in keys]
    found = []
    for first in range(0, len(names), _CHUNK):
        found += store.mget(names[first : first + _CHUNK])
    headers = b"".join((value or b"")[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0") for value in found)
    versions: npt.NDArray[np.int64] = np.frombuffer(headers, HEADER_DTYPE)["timestamp_micros"]
    return versions
