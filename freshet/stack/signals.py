"""Makes INT, TERM and HUP end a program through its ``finally`` blocks."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Self


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """Within the block TERM and HUP raise SystemExit(128 + number) in the main thread.

    Raises:
        ValueError: this is not the main thread, the only one that may handle signals.
    """
    numbers = (signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, _exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _exit(number: int, frame: FrameType | None) -> None:
    # Cleaning up must not be cut short by a second signal of the same kind.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


class Interrupted(KeyboardInterrupt):
    """INT, TERM or HUP: clean up and end."""


class Interrupts:
    """Within the block the first of INT, TERM and HUP raises Interrupted in the main thread.

    Later ones do nothing, so that they cannot cut the clean-up short. An exception that is raised
    inside of a library need not come out of it as it went in, so ask :attr:`came` as well.
    """

    _NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        """Describes the block; nothing is caught yet."""
        self.came = False
        """Whether one of the signals has come."""
        self._shielded = False

    def __enter__(self) -> Self:
        """Catches the signals.

        Raises:
            ValueError: this is not the main thread, the only one that may handle signals.
        """
        self._previous = {
            number: signal.signal(number, self._on_signal) for number in self._NUMBERS
        }
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Handles them as before."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def shield(self) -> Iterator[None]:
        """Puts a signal off to the end of the block, whose work must not be left half done."""
        came_before, self._shielded = self.came, True
        try:
            yield
        finally:
            self._shielded = False
        if self.came and not came_before:
            raise Interrupted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        first, self.came = not self.came, True
        if first and not self._shielded:
            raise Interrupted
