"""Plans a stream anew after a change, close to the running plan where that costs almost nothing.

As ``replanning`` does for batches, with trees that are in time only: a multicast job that runs for
long asks whenever its rate, the speed of a link or its freshness bound has changed.
"""

from __future__ import annotations

import time

from freshet.errors import FreshetError
from freshet.planner.errors import NoPlanError
from freshet.planner.plan import Plan
from freshet.planner.replanning import (
    DEFAULT_TOLERANCE,
    Outcome,
    Replanned,
    Task,
    closeness,
    last_good,
    replanned,
)
from freshet.planner.stream import (
    Stream,
    StreamPlan,
    check_freshness,
    stream_plan_of,
    too_much,
)


def replan_stream(
    running: StreamPlan,
    stream: Stream,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    time_limit_s: float | None = None,
) -> Replanned[StreamPlan]:
    """Finds the plan for a stream that has changed.

    The same input gives the same plan, unless the time limit ends the search.

    Args:
        running: the plan until now.
        stream: as it is now, with the same or another network, rate, freshness, destinations.
        tolerance: cost that being closer is worth, over the best plan's; 0.01 for 1 %.
        time_limit_s: seconds after which the running plan stays; looked at between steps, so that
            the search takes a little longer.

    Returns:
        The plan to run from now on. Where none is possible, or none was found in time, that is the
        running one as it was, and the reason says why.

    Raises:
        ConfigError: the tolerance is negative.
    """
    trees, started = stream.fresh_trees(), time.perf_counter()
    task = Task(stream.problem, trees, trees.allows, tolerance, time_limit_s)
    try:
        check_freshness(stream, trees)
        plan, outcome = _replanned(running, stream, task, started)
    except FreshetError as error:
        return last_good(running, error)
    found = stream_plan_of(stream, plan, started=started)
    return Replanned(found, outcome, *closeness(running, found), "")


def _replanned(
    running: StreamPlan, stream: Stream, task: Task, started: float
) -> tuple[Plan, Outcome]:
    try:
        return replanned(running, task, started)
    except NoPlanError as error:
        raise too_much(stream, error) from error
