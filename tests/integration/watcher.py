"""Watches the online store as readers see it, while servers die under it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType

from redis.exceptions import RedisError

from tests.integration.store import Store
from tests.reference.model import Version

_PAUSE_S = 0.01


class VersionWatcher:
    """Reads all keys again and again, and remembers every version that it saw.

    A version that goes back is remembered as a violation; so is a key that was there and is not.
    :meth:`forget` is for a store that was emptied on purpose.
    """

    def __init__(self, store: Store, keys: Sequence[str]) -> None:
        self._store = store
        self._keys = keys
        self._last: dict[str, Version] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="version-watcher", daemon=True)
        self.seen: set[tuple[str, Version]] = set()
        self.violations: list[str] = []
        self.samples = 0
        self.failed_samples = 0
        """Reads that the store did not answer."""

    def __enter__(self) -> VersionWatcher:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def forget(self) -> None:
        """The store is down and comes back empty: what readers saw before binds it no more."""
        with self._lock:
            self._last.clear()

    def _watch(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            with self._lock:
                self._sample()

    def _sample(self) -> None:
        try:
            stored = self._store.get_many(self._keys)
        except RedisError:
            self.failed_samples += 1
            return
        self.samples += 1
        for key, last in self._last.items():
            version = stored[key].version if key in stored else None
            if version is None or version < last:
                self.violations.append(f"{key!r} went from {last} back to {version}")
        self._last.update((key, value.version) for key, value in stored.items())
        self.seen.update(self._last.items())
