"""Reads of tables that compute on demand: asks for newer values, and waits for them a little.

A value that is missing, or whose event time is older than the table allows, gets a *demand* in the
feedback topic; then the store is polled until a newer version is there, or the wait is over and the
reader takes what there is.

A key without new events has nothing to be computed from, so its reader would wait in vain, again
and again. A key that was waited for in vain is therefore asked for at each read, but not waited for
until ten times the wait has passed: it delays a reader who comes back at once by a tenth at most.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freshet.feedback import FeedbackQueueFullError
from freshet.store.decoding import FeatureBatch
from freshet.store.layout import HEADER, HEADER_BYTES
from freshet.version import NO_VERSION, Version

FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.05
"""Between two looks into the store: about as long as the way through the job takes."""

PATIENCE = 10
"""How many waits must pass before a key that was waited for in vain is waited for again."""

REMEMBERED_MAX = 100_000
"""Keys that were waited for in vain; beyond that, all are waited for again."""

Raw = list[bytes | None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OnDemandRule:
    """What a table that computes on demand promises (``FeatureTable.on_demand``)."""

    max_staleness_ms: int
    """Older values, by event time, are asked for."""

    max_wait_ms: int
    """How long a reader waits for them."""

    @classmethod
    def of(cls, definition: dict[str, Any]) -> OnDemandRule | None:
        """The rule of a table's definition in JSON; None if it does not compute on demand."""
        rule = definition.get("on_demand")
        return None if rule is None else cls(rule["max_staleness_ms"], rule["max_wait_ms"])


class Demander:
    """Asks for newer values and waits for them. Thread-safe.

    Args:
        send: sends a demand for a key; raises ``FeedbackQueueFullError`` if it can't now.
        fetch: what the store holds for some keys.
    """

    def __init__(
        self, send: Callable[[str, str], None], fetch: Callable[[str, Sequence[str]], Raw]
    ) -> None:
        self._send = send
        self._fetch = fetch
        self._in_vain: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def newer(
        self, table: str, keys: Sequence[str], raw: Raw, now_ms: float, rule: OnDemandRule
    ) -> Raw:
        """What the store holds after those keys that are missing or stale were asked for.

        Args:
            table: name of the table.
            keys: entity keys [n].
            raw: what the store held for each [n].
            now_ms: when that was, epoch milliseconds.
            rule: the table's.

        Raises:
            LayoutError: what is stored under a key is not Freshet's.
            StoreUnavailableError: the store does not answer, after retries.
        """
        staleness = FeatureBatch(table, keys, raw, now_ms, None).staleness_ms
        stale = np.flatnonzero(~(staleness <= rule.max_staleness_ms)).tolist()  # NaN is missing
        if not stale:
            return raw
        seen = {keys[i]: _version_of(raw[i]) for i in stale}
        asked = self._ask(table, seen)
        found = self._wait(table, {key: seen[key] for key in asked}, rule)
        return [found.get(key, data) for key, data in zip(keys, raw, strict=True)]

    def _ask(self, table: str, keys: Iterable[str]) -> list[str]:
        """Demands keys; gives those that are worth to wait for."""
        asked = []
        try:
            for key in keys:
                self._send(table, key)
                asked.append(key)
        except FeedbackQueueFullError as e:
            _log.warning("table %r is read as it is: %s", table, e)
        now = time.monotonic()
        with self._lock:
            return [key for key in asked if self._in_vain.get((table, key), now) <= now]

    def _wait(
        self, table: str, seen: dict[str, Version], rule: OnDemandRule
    ) -> dict[str, bytes | None]:
        """Polls until every key has a newer version than was seen, or the wait is over."""
        found: dict[str, bytes | None] = {}
        missing = list(seen)
        deadline = time.monotonic() + rule.max_wait_ms / 1_000
        pause = FIRST_PAUSE_S
        while missing and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE_S)
            for key, data in zip(missing, self._fetch(table, missing), strict=True):
                if _version_of(data) > seen[key]:
                    found[key] = data
            missing = [key for key in missing if key not in found]
        self._remember(table, missing, deadline + PATIENCE * rule.max_wait_ms / 1_000)
        return found

    def _remember(self, table: str, keys: Iterable[str], until: float) -> None:
        """These were waited for in vain."""
        with self._lock:
            if len(self._in_vain) > REMEMBERED_MAX:
                self._in_vain.clear()
            for key in keys:
                self._in_vain[table, key] = until


def _version_of(data: bytes | None) -> Version:
    if data is None or len(data) < HEADER_BYTES:
        return NO_VERSION
    _, _, origin, timestamp, _, _ = HEADER.unpack_from(data)
    return Version(timestamp, origin)
