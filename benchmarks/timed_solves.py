"""Our plans, and those of the paper's mixed-integer program under a time limit, timed."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from freshet.planner import NoPlanError, Plan, Problem, make_plan
from freshet.planner.baselines.cloudcast import Approximations, solve

ALL = Approximations()


@dataclass(frozen=True)
class Solve:
    """What came of it."""

    plan: Plan | None
    cpu_s: float
    """CPU seconds, setting up the programs included; other work on the machine sways them less than
    the clock's."""

    cut_off: bool
    """Whether the time limit ended it; a plan is then the best so far."""

    def __str__(self) -> str:
        """For showing progress."""
        cost = "no plan" if self.plan is None else f"${self.plan.cost.total_usd:.2f}"
        return f"{cost} after {self.cpu_s:.3g} s" + (", cut off" if self.cut_off else "")


def solve_in(limit_s: float, problem: Problem, approximations: Approximations) -> Solve:
    """Solves, for at most so many CPU seconds.

    Args:
        limit_s: for all stripes together; a program that is being set up is not interrupted.
        problem: with a deadline.
        approximations: to use.
    """
    began = time.process_time()
    plan = None
    with suppress(NoPlanError):
        plan = solve(problem, approximations, limit_s)
    cpu_s = time.process_time() - began
    return Solve(plan, cpu_s, cut_off=cpu_s >= limit_s)


def own_plan(problem: Problem) -> tuple[Plan, float]:
    """Our plan, and the CPU seconds that it took."""
    began = time.process_time()
    plan = make_plan(problem)
    return plan, time.process_time() - began
