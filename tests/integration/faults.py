"""Faults as data: what breaks, how, and at which point of a workload.

A test is a script of faults::

    FAULTS = (
        Fault(Kind.KILL, Target.TASK_MANAGER, when=0.4),
        Fault(Kind.EMPTY, Target.REDIS, when=0.7),
    )

:func:`fire` makes one happen, asserts that it did, and gives the way back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from freshet.stack.stack import Stack
from tests.integration.polling import eventually


class Kind(Enum):
    """What happens."""

    KILL = "kill"
    """SIGKILL; what is on disk stays."""

    EMPTY = "empty"
    """SIGKILL, and what it knew is gone."""


class Target(Enum):
    """To whom."""

    TASK_MANAGER = "task manager"
    REDIS = "redis"


@dataclass(frozen=True)
class Fault:
    """One fault."""

    kind: Kind
    target: Target
    when: float
    """How far the workload has come, 0 to 1."""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.target.value} at {self.when:.0%}"


@contextlib.contextmanager
def fired(stack: Stack, fault: Fault) -> Iterator[None]:
    """Holds while the fault is there, and heals it at the end, whatever happened meanwhile."""
    heal = _FIRE[fault.kind, fault.target](stack)
    try:
        yield
    finally:
        heal()


def _kill_task_manager(stack: Stack) -> Callable[[], None]:
    name, process = next(iter(stack.flink.task_managers.items()))
    assert process.is_alive(), f"{name} must run before it is killed"
    killed = stack.flink.kill_task_manager(name)
    assert killed == name
    assert not process.is_alive(), f"{name} survived"

    def heal() -> None:
        stack.flink.start_task_manager()
        stack.flink.wait_until_lost(name)

    return heal


def _kill_redis(stack: Stack) -> Callable[[], None]:
    return _end_redis(stack, keep_data=True)


def _empty_redis(stack: Stack) -> Callable[[], None]:
    return _end_redis(stack, keep_data=False)


def _end_redis(stack: Stack, *, keep_data: bool) -> Callable[[], None]:
    server = stack.home_redis
    process = server.process
    assert process is not None and process.is_alive(), "Redis must run before it is killed"
    server.kill()
    assert not process.is_alive(), "Redis survived"

    def heal() -> None:
        server.restart(keep_data=keep_data)
        assert server.process is not None and server.pid != process.pid
        eventually(lambda: server.pid, "Redis runs again")

    return heal


_FIRE: dict[tuple[Kind, Target], Callable[[Stack], Callable[[], None]]] = {
    (Kind.KILL, Target.TASK_MANAGER): _kill_task_manager,
    (Kind.KILL, Target.REDIS): _kill_redis,
    (Kind.EMPTY, Target.REDIS): _empty_redis,
}
