"""Server processes: start them, know them again later, and end exactly those.

A process id alone is no identity, because the kernel gives it to another process later. Here a
process is known by its id together with its start time and the boot that it started in, and every
process of a stack, with all that it starts itself, carries the stack's id in its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from freshet.errors import StackError

STACK_ID_VARIABLE = "FRESHET_STACK_ID"
"""Environment variable that marks every process of a stack, and what those start."""

POLL_INTERVAL_S = 0.02
"""Pause between two looks at a condition."""

TERMINATE_DEADLINE_S = 10.0
"""How long a server may take to end after TERM before it is killed."""

KILL_DEADLINE_S = 10.0
"""How long the kernel may take to end a killed process; longer means it is stuck in the kernel."""

LOG_TAIL_LINES = 15
"""Lines of a failed server's log that an error message shows."""

_LOG_TAIL_BYTES = 16_384

T = TypeVar("T")


@dataclass(frozen=True)
class ProcessIdentity:
    """One process, told apart from every later one with the same id."""

    pid: int
    started: str
    """``<boot id>/<start time in clock ticks since boot>``."""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Identity of the process that has this id now; None when there is none, or a zombie."""
        started = _start_time(pid)
        return None if started is None else cls(pid, started)

    def is_alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        return _start_time(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, if the process is still the one that was meant."""
        # The descriptor pins the process: between the check and the signal the id cannot change
        # hands unnoticed.
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        except OSError:
            # A kernel without such descriptors leaves a gap of microseconds.
            if self.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
            return
        try:
            if self.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


@dataclass
class ServerProcess:
    """A server of the stack, and where it logs."""

    name: str
    """For messages, such as ``"Kafka broker"``."""

    identity: ProcessIdentity
    log: Path
    """What a failure's message shows the tail of."""

    popen: subprocess.Popen[bytes] | None = None
    """Set in the process that started the server, which has to reap it."""

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self.identity.pid

    def is_alive(self) -> bool:
        """Whether the server still runs."""
        if self.popen is not None:
            self.popen.poll()
        return self.identity.is_alive()

    def kill(self) -> None:
        """Kills the server at once, as a crash would, and waits until it is gone."""
        self.identity.signal(signal.SIGKILL)
        wait_for_exit([self], KILL_DEADLINE_S)

    def failure(self, what: str) -> StackError:
        """An error about this server, with the tail of its log."""
        return StackError(f"{self.name} {what}; its log {self.log} ends with:\n{tail(self.log)}")


def require_linux() -> None:
    """Raises where processes cannot be told apart.

    Raises:
        StackError: this is no Linux.
    """
    if sys.platform != "linux":
        raise StackError(
            f"the embedded stack runs on Linux, not on {sys.platform}; point FRESHET_CONFIG to"
            " servers that run elsewhere"
        )


def start_process(
    name: str,
    command: Sequence[str | os.PathLike[str]],
    *,
    stack_id: str,
    output: Path,
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> ServerProcess:
    """Starts a server in a session of its own, so that a terminal's Ctrl-C does not reach it.

    Args:
        name: for messages.
        command: program and arguments.
        stack_id: marks the process and what it starts.
        output: file that takes standard output and error.
        log: file where the server logs, if not in ``output``.
        environment: the whole environment; None for ours.
        directory: working directory.

    Raises:
        StackError: the program cannot be run.
    """
    env = dict(os.environ if environment is None else environment)
    env[STACK_ID_VARIABLE] = stack_id
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as sink:
        try:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise StackError(f"{name} cannot be started: {error}; run 'make setup'") from error
    # Not reaped yet, so it is there to be read even if it has ended already.
    _, started, _ = _read_stat(popen.pid)
    identity = ProcessIdentity(popen.pid, started)
    return ServerProcess(name, identity, log or output, popen)


def start_watchdog(stack_id: str, output: Path) -> ServerProcess:
    """Starts what kills the stack's processes when this process has ended, however it did.

    Args:
        stack_id: marks the processes; start the watchdog before any of them.
        output: file that takes its output.

    Raises:
        StackError: it cannot be run.
    """
    owner = ProcessIdentity.of(os.getpid())
    assert owner is not None, "this process runs"
    return start_process(
        "stack watchdog",
        [
            sys.executable,
            "-m",
            "freshet.stack.watchdog",
            stack_id,
            str(owner.pid),
            owner.started,
        ],
        stack_id=stack_id,
        output=output,
    )


def wait_until(
    condition: Callable[[], T | None],
    *,
    server: ServerProcess,
    deadline_s: float,
    what: str,
) -> T:
    """Polls until the condition gives something truthy, and returns that.

    Args:
        condition: cheap, and None or falsy while not met.
        server: must stay alive meanwhile.
        deadline_s: seconds from now.
        what: completes "did not … within 30 s".

    Raises:
        StackError: the server ended, or the time is over; with the tail of the server's log.
    """
    deadline = time.monotonic() + deadline_s
    while True:
        alive = server.is_alive()
        result = condition() if alive else None
        if result:
            return result
        if not alive:
            raise server.failure(f"ended before it did {what}")
        if time.monotonic() > deadline:
            raise server.failure(f"did not {what} within {deadline_s:.0f} s")
        time.sleep(POLL_INTERVAL_S)


def wait_for_exit(processes: Iterable[ServerProcess], deadline_s: float) -> list[ServerProcess]:
    """Waits for processes to end; returns those that still run after the deadline."""
    deadline = time.monotonic() + deadline_s
    waiting = list(processes)
    while True:
        waiting = [process for process in waiting if process.is_alive()]
        if not waiting or time.monotonic() > deadline:
            return waiting
        time.sleep(POLL_INTERVAL_S)


def stop_processes(processes: Iterable[ServerProcess], deadline_s: float) -> None:
    """Ends servers together: TERM first, KILL after the deadline.

    Raises:
        StackError: one survives even that.
    """
    running = [process for process in processes if process.is_alive()]
    for process in running:
        process.identity.signal(signal.SIGTERM)
    stubborn = wait_for_exit(running, deadline_s)
    for process in stubborn:
        process.identity.signal(signal.SIGKILL)
    immortal = wait_for_exit(stubborn, KILL_DEADLINE_S)
    if immortal:
        names = ", ".join(f"{process.name} (process {process.pid})" for process in immortal)
        raise StackError(f"{names} cannot be killed; the kernel holds them, see 'ps'")


def processes_of_stack(stack_id: str) -> list[ProcessIdentity]:
    """Every live process that carries the stack's id: servers, and whatever those have started."""
    marker = f"{STACK_ID_VARIABLE}={stack_id}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        # A process that ends while we look, or another user's, is none of ours.
        with contextlib.suppress(OSError):
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                identity = ProcessIdentity.of(int(entry.name))
                if identity is not None:
                    found.append(identity)
    return found


def kill_stack_processes(stack_id: str) -> list[int]:
    """Kills what is left of a stack (orphaned Python workers, say) and returns their ids."""
    killed: list[int] = []
    deadline = time.monotonic() + KILL_DEADLINE_S
    while left := processes_of_stack(stack_id):
        for identity in left:
            identity.signal(signal.SIGKILL)
            killed.append(identity.pid)
        if time.monotonic() > deadline:
            pids = ", ".join(str(identity.pid) for identity in left)
            raise StackError(f"processes {pids} of the stack cannot be killed; see 'ps'")
        time.sleep(POLL_INTERVAL_S)
    return sorted(set(killed))


def tail(file: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The last lines of a log; says so when there are none."""
    try:
        with file.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
            text = log.read().decode("utf-8", errors="replace").rstrip()
    except OSError as error:
        return f"(no log: {error.strerror})"
    return "\n".join(text.splitlines()[-lines:]) or "(nothing)"


def _start_time(pid: int) -> str | None:
    try:
        state, started, threads = _read_stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A killed process is a zombie as soon as its first thread has ended: while it has others, these
    # still hold its ports and files.
    return None if state in "ZX" and threads <= 1 else started


def _read_stat(pid: int) -> tuple[str, str, int]:
    """State, start time and number of threads of a process, zombies included."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    # The command name, in parentheses, may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return fields[0], f"{_boot_id()}/{fields[19]}", int(fields[17])


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
