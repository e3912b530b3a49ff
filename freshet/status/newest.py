"""The newest snapshot for whoever asks, however many do and however often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from freshet.status.snapshot import Snapshot


class Newest:
    """The newest snapshot, taken again and again in a thread of its own."""

    def __init__(self, take: Callable[[], Snapshot], interval_s: float) -> None:
        """Takes the first one.

        Args:
            take: takes a snapshot.
            interval_s: between two, seconds.
        """
        self._take = take
        self._interval_s = interval_s
        self._newest = (time.monotonic(), take())
        self.failure: BaseException | None = None
        """What has ended the thread, which only a mistake of ours does."""

        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)

    def __enter__(self) -> Newest:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()

    def get(self) -> tuple[Snapshot, float]:
        """The snapshot, and its age in seconds."""
        taken_s, snapshot = self._newest
        return snapshot, time.monotonic() - taken_s

    def _run(self) -> None:
        wait_s = self._interval_s
        try:
            while not self._ending.wait(wait_s):
                taken_s = time.monotonic()
                self._newest = (taken_s, self._take())
                wait_s = max(0.0, self._interval_s - (time.monotonic() - taken_s))
        except BaseException as error:
            self.failure = error
