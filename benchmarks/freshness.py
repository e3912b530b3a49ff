"""From an event to the feature that contains it, as a reader of Redis sees it.

The clock starts before the event is handed to the Kafka producer, and stops when the value in Redis
has an event time that is at least the event's. Unloaded, one event is under way at a time. Loaded,
events of random keys come at 80 % of the updates a second that the job can make, and some of them
are timed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.context import Context
from benchmarks.figures import Figure, percentile
from benchmarks.pipeline import Pace, RunningTable, in_background, start_table
from benchmarks.readings import PERIOD, WINDOW, readings
from benchmarks.servers import stack as started_stack

_LOAD = 0.8
_MILLIS = 1_000
_PROBE_POLL_S = 0.001
_PROBES_PER_SECOND = 50.0
_PROBE_DEADLINE_S = 120.0


@dataclass(frozen=True)
class _Subject:
    """A table to measure."""

    name: str
    function: str
    window: int
    keys: int
    saturating: float
    """Events a second that are more than it can compute."""

    unloaded_pause_s: float
    """Between two events that are alone, so that they are."""

    def definition(self) -> dict[str, str]:
        return {
            "function": self.function,
            "window": f"Points({self.window})",
            "budget": "TimeShare(1.0)",
        }


_SUBJECTS = (
    _Subject("aggregate", "Aggregate()", 36, 2_000, 40_000.0, 0.03),
    _Subject(
        "STL", f"STLDecomposition(period={PERIOD}, method='statsmodels')", WINDOW, 129, 200.0, 0.3
    ),
)


def run(context: Context) -> list[Figure]:
    """An aggregate and STL, each at one subtask."""
    figures: list[Figure] = []
    for subject in _SUBJECTS:
        folder = f"freshness-{subject.name}"
        with (
            started_stack(context, folder, task_managers=1) as stack,
            start_table(
                stack, context.scratch, f"bench_{subject.name}", **subject.definition()
            ) as table,
        ):
            figures += _Measurement(context, subject, table).run()
    return figures


class _Measurement:
    """One table's turns."""

    def __init__(self, context: Context, subject: _Subject, table: RunningTable) -> None:
        self._context = context
        self._subject = subject
        self._table = table
        self._random = random.Random(20_261_120)
        self._keys = [f"vm-{i:05d}" for i in range(subject.keys)]
        self._last_ms = 0

    def run(self) -> list[Figure]:
        """Fills the windows, finds the capacity, then takes turns."""
        self._say(f"filling {len(self._keys):,} windows")
        self._table.produce_all(self._history())
        self._table.wait_until_stored()
        seconds = 10.0 if self._context.quick else 20.0
        capacity = self._capacity(seconds)
        unloaded, loaded = [], []
        for turn in range(min(self._context.rounds, 3)):
            self._say(f"unloaded, round {turn + 1}")
            unloaded.append(self._unloaded(seconds))
            self._say(f"at {_LOAD:.0%} of {capacity:,.0f} updates/s, round {turn + 1}")
            loaded.append(self._loaded(_LOAD * capacity, seconds))
            self._table.wait_until_stored()
        return self._figures(capacity, unloaded, loaded)

    def _figures(
        self, capacity: float, unloaded: list[list[float]], loaded: list[list[float]]
    ) -> list[Figure]:
        figures = []
        for percent in (50, 99):
            alone = Figure(
                f"{self._subject.name}, p{percent}, unloaded",
                "ms",
                tuple(percentile(turn, percent) for turn in unloaded),
                note=f"{sum(map(len, unloaded))} events, one at a time",
            )
            figures += [
                alone,
                Figure(
                    f"{self._subject.name}, p{percent}, at 80 % of capacity",
                    "ms",
                    tuple(percentile(turn, percent) for turn in loaded),
                    alone,
                    note=f"{sum(map(len, loaded))} timed events",
                ),
            ]
        note = "budget: all of one subtask's time; every event makes its key pending"
        capacity_figure = Figure(
            f"{self._subject.name}, capacity", "updates/s", (capacity,), note=note
        )
        return [*figures, capacity_figure]

    def _say(self, text: str) -> None:
        self._context.say(f"{self._subject.name}: {text}")

    def _history(self) -> Iterator[tuple[str, int, float]]:
        """A full window of every key, ending a while ago."""
        values = readings()
        window = self._subject.window
        start = int(time.time() * _MILLIS) - (window + 60) * _MILLIS
        for row in range(window):
            for column, key in enumerate(self._keys):
                yield key, start + row * _MILLIS, float(values[row, column % values.shape[1]])

    def _send(self, key: str) -> int:
        """Sends an event of this moment; returns its event time."""
        # Strictly increasing, so that a later event of a key is never a duplicate.
        self._last_ms = max(self._last_ms + 1, int(time.time() * _MILLIS))
        self._table.produce(key, self._last_ms, self._random.uniform(0, 100))
        return self._last_ms

    def _capacity(self, seconds: float) -> float:
        """Updates a second with more events than can be computed."""
        self._say("finding the capacity")
        keys = iter(self._shuffled_keys())
        pace = Pace(self._subject.saturating)

        def step() -> None:
            now = int(time.time() * _MILLIS)
            self._table.produce(next(keys), now, self._random.uniform(0, 100))
            pace.wait()

        with in_background(step):
            time.sleep(seconds / 4)
            capacity = self._table.writes_per_second(seconds)
        self._table.wait_until_stored()
        return capacity

    def _shuffled_keys(self) -> Iterator[str]:
        """Every key in turn, in another order each time."""
        while True:
            order = self._keys[:]
            self._random.shuffle(order)
            yield from order

    def _unloaded(self, seconds: float) -> list[float]:
        """Freshness of events that are alone, milliseconds."""
        found = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            key = self._random.choice(self._keys)
            begun = time.perf_counter()
            event_time = self._send(key)
            while self._table.event_times([key])[0] < event_time:
                if time.perf_counter() - begun > _PROBE_DEADLINE_S:
                    raise RuntimeError(f"the event of {key} at {event_time} was never computed")
                time.sleep(_PROBE_POLL_S / 4)
            found.append((time.perf_counter() - begun) * _MILLIS)
            time.sleep(self._subject.unloaded_pause_s * self._random.uniform(0.5, 1.5))
        return found

    def _loaded(self, per_second: float, seconds: float) -> list[float]:
        """Freshness of some of the events at this rate, milliseconds."""
        under_way: dict[str, tuple[int, float]] = {}
        share = min(1.0, _PROBES_PER_SECOND / per_second)
        pace = Pace(per_second)
        begun = time.monotonic()
        warm, end = begun + seconds / 4, begun + seconds * 5 / 4

        def step() -> None:
            key = self._random.choice(self._keys)
            timed = warm < time.monotonic() < end and self._random.random() < share
            sent = time.perf_counter()
            event_time = self._send(key)
            if timed and key not in under_way:
                under_way[key] = (event_time, sent)
            pace.wait()

        found: list[float] = []
        with in_background(step):
            while time.monotonic() < end or under_way:
                if time.monotonic() > end + _PROBE_DEADLINE_S:
                    raise RuntimeError(f"{len(under_way)} events were never computed")
                self._collect(under_way, found)
                time.sleep(_PROBE_POLL_S)
        return found

    def _collect(self, under_way: dict[str, tuple[int, float]], found: list[float]) -> None:
        waiting = list(under_way.items())
        if not waiting:
            return
        times = self._table.event_times([key for key, _ in waiting])
        now = time.perf_counter()
        for (key, (event_time, sent)), stored in zip(waiting, times, strict=True):
            if stored >= event_time:
                del under_way[key]
                found.append((now - sent) * _MILLIS)
