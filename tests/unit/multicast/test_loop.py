"""The planner in the job with its real solver process, which is asked, stopped and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freshet.functions.child import default_python
from freshet.multicast.conditions import conditions
from freshet.multicast.loop import PlanningLoop
from freshet.multicast.requests import Answer, Request, edges_of, request
from freshet.multicast.solver_process import SolverProcess
from tests.integration.polling import eventually
from tests.unit.multicast.reports import FAR, HOME, NEAR, WAY, home_report, region_report, settings


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def asked() -> Request:
    of = settings()
    now = conditions(of, of.tables[0], frozenset(), of.network.links(), 1e5)
    return request(of, of.tables[0], now, latency_ms={}, taken_bps={}, running=None)


@pytest.fixture
def solver() -> Iterator[SolverProcess]:
    process = SolverProcess(time_limit_s=20)
    try:
        yield process
    finally:
        process.close()


def answer_of(solver: SolverProcess, asked: Request) -> Answer | str:
    solver.ask(asked)
    assert solver.is_busy
    answer = eventually(solver.poll, "an answer")
    assert not solver.is_busy
    return answer


def test_a_solver_that_dies_or_makes_no_sense_of_a_request_is_asked_again(
    solver: SolverProcess, asked: Request
) -> None:
    first = answer_of(solver, asked)
    assert isinstance(first, Answer)
    assert edges_of(first.plan) == {(HOME, WAY), (WAY, NEAR), (WAY, FAR)}

    bad = Request(**{**asked.to_dict(), "destinations": ("local:nowhere",)})
    assert "local:nowhere" in str(answer_of(solver, bad))

    os.kill(solver.pid, signal.SIGKILL)
    died = answer_of(solver, asked)
    # It may be found dead before it is asked, or after.
    assert isinstance(died, Answer) or "ended with exit code -9" in died
    again = answer_of(solver, asked)
    assert isinstance(again, Answer)
    assert edges_of(again.plan) == edges_of(first.plan)


def test_a_solver_that_hangs_is_killed_at_its_time_limit(asked: Request) -> None:
    solver = SolverProcess(time_limit_s=0.5)
    try:
        eventually(lambda: isinstance(answer_of(solver, asked), Answer), "the solver has started")
        hung = solver.pid
        os.kill(hung, signal.SIGSTOP)
        began = time.monotonic()
        assert answer_of(solver, asked) == "no plan was found within 0.5 s"
        assert time.monotonic() - began < 10
        assert solver.pid != hung
        with pytest.raises(ProcessLookupError):
            os.kill(hung, 0)
    finally:
        solver.close()


def test_the_solver_ends_with_its_caller() -> None:
    command = (
        "from freshet.multicast.solver_process import SolverProcess;"
        "print(SolverProcess().pid, flush=True); import os; os._exit(0)"
    )
    out = subprocess.run(
        [default_python(), "-c", command], capture_output=True, text=True, timeout=60, check=True
    )
    pid = int(out.stdout)

    def ended() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # A zombie that nobody in this container reaps has ended, too.
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "Z"

    eventually(ended, "the solver ends", 60)


def test_the_loop_plans_and_never_waits() -> None:
    """Records are taken in while the solver works: one round of reports cannot wait for it."""
    loop = PlanningLoop(settings(min_interval_ms=100), now_ms())
    plans: list[bytes] = []
    rounds = 0

    def step(message: Callable[[int], bytes]) -> None:
        plans.extend(loop.step(message(now_ms()), now_ms()))

    def computed() -> bool:
        nonlocal rounds
        rounds += 1
        step(lambda at_ms: home_report(at_ms))
        for region in (NEAR, FAR, WAY):
            step(lambda at_ms, region=region: region_report(region, at_ms))  # type: ignore[misc]
        # The first plan may come again meanwhile: home does not say that it has it.
        return any(edges_of(json.loads(plan)) == tree for plan in plans)

    tree = {(HOME, WAY), (WAY, NEAR), (WAY, FAR)}
    try:
        step(lambda at_ms: home_report(at_ms))
        assert edges_of(json.loads(plans[0])) == {(HOME, NEAR), (HOME, FAR)}
        eventually(computed, "a plan from the solver", 60)
        assert rounds > 1
    finally:
        loop.close()
