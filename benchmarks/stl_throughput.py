"""STL updates a second: the whole pipeline at one and two subtasks, beside a plain loop.

The pipeline is Kafka, the scheduler, the function's process, Redis and the change topic. Its
budget is all of each subtask's time, and every machine has new readings each second, so that
something is always pending. The loop is statsmodels on one core, or two at once, on the same data.
Pipeline and loop take turns: the pipeline has nothing pending while the loop runs.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.context import REPOSITORY, Context
from benchmarks.figures import Aim, Figure
from benchmarks.pipeline import Pace, RunningTable, in_background, start_table
from benchmarks.readings import PERIOD, STEP_MS, WINDOW, readings
from benchmarks.servers import stack as started_stack

_SETTLE_S = 3.0
_START_MS = 1_500_000_000_000


class _Loop:
    """A process of ``stl_loop``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.stl_loop"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )

    def begin(self, first_row: int, seconds: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{first_row} {seconds}\n")
        self._process.stdin.flush()

    def result(self) -> float:
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def _loops(count: int) -> Iterator[list[_Loop]]:
    with ExitStack() as ends:
        started = []
        for _ in range(count):
            loop = _Loop()
            ends.callback(loop.close)
            loop.begin(0, 0.1)
            started.append(loop)
        for loop in started:
            loop.result()
        yield started


class _Feed:
    """Sends one reading of every machine after the other."""

    def __init__(self, table: RunningTable) -> None:
        self._table = table
        self._rows = itertools.cycle(range(WINDOW, len(readings())))
        self._sent = 0

    def fill(self) -> None:
        """The first window of every machine."""
        self._table.produce_all(event for row in range(WINDOW) for event in self._events_of(row))

    def next(self) -> None:
        """The next reading of every machine."""
        self._table.produce_all(self._events_of(next(self._rows)))

    @property
    def first_row(self) -> int:
        """First row of the window that ends with the newest reading."""
        return self._sent - WINDOW

    def _events_of(self, row: int) -> Iterator[tuple[str, int, float]]:
        time_ms = _START_MS + self._sent * STEP_MS
        self._sent += 1
        for machine, value in enumerate(readings()[row]):
            yield f"vm-{machine:03d}", time_ms, float(value)


def run(context: Context) -> list[Figure]:
    """One and two subtasks, each on a stack of its own."""
    figures: list[Figure] = []
    speeds = {}
    for subtasks in (1, 2):
        pipeline, loop = _measure(context, subtasks)
        cores = "one core" if subtasks == 1 else f"{subtasks} processes at once"
        base = Figure(f"plain loop of statsmodels, {cores}", "updates/s", loop)
        own = Figure(
            f"STL through the pipeline, {subtasks} subtask{'s' * (subtasks > 1)}",
            "updates/s",
            pipeline,
            base,
            Aim(0.9, of="ratio", at_least=True),
            f"{readings().shape[1]} Azure VMs, window of {WINDOW} points, period {PERIOD}",
        )
        speeds[subtasks] = own
        figures += [own, base]
    figures.append(Figure("two subtasks beside one", "updates/s", speeds[2].samples, speeds[1]))
    return figures


def _measure(context: Context, subtasks: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    seconds = 8.0 if context.quick else 20.0
    machines = readings().shape[1]
    pipeline, loops = [], []
    folder = f"stl-{subtasks}"
    with (
        started_stack(context, folder, task_managers=subtasks) as stack,
        _loops(subtasks) as started,
        start_table(
            stack,
            context.scratch,
            f"bench_stl_{subtasks}",
            window=f"Points({WINDOW})",
            function=f"STLDecomposition(period={PERIOD}, method='statsmodels')",
            budget="TimeShare(1.0)",
            parallelism=str(subtasks),
        ) as table,
    ):
        feed = _Feed(table)
        context.say(f"filling {machines} windows")
        feed.fill()
        table.wait_until_stored()
        for turn in range(min(context.rounds, 3)):
            context.say(f"pipeline with {subtasks} subtask(s), round {turn + 1}")
            pace = Pace(1.0)

            def step(pace: Pace = pace) -> None:
                feed.next()
                pace.wait()

            with in_background(step):
                time.sleep(_SETTLE_S)
                pipeline.append(table.writes_per_second(seconds))
            table.wait_until_stored()
            context.say(f"plain loop, {subtasks} process(es), round {turn + 1}")
            for loop in started:
                loop.begin(feed.first_row, seconds)
            loops.append(sum(loop.result() for loop in started))
    return tuple(pipeline), tuple(loops)
