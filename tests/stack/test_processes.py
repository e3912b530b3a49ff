"""Processes are known again by more than their id, and ended with all that they started."""

from __future__ import annotations

import os
import signal
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from freshet.errors import StackError
from freshet.stack.processes import (
    ProcessIdentity,
    ServerProcess,
    kill_stack_processes,
    processes_of_stack,
    start_process,
    stop_processes,
    tail,
    wait_until,
)
from tests.stack.waiting import wait_for


def start(tmp_path: Path, script: str, stack_id: str = "") -> ServerProcess:
    return start_process(
        "test server",
        ["bash", "-c", script],
        stack_id=stack_id or uuid.uuid4().hex,
        output=tmp_path / "out.log",
    )


def says_ready(process: ServerProcess) -> None:
    wait_for(lambda: "ready" in process.log.read_text(), "the server says that it is ready")


def test_stops_a_server_that_ends_on_term(tmp_path: Path) -> None:
    server = start(
        tmp_path, "trap 'echo ended; exit 0' TERM; echo ready; while :; do read -t 1; done"
    )
    says_ready(server)

    stop_processes([server], deadline_s=20)

    assert not server.is_alive()
    assert "ended" in server.log.read_text()


def test_kills_a_server_that_ignores_term(tmp_path: Path) -> None:
    server = start(tmp_path, "trap '' TERM; echo ready; while :; do read -t 1; done")
    says_ready(server)

    stop_processes([server], deadline_s=0.2)

    assert not server.is_alive()


def test_never_signals_a_process_that_only_has_the_same_id(tmp_path: Path) -> None:
    server = start(tmp_path, "echo ready; sleep 600")
    try:
        # What is left of an earlier process whose id the kernel has given away since.
        earlier = replace(server.identity, started=server.identity.started + "0")
        assert not earlier.is_alive()

        earlier.signal(signal.SIGKILL)
        stop_processes([ServerProcess("earlier", earlier, server.log)], deadline_s=1)

        assert server.is_alive()
    finally:
        server.kill()
    assert not server.is_alive()


def test_ends_orphans_of_a_stack_and_nothing_else(tmp_path: Path) -> None:
    stack_id = uuid.uuid4().hex
    # The server starts a child in a session of its own and dies, as a killed TaskManager may.
    server = start(tmp_path, "setsid sleep 600 & echo ready; sleep 600", stack_id)
    bystander = start(tmp_path, "sleep 600")
    try:
        wait_for(lambda: len(processes_of_stack(stack_id)) >= 2, "the child runs")
        server.kill()
        orphans = processes_of_stack(stack_id)
        assert orphans

        killed = kill_stack_processes(stack_id)

        assert {orphan.pid for orphan in orphans} <= set(killed)
        assert processes_of_stack(stack_id) == []
        assert bystander.is_alive()
    finally:
        bystander.kill()


def test_a_zombie_is_not_alive(tmp_path: Path) -> None:
    server = start(tmp_path, "echo ready; sleep 600")
    os.kill(server.pid, signal.SIGKILL)
    # Nobody has reaped it yet: the id exists, the process does not.
    wait_for(lambda: not server.identity.is_alive(), "the kill takes effect")
    assert ProcessIdentity.of(server.pid) is None
    assert not server.is_alive()


def test_a_zombie_with_threads_that_still_hold_its_port_is_alive(tmp_path: Path) -> None:
    # Its first thread ends by itself, as that of a killed process may before the others.
    server = start_process(
        "test server",
        [
            sys.executable,
            "-uc",
            "import ctypes, threading, time\n"
            "threading.Thread(target=time.sleep, args=(600,)).start()\n"
            "print('ready')\n"
            "ctypes.CDLL(None).pthread_exit(None)",
        ],
        stack_id=uuid.uuid4().hex,
        output=tmp_path / "out.log",
    )
    says_ready(server)
    stat = Path(f"/proc/{server.pid}/stat")
    wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", "its first thread ends")

    assert server.is_alive()
    assert ProcessIdentity.of(server.pid) == server.identity
    server.kill()
    assert not server.is_alive()


def test_waiting_for_a_server_that_ended_shows_its_log(tmp_path: Path) -> None:
    server = start(tmp_path, "echo port is taken; exit 3")
    with pytest.raises(StackError, match=r"(?s)test server ended before .* answer.*port is taken"):
        wait_until(lambda: False, server=server, deadline_s=20, what="answer")


def test_waiting_for_a_server_that_never_answers_ends_at_the_deadline(tmp_path: Path) -> None:
    server = start(tmp_path, "echo still loading; sleep 600")
    try:
        wait_for(lambda: "loading" in server.log.read_text(), "the server logs")
        with pytest.raises(StackError, match=r"(?s)did not answer within 0 s.*still loading"):
            wait_until(lambda: False, server=server, deadline_s=0.1, what="answer")
    finally:
        server.kill()


def test_a_program_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="make setup"):
        start_process(
            "nothing", [str(tmp_path / "absent")], stack_id="x", output=tmp_path / "out.log"
        )


def test_tail_is_short_and_says_when_there_is_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert "no log" in tail(log)
    log.write_text("")
    assert tail(log) == "(nothing)"
    log.write_text("".join(f"line {n}\n" for n in range(100_000)))
    assert tail(log, lines=2) == "line 99998\nline 99999"
