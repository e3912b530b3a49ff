"""One server that is read again and again, in a thread, so that none waits for another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from freshet.errors import FreshetError
from freshet.status.snapshot import SourceStatus

Reading = TypeVar("Reading")


class _Asking(Generic[Reading]):
    """One question to a server, whose answer may never come."""

    def __init__(self, name: str, read: Callable[[], Reading]) -> None:
        self.asked_at_s = time.monotonic()
        self.answer: Reading | None = None
        self.error: str | None = None
        self._read = read
        # Nobody who wants to leave waits for a server that does not answer.
        self._thread = threading.Thread(target=self._run, name=f"read {name}", daemon=True)
        self._thread.start()

    def is_done(self, timeout_s: float) -> bool:
        """Whether it has ended, for which it waits so long."""
        self._thread.join(max(0.0, timeout_s))
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.answer = self._read()
        except FreshetError as error:
            self.error = str(error)
        except Exception as error:
            # What is shown must not end because of what one server says.
            self.error = f"its answer is not understood ({type(error).__name__}: {error})"


class Source(Generic[Reading]):
    """What a server told last, and whether it still answers."""

    def __init__(self, name: str, read: Callable[[], Reading]) -> None:
        """Describes the source; :meth:`start` reads it.

        Args:
            name: of the server, for people.
            read: asks it; raises a ``FreshetError`` if that fails. Runs in another thread, and
                never twice at the same time.
        """
        self.name = name
        self.last: Reading | None = None
        """What it told last; None before the first answer."""

        self._read = read
        self._asking: _Asking[Reading] | None = None
        self._read_at_s: float | None = None
        self._error: str | None = None

    def start(self) -> None:
        """Asks the server, unless it has still not answered the last time.

        An answer that came since is taken in, and is no reason not to ask.
        """
        if self._asking is not None and self._asking.is_done(0):
            self._take(self._asking)
        if self._asking is None:
            self._asking = _Asking(self.name, self._read)

    def finish(self, deadline_s: float) -> None:
        """Takes the answer in, if it comes until then; else it may come by the next time.

        Args:
            deadline_s: of ``time.monotonic()``.
        """
        asking = self._asking
        if asking is None:
            return
        if not asking.is_done(deadline_s - time.monotonic()):
            self._error = f"no answer for {time.monotonic() - asking.asked_at_s:.0f} s"
            return
        self._take(asking)

    def _take(self, asking: _Asking[Reading]) -> None:
        self._error, self._asking = asking.error, None
        if asking.error is None:
            self.last, self._read_at_s = asking.answer, asking.asked_at_s

    def status(self) -> SourceStatus:
        """How the source is now."""
        read_at_s = self._read_at_s
        ago_s = None if read_at_s is None else time.monotonic() - read_at_s
        return SourceStatus(self.name, ago_s, self._error)

    def is_idle(self, timeout_s: float) -> bool:
        """Whether nothing is being asked, for which it waits so long."""
        return self._asking is None or self._asking.is_done(timeout_s)
