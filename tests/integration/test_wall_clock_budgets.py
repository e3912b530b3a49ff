"""Budgets by the wall clock: a rate, and a share of the subtask's time.

Goal: neither budget is exceeded, both are used, and every key ends with the value of its window.

Method: two tables side by side, one subtask each, with more events than their budgets cover. The
function takes a known time. Updates are counted in the change events over some seconds in the
middle, by the time of computation; then the flow ends and the keys are read.

Fails when: a budget is exceeded by more than a fifth, or used to less than half while keys are
pending (a busy machine computes less); a key's final value is not that of its window.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pytest

from freshet.stack.stack import Stack
from tests.integration.agreement import packed
from tests.integration.job import Job, running
from tests.integration.polling import eventually
from tests.integration.topics import event_json
from tests.reference.model import Event

pytestmark = pytest.mark.integration

KEYS = tuple(f"key-{i}" for i in range(80))
WINDOW = 3

RATE = 20.0
"""Updates per second."""

SHARE = 0.4
COMPUTE_S = 0.02
"""What the function takes at the least."""

ROUNDS = 80
ROUND_S = 0.1
WARM_UP_ROUNDS = 20
"""Rounds before the count begins: first values, and the function's process."""

DEFINITION = """
import time

from freshet import *


class Slow(FeatureFunction):
    def compute(self, window):
        time.sleep({seconds})
        return [window.values[-1], window.values.sum(), len(window)]


table = FeatureTable(
    name={name!r},
    function=Slow(),
    window=Points({window}),
    budget={budget},
)
"""


def prepare(stack: Stack, folder: Path, name: str, budget: str, seconds: float) -> Job:
    """A table with one subtask."""
    file = folder / f"{name}.py"
    file.write_text(
        DEFINITION.format(name=name, budget=budget, seconds=seconds, window=WINDOW),
        encoding="utf-8",
    )
    job = Job(stack, file)
    job.create_topics()
    return job


def test_budgets_by_the_wall_clock(stack: Stack, tmp_path: Path) -> None:
    by_rate = prepare(stack, tmp_path, "by_rate", f"Rate({RATE})", 0.0)
    by_share = prepare(stack, tmp_path, "by_share", f"TimeShare({SHARE})", COMPUTE_S)
    with running(by_rate), running(by_share):
        windows, begin_ms, end_ms = flow([by_rate, by_share])
        seconds = (end_ms - begin_ms) / 1_000

        updates = updates_between(by_rate, begin_ms, end_ms)
        # A bucket that holds one second's worth may have been full at the beginning.
        assert RATE * seconds * 0.5 <= updates <= RATE * (seconds + 1) * 1.2

        computing = updates_between(by_share, begin_ms, end_ms) * COMPUTE_S
        assert SHARE * seconds * 0.5 <= computing <= SHARE * seconds * 1.2

        for job in (by_rate, by_share):
            wait_for_final_values(job, windows)
            assert job.restarts == 0


def flow(jobs: Sequence[Job]) -> tuple[dict[str, deque[float]], int, int]:
    """Sends every key one event a round.

    Returns:
        The final window of each key, and the time between which to count, epoch milliseconds.
    """
    windows = {key: deque[float](maxlen=WINDOW) for key in KEYS}
    pace, begin_ms = threading.Event(), 0
    for number in range(ROUNDS):
        if number == WARM_UP_ROUNDS:
            begin_ms = now_ms()
        for index, key in enumerate(KEYS):
            event = Event(key, now_ms(), float(number + index))
            windows[key].append(event.value)
            for job in jobs:
                job.topics.send(job.events_topic, event_json(event), key.encode())
        for job in jobs:
            job.topics.flush()
        pace.wait(ROUND_S)
    return windows, begin_ms, now_ms()


def now_ms() -> int:
    """Epoch milliseconds."""
    return int(time.time() * 1_000)


def updates_between(job: Job, begin_ms: int, end_ms: int) -> int:
    """Counts updates by their time of computation, once later ones are in the topic, too."""

    def later_ones() -> list[int]:
        times = [change.computed_at_ms for change in job.changes()]
        return times if max(times, default=0) > end_ms else []

    times = eventually(later_ones, f"updates of {job.table.name} after the flow")
    return sum(begin_ms <= time < end_ms for time in times)


def wait_for_final_values(job: Job, windows: dict[str, deque[float]]) -> None:
    """Each key's value becomes that of its last window, once the budget has caught up."""
    expected = {
        key: packed([window[-1], sum(window), float(len(window))])[1]
        for key, window in windows.items()
    }

    def caught_up() -> bool:
        stored = {key: value.payload for key, value in job.store.get_many(KEYS).items()}
        assert stored == expected
        return True

    eventually(caught_up, f"{job.table.name} catches up")
