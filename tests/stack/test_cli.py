"""The command line as a user has it: one process a command, state in a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from freshet.stack import Stack
from freshet.stack.processes import ProcessIdentity, processes_of_stack
from tests.stack.waiting import wait_for

PROGRAM = Path(sys.prefix) / "bin" / "freshet"

Result = subprocess.CompletedProcess[str]


def freshet(home: Path, *arguments: str, **environment: str) -> Result:
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("FRESHET_")}
    return subprocess.run(
        [str(PROGRAM), *arguments],
        env=cleared | {"FRESHET_HOME": str(home), "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def answer(result: Result) -> Any:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def one_line_error(result: Result) -> str:
    assert result.returncode == 1
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("freshet: ")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of a running detached stack with two regions."""
    folder = tmp_path_factory.mktemp("home")
    try:
        answer(freshet(folder, "up", "--regions", "local:home,local:away", "--json"))
        yield folder
    finally:
        freshet(folder, "down")


@pytest.mark.integration
def test_status_prints_endpoints_processes_and_jobs(home: Path) -> None:
    status = answer(freshet(home, "status", "--json"))

    assert {"kafka", "redis", "flink", "jobs", "tables", "regions", "plans"} <= set(status)
    assert {source["name"]: source["error"] for source in status["sources"]} == {
        "Kafka": None,
        "Flink": None,
        "Redis of local:home": None,
        "Redis of local:away": None,
    }
    assert set(status["kafka"]) == {"bootstrap", "pid"}
    assert set(status["redis"]) == {"local:home", "local:away"}
    assert all(set(server) == {"url", "pid"} for server in status["redis"].values())
    assert set(status["flink"]) == {"rest", "jobmanager", "taskmanagers"}
    assert set(status["flink"]["jobmanager"]) == {"pid"}
    assert [set(worker) for worker in status["flink"]["taskmanagers"]] == [{"id", "pid"}] * 2
    assert status["jobs"] == []
    pids = pids_of(status)
    assert len(set(pids)) == 6
    assert all(ProcessIdentity.of(pid) is not None for pid in pids)


@pytest.mark.integration
def test_status_for_people_names_the_same(home: Path) -> None:
    status = answer(freshet(home, "status", "--json"))
    shown = freshet(home, "status").stdout
    assert status["kafka"]["bootstrap"] in shown
    assert str(status["flink"]["jobmanager"]["pid"]) in shown
    assert "No jobs" in shown


@pytest.mark.integration
def test_a_second_stack_in_the_same_folder_is_refused(home: Path) -> None:
    assert "runs already" in one_line_error(freshet(home, "up"))
    answer(freshet(home, "status", "--json"))


@pytest.mark.integration
def test_a_dead_task_manager_is_replaced(home: Path) -> None:
    workers = answer(freshet(home, "status", "--json"))["flink"]["taskmanagers"]
    os.kill(workers[0]["pid"], signal.SIGKILL)

    def replaced() -> bool:
        stack = Stack.attach(home)
        assert stack is not None
        registered = set(stack.flink.rest.task_managers())
        return len(registered - {worker["id"] for worker in workers}) == 1

    wait_for(replaced, "a new TaskManager is registered")
    now = answer(freshet(home, "status", "--json"))["flink"]["taskmanagers"]
    assert workers[0]["id"] not in {worker["id"] for worker in now}
    assert len(now) == 2


@pytest.mark.integration
def test_submit_refuses_a_wrong_definition(home: Path, tmp_path: Path) -> None:
    definition = tmp_path / "table.yaml"
    definition.write_text("name: 'bad name'\nwindow: {points: 0}\n")
    message = one_line_error(freshet(home, "submit", str(definition)))
    assert "name" in message and "window" in message and "problems" in message


@pytest.mark.integration
def test_submit_tells_when_there_are_too_few_slots(home: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "cpu_stl.yaml"
    message = one_line_error(freshet(home, "submit", str(example), "--parallelism", "7"))
    assert "7 slot" in message and "--task-managers" in message


@pytest.mark.integration
def test_down_ends_exactly_the_stack(tmp_path: Path) -> None:
    status = answer(freshet(tmp_path, "up", "--task-managers", "1", "--json"))
    stack = Stack.attach(tmp_path)
    assert stack is not None
    identities = [ProcessIdentity.of(pid) for pid in {*pids_of(status), *stack.pids()}]
    assert all(identity is not None for identity in identities)

    assert answer(freshet(tmp_path, "down", "--json"))["stopped"] is True

    assert not any(identity.is_alive() for identity in identities if identity)
    assert processes_of_stack(stack.id) == []
    assert answer(freshet(tmp_path, "down", "--json")) == {"stopped": False}
    assert "freshet up" in one_line_error(freshet(tmp_path, "status"))


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_up_leaves_nothing(tmp_path: Path, number: int) -> None:
    state = tmp_path / "stack.json"
    command = subprocess.Popen(
        [str(PROGRAM), "up"],
        env=os.environ | {"FRESHET_HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(state.exists, "the start has begun")
    stack = Stack.attach(tmp_path)
    assert stack is not None
    wait_for(stack.pids, "a server runs")

    command.send_signal(number)

    assert command.wait(timeout=60) != 0
    assert processes_of_stack(stack.id) == []
    assert not state.exists()


def test_commands_without_a_stack_say_how_to_start_one(tmp_path: Path) -> None:
    assert "freshet up" in one_line_error(freshet(tmp_path, "status"))
    assert "freshet up" in one_line_error(freshet(tmp_path, "submit", "table.py"))


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text("{")
    assert "stack.json is damaged" in one_line_error(freshet(tmp_path, "down"))


def test_wrong_options_are_refused_before_anything_starts(tmp_path: Path) -> None:
    assert "provider:region" in one_line_error(freshet(tmp_path, "up", "--regions", "home"))
    assert freshet(tmp_path, "up", "--task-managers", "0").returncode == 2
    assert not (tmp_path / "stack").exists()


def test_debug_shows_the_stack_trace(tmp_path: Path) -> None:
    result = freshet(tmp_path, "status", FRESHET_DEBUG="1")
    assert result.returncode != 0
    assert "Traceback" in result.stderr


def pids_of(status: dict[str, Any]) -> list[int]:
    return [
        status["kafka"]["pid"],
        *(server["pid"] for server in status["redis"].values()),
        status["flink"]["jobmanager"]["pid"],
        *(worker["pid"] for worker in status["flink"]["taskmanagers"]),
    ]
