"""Feature functions that do what must not harm anyone else, chosen by the key."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from freshet.functions import FeatureFunction, RateLimited, Window

HUGE_OUTPUT_BYTES = 1 << 20
HUGE_VALUE_NUMBERS = 2_000_000


def sleep_for_ever() -> None:
    while True:
        time.sleep(60)


def loop_for_ever() -> None:
    while True:
        pass


def loop_without_signals() -> None:
    """Not even a fault handler can run."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass


def hold_the_interpreter_in_c() -> None:
    """Hangs in C with the interpreter lock held, so that no Python handler can run."""
    sum(itertools.repeat(0))


def swallow_interruptions() -> None:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def crash() -> None:
    ctypes.string_at(0)


def print_much() -> None:
    print("x" * HUGE_OUTPUT_BYTES, flush=True)
    os.write(1, b"a raw line\n" * 1000)
    print("to the error stream", file=sys.stderr)


def start_a_child_and_exit() -> None:
    """Leaves a process behind that holds the channel open."""
    if os.fork() == 0:
        sleep_for_ever()
    os._exit(3)


def spawn_and_hang(pid_file: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(pid_file).write_text(str(process.pid))
    loop_without_signals()


ACTIONS: dict[str, Callable[[], Any]] = {
    "raises": lambda: (_ for _ in ()).throw(ValueError("no good")),
    "sleeps": sleep_for_ever,
    "loops": loop_for_ever,
    "loops without signals": loop_without_signals,
    "hangs in C": hold_the_interpreter_in_c,
    "swallows interruptions": swallow_interruptions,
    "ends its process": lambda: os._exit(7),
    "exits": lambda: sys.exit(5),
    "crashes": crash,
    "prints much": print_much,
    "forks and ends": start_a_child_and_exit,
    "kills its supervisor": lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(60)),
    "changes the alarm": lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN),
}

VALUES: dict[str, Callable[[], Any]] = {
    "NaN": lambda: np.array([1.0, np.nan]),
    "infinity": lambda: [1.0, float("inf")],
    "too large": lambda: [1e300],
    "NaN inside": lambda: {"a": [1.0, {"b": float("nan")}]},
    "None": lambda: None,
    "matrix": lambda: np.ones((2, 2)),
    "object": object,
    "huge": lambda: np.ones(HUGE_VALUE_NUMBERS),
    "tree": lambda: {"a": [1, True, None, "text", b"bytes"]},
}


@dataclass
class Misbehaving(FeatureFunction):
    """Does what its key says; a well-behaved key gets the sum of its window."""

    pid_file: str = ""

    def compute(self, window: Window) -> Any:
        if window.key == "spawns":
            spawn_and_hang(self.pid_file)
        ACTIONS.get(window.key, lambda: None)()
        if window.key in VALUES:
            return VALUES[window.key]()
        return [float(np.sum(window.values))]


@dataclass
class MisbehavingTogether(Misbehaving):
    """The same, computing keys together."""

    def compute_batch(self, windows: Sequence[Window]) -> list[Any]:
        return [self.compute(window) for window in windows]


@dataclass
class Short(Misbehaving):
    """Computes together, and loses a value on the way."""

    def compute_batch(self, windows: Sequence[Window]) -> list[Any]:
        return [self.compute(window) for window in windows][1:]


@dataclass
class Marked(FeatureFunction):
    """Tells whether it was computed together (1) or alone (0), and in which process."""

    def compute(self, window: Window) -> Any:
        return [0, os.getpid()]

    def compute_batch(self, windows: Sequence[Window]) -> list[Any]:
        return [[1, os.getpid()] for _ in windows]


@dataclass
class ChangesItsWindow(FeatureFunction):
    """Changes the window in place; the second attempt must see the original."""

    def compute(self, window: Window) -> Any:
        return [float(np.sum(window.values))]

    def compute_batch(self, windows: Sequence[Window]) -> list[Any]:
        for window in windows:
            window.values[:] = -1  # type: ignore[index]
        raise ValueError("after the damage")


@dataclass
class Counting(FeatureFunction):
    """Counts its calls: a cache in a field."""

    calls: int = field(default=0, init=False)

    def compute(self, window: Window) -> Any:
        self.calls += 1
        ACTIONS.get(window.key, lambda: None)()
        return [self.calls]


class Unloadable(FeatureFunction):
    """Can't be loaded in the worker."""

    def prepare(self) -> None:
        raise ImportError("no module named left_pad")

    def compute(self, window: Window) -> Any:
        return [0.0]


class Threaded(FeatureFunction):
    """Starts a thread when it is loaded, as some libraries do."""

    def prepare(self) -> None:
        import threading

        self.prepared_in = os.getpid()
        threading.Thread(target=sleep_for_ever, daemon=True).start()

    def compute(self, window: Window) -> Any:
        ACTIONS.get(window.key, lambda: None)()
        return [float(self.prepared_in == os.getpid())]


@dataclass
class Limited(FeatureFunction):
    """A third party that takes so many calls, and then none for a while; a value counts the calls.

    Computes together where that is asked for.
    """

    calls_allowed: int
    retry_after_s: float
    calls: int = field(default=0, init=False)

    def compute(self, window: Window) -> list[float]:
        self.calls += 1
        if self.calls > self.calls_allowed:
            self.calls_allowed = 10**9  # as much as it is asked for, after the pause
            raise RateLimited(self.retry_after_s)
        return [float(self.calls)]


class LimitedTogether(Limited):
    def compute_batch(self, windows: Sequence[Window]) -> list[list[float]]:
        return [self.compute(window) for window in windows]
