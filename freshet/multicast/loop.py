"""The planner as the job runs it: a record of ``progress`` in, plans out, and never a wait."""

from __future__ import annotations

from freshet.multicast.decisions import Decisions, Pending
from freshet.multicast.settings import PlannerSettings
from freshet.multicast.solver_process import SolverProcess


class PlanningLoop:
    """Decisions, and the process that solves what they ask.

    The reports are also its clock: the multicast job's own come back to it several times a second,
    whether or not any region answers.

    Args:
        settings: of the planner.
        now_ms: of the start.
        solver: where plans are found; None for one of its own.
    """

    def __init__(
        self, settings: PlannerSettings, now_ms: int, solver: SolverProcess | None = None
    ) -> None:
        self.decisions = Decisions(settings, now_ms)
        self._solver = solver or SolverProcess(
            time_limit_s=settings.thresholds.time_limit_ms / 1_000
        )
        self._pending: Pending | None = None

    def step(self, message: bytes, now_ms: int) -> list[bytes]:
        """Takes a record in; returns the plans to put in force, JSON.

        Args:
            message: an Avro single object of the topic ``progress``.
            now_ms: wall clock, ms.
        """
        self.decisions.hear(message, now_ms)
        plans: list[bytes | None] = [*self.decisions.at_once(now_ms), self._answer(now_ms)]
        if self._pending is None:
            plans.append(self._ask(now_ms))
        return [plan for plan in plans if plan is not None] + self.decisions.resend(now_ms)

    def close(self) -> None:
        """Ends the solver."""
        self._solver.close()

    def _answer(self, now_ms: int) -> bytes | None:
        answer = self._solver.poll()
        if answer is None or self._pending is None:
            return None
        pending, self._pending = self._pending, None
        return self.decisions.take(pending, answer, now_ms)

    def _ask(self, now_ms: int) -> bytes | None:
        pending = self.decisions.ask(now_ms)
        if pending is None:
            return None
        if not pending.asked.destinations:
            return self.decisions.plan_at_once(pending, now_ms)
        self._pending = pending
        self._solver.ask(pending.asked)
        return None
