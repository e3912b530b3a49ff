"""Keys as they are pressed, from a terminal that else waits for whole lines."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any

_NAMES = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"k": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"j": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b" ": "page down",
    b"\x03": "q",
    b"\x04": "q",
}
_BYTES_MAX = 64


class Keyboard:
    """The keys of the terminal that standard input is; none at all if it is something else."""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] = []

    def __enter__(self) -> Keyboard:
        if self._descriptor is not None:
            self._before = termios.tcgetattr(self._descriptor)
            tty.setcbreak(self._descriptor)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def wait(self, timeout_s: float) -> str | None:
        """The next key by its name or letter; None if none comes in time."""
        timeout_s = max(0.0, timeout_s)
        if self._descriptor is None:
            select.select([], [], [], timeout_s)
            return None
        if not select.select([self._descriptor], [], [], timeout_s)[0]:
            return None
        # A key with a name is several bytes, which come at once.
        pressed = os.read(self._descriptor, _BYTES_MAX)
        if not pressed:
            return "q"  # the terminal is gone
        return _NAMES.get(pressed, pressed[:1].decode("ascii", errors="replace"))
