"""Waiting for what happens in another process."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_S = 60.0


def wait_for(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Polls until the condition holds; fails the test when it does not in time."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {deadline_s:.0f} s"
        time.sleep(0.05)
