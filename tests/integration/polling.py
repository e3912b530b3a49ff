"""Waiting for what the pipeline does on its own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

DEADLINE_S = 60.0
"""Long for a busy machine; a condition that holds is seen within one pause."""

_PAUSE_S = 0.05

T = TypeVar("T")


def eventually(probe: Callable[[], T], what: str, deadline_s: float = DEADLINE_S) -> T:
    """Polls until the probe gives something true, and returns that.

    Raises:
        AssertionError: it did not until the deadline; with what it gave, or raised, last.
    """
    deadline = time.monotonic() + deadline_s
    while True:
        last: object
        try:
            value = probe()
            if value:
                return value
            last = value
        except AssertionError as e:  # a condition that is written as assertions
            last = e
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {deadline_s:.0f} s: {what}; last: {last}")
        time.sleep(_PAUSE_S)
