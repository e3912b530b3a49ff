"""CPU and memory of a stack's processes and of the machine, as the kernel counts them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from freshet.stack import Stack
from freshet.stack.processes import processes_of_stack

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Of /proc/<pid>/stat, after the command's name.
_STAT_PARENT = 1
_STAT_USER_TICKS = 11
_STAT_SYSTEM_TICKS = 12
_STAT_RESIDENT_PAGES = 21

# Of the first line of /proc/stat, after its name.
_IDLE = 3
_WAITING = 4

FUNCTION = "feature function"
"""What TaskManagers start, and what that starts."""


@dataclass(frozen=True)
class Usage:
    """What a process, or several of one role, have used."""

    cpu_s: float = 0.0
    """Since its start, seconds of a core."""

    resident_bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.cpu_s + other.cpu_s, self.resident_bytes + other.resident_bytes)


@dataclass(frozen=True)
class Reading:
    """Usage of every role at a time."""

    at_s: float
    usage: Mapping[str, Usage]

    def cores_since(self, earlier: Reading) -> dict[str, float]:
        """Cores that each role was busy on, on average since then."""
        elapsed = self.at_s - earlier.at_s
        return {
            role: (now.cpu_s - earlier.usage.get(role, Usage()).cpu_s) / elapsed
            for role, now in self.usage.items()
        }


def read_usage(stack: Stack) -> Reading:
    """Reads the usage of the stack's processes, and of this one as the "load generator"."""
    roles = {os.getpid(): "load generator"}
    task_managers = {server.pid for server in stack.flink.task_managers.values()}
    roles |= dict.fromkeys(task_managers, "TaskManager")
    if stack.flink.job_manager is not None:
        roles[stack.flink.job_manager.pid] = "JobManager"
    if stack.kafka.pid is not None:
        roles[stack.kafka.pid] = "Kafka"
    if stack.home_redis.process is not None:
        roles[stack.home_redis.process.pid] = "Redis"
    processes = {}
    for pid in [os.getpid(), *(identity.pid for identity in processes_of_stack(stack.id))]:
        with contextlib.suppress(OSError):  # It ended meanwhile.
            processes[pid] = _read_process(pid)
    found: dict[str, Usage] = {}
    for pid, (parent, usage) in processes.items():
        ancestor = parent
        while ancestor in processes and ancestor not in task_managers:
            ancestor, _ = processes[ancestor]
        role = roles.get(pid, FUNCTION if ancestor in task_managers else "other")
        found[role] = found.get(role, Usage()) + usage
    return Reading(time.monotonic(), found)


class BusyCores:
    """How many cores were busy, whatever with, since it was made."""

    def __init__(self) -> None:
        self._idle, self._all = _machine_ticks()

    def average(self) -> float:
        """Cores, on average until now."""
        idle, total = _machine_ticks()
        return (1 - (idle - self._idle) / max(1, total - self._all)) * (os.cpu_count() or 1)


def _machine_ticks() -> tuple[int, int]:
    """Idle ones and all, of all cores together; guests' are part of users'."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return ticks[_IDLE] + ticks[_WAITING], sum(ticks)


def _read_process(pid: int) -> tuple[int, Usage]:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    fields = text.rpartition(")")[2].split()
    ticks = int(fields[_STAT_USER_TICKS]) + int(fields[_STAT_SYSTEM_TICKS])
    resident = int(fields[_STAT_RESIDENT_PAGES]) * _PAGE_BYTES
    return int(fields[_STAT_PARENT]), Usage(ticks / _TICKS_PER_SECOND, resident)


def folder_bytes(folder: Path) -> int:
    """Bytes on disk of the files in a folder; several links to a file count once."""
    sizes: dict[tuple[int, int], int] = {}
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            stat = file.lstat()
            sizes[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
    return sum(sizes.values())
