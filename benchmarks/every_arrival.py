"""When every change is readable in an online store, thousands of them a second.

Redis tells which keys were set (keyspace notifications), and their headers are read then: a change
is readable once its key has its version or a newer one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from redis import Redis

from benchmarks.pipeline import in_background
from freshet.store.layout import HEADER_BYTES, HEADER_DTYPE, key_name

_SET_EVENTS = "__keyevent@0__:set"
_TURN_S = 0.02

_HEADERS = f"""
local headers = {{}}
for i, key in ipairs(KEYS) do
  headers[i] = redis.call('GETRANGE', key, 0, {HEADER_BYTES - 1})
end
return table.concat(headers)
"""
"""One string of all headers: a reply of its own for each would cost the reader too much."""

_KEYS_MAX = 5_000

Floats = npt.NDArray[np.float64]


@dataclass
class Observed:
    """What was seen in a store: versions of keys, in the order of time."""

    by_key: dict[bytes, list[tuple[int, float]]] = field(default_factory=dict)
    """Version in microseconds and time in epoch seconds, by the key's name in Redis."""

    def take(self, names: list[bytes], versions: npt.NDArray[np.int64], now_s: float) -> None:
        """Takes in versions that were read at this time."""
        for name, version in zip(names, versions.tolist(), strict=True):
            self.by_key.setdefault(name, []).append((version, now_s))

    def arrived_s(self, table: str, changes: Sequence[tuple[bytes, int]]) -> Floats:
        """When each change, or a newer one of its key, was readable; infinite if it was not.

        Args:
            table: of the changes.
            changes: key and version, each key's in the order of versions.

        Returns:
            Epoch seconds, [changes].
        """
        found = np.full(len(changes), np.inf)
        at: dict[bytes, int] = {}
        for place, (key, version) in enumerate(changes):
            seen = self.by_key.get(key_name("", table, key.decode()).encode(), ())
            first = at.get(key, 0)
            while first < len(seen) and seen[first][0] < version:
                first += 1
            at[key] = first
            if first < len(seen):
                found[place] = seen[first][1]
        return found


@contextlib.contextmanager
def every_arrival(url: str) -> Iterator[Observed]:
    """Watches all sets in a Redis as long as the block lasts.

    Args:
        url: of the Redis.
    """
    observed = Observed()
    with contextlib.closing(Redis.from_url(url)) as store:
        store.config_set("notify-keyspace-events", "E$")
        heard = store.pubsub(ignore_subscribe_messages=True)
        heard.subscribe(_SET_EVENTS)
        headers = store.register_script(_HEADERS)

        def look() -> None:
            names: dict[bytes, None] = {}
            end = time.monotonic() + _TURN_S
            while (left := end - time.monotonic()) > 0 and len(names) < _KEYS_MAX:
                message = heard.get_message(timeout=left)
                if message is not None:
                    names[message["data"]] = None
            if names:
                found = np.frombuffer(headers(keys=list(names)), HEADER_DTYPE)
                observed.take(list(names), found["timestamp_micros"], time.time())

        with contextlib.closing(heard), in_background(look):
            yield observed
        store.config_set("notify-keyspace-events", "")
