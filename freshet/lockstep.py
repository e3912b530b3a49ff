"""Lockstep with the jobs: a step of event time is over when the store holds what they decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from freshet.errors import JobError
from freshet.observer import Observer
from freshet.stack.flink_rest import FlinkRest

_WAIT_S = 0.5
_JOB_CHECK_INTERVAL_S = 5.0


def wait_for_step(
    observer: Observer,
    rest: FlinkRest,
    jobs: Iterable[str],
    end_ms: int,
    deadline_s: float,
    *,
    too_late: str,
    waiting: Callable[[], None] = lambda: None,
) -> None:
    """Waits until every table's store holds all that was decided in a step.

    Args:
        observer: reads what the jobs say.
        rest: of the Flink that runs the jobs.
        jobs: ids of those that are waited for, and of no others that the cluster remembers.
        end_ms: the step's end, epoch milliseconds of event time.
        deadline_s: how long it may take, seconds.
        too_late: the error's message when it takes longer.
        waiting: called about twice a second meanwhile, to show progress.

    Raises:
        JobError: a job has ended, so that waiting for it is in vain, or it takes too long.
        FreshetError: the jobs' topics cannot be read, or Flink does not answer.
    """
    deadline = time.monotonic() + deadline_s
    next_check = time.monotonic() + _JOB_CHECK_INTERVAL_S
    while not observer.wait_until_complete(end_ms, _WAIT_S):
        waiting()
        now = time.monotonic()
        if now > next_check:
            next_check = now + _JOB_CHECK_INTERVAL_S
            _check(rest, jobs)
        if now > deadline:
            raise JobError(too_late)


def _check(rest: FlinkRest, jobs: Iterable[str]) -> None:
    """Raises JobError if a job has ended."""
    for job in jobs:
        rest.is_running(job)
