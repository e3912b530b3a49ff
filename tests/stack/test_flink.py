"""The stack's Flink: its TaskManagers can be lost and replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.errors import StackError
from freshet.stack import FlinkOptions, Stack, StackOptions
from freshet.stack.flink_rest import FlinkRest, root_cause

pytestmark = pytest.mark.integration


def test_a_lost_task_manager_is_noticed_and_replaced(stack: Stack) -> None:
    flink = stack.flink
    before = set(flink.rest.task_managers())
    assert len(before) == flink.rest.overview()["slots-total"] == 2

    lost = flink.kill_task_manager()
    try:
        flink.wait_until_lost(lost)
        assert lost not in flink.rest.task_managers()
    finally:
        new = flink.start_task_manager()

    assert new not in before
    assert set(flink.rest.task_managers()) == (before - {lost}) | {new}


def test_killing_an_unknown_task_manager_is_refused(stack: Stack) -> None:
    with pytest.raises(StackError, match="taskmanager-99"):
        stack.flink.kill_task_manager("taskmanager-99")


def test_the_cluster_says_no_to_an_unknown_job(stack: Stack) -> None:
    with pytest.raises(StackError, match="refused"):
        stack.flink.rest.job("0" * 32)


def test_a_cluster_that_is_not_there_is_told() -> None:
    with pytest.raises(StackError, match=r"does not answer at http://127\.0\.0\.1:9"):
        FlinkRest("http://127.0.0.1:9").overview()


@pytest.mark.parametrize(
    "options", [FlinkOptions(task_managers=0), FlinkOptions(state_backend="x")]
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: FlinkOptions) -> None:
    with pytest.raises(StackError):
        Stack(tmp_path, StackOptions(flink=options))


def test_the_root_cause_is_the_last_one() -> None:
    trace = "a.B: outer\n\tat x\nCaused by: c.D: middle\n\tat y\nCaused by: e.F: inner\n\tat z"
    assert root_cause(trace) == "e.F: inner"
    ours = "a.B: outer\nCaused by: dev.freshet.X: refuses: inner; fix\nCaused by: e.F: inner"
    assert root_cause(ours) == "dev.freshet.X: refuses: inner; fix"
    assert root_cause("dev.freshet.X: refuses\nCaused by: e.F: inner") == "dev.freshet.X: refuses"
    assert root_cause("\n only line \n") == "only line"
    assert root_cause("") == "unknown"
