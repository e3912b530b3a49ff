"""Makes TERM and HUP end a program as Ctrl-C does: through its ``finally`` blocks."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


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
