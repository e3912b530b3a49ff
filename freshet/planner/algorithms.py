"""All algorithms behind one interface: a problem in, a plan out."""

from __future__ import annotations

from collections.abc import Callable

from freshet.errors import ConfigError
from freshet.planner.baselines import (
    cloudcast,
    cloudmpcast,
    deadline_aware,
    direct,
    mesh,
    skyplane,
    spanning_tree,
    spider,
    steiner_tree,
)
from freshet.planner.errors import NoPlanError
from freshet.planner.model import TIME_TOLERANCE
from freshet.planner.optimal import planner as optimal
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem
from freshet.table.checks import suggestion

Algorithm = Callable[[Problem], Plan]
"""Solves a problem; raises NoPlanError if it finds no plan."""

ALGORITHMS: dict[str, Algorithm] = {
    optimal.NAME: optimal.solve,
    direct.NAME: direct.solve,
    spanning_tree.NAME: spanning_tree.solve,
    steiner_tree.NAME: steiner_tree.solve,
    spider.NAME: spider.solve,
    cloudmpcast.NAME: cloudmpcast.solve,
    f"{cloudmpcast.NAME}-0.5": cloudmpcast.half,
    f"{cloudmpcast.NAME}-0.1": cloudmpcast.tenth,
    skyplane.NAME: skyplane.solve,
    f"{skyplane.NAME}-fastest": skyplane.fastest,
    deadline_aware.NAME: deadline_aware.solve,
    mesh.NAME: mesh.solve,
    cloudcast.NAME: cloudcast.solve,
    cloudcast.EXACT_NAME: cloudcast.exact,
}
"""By the name that commands and plans use."""

FOR_SMALL_NETWORKS = frozenset({cloudcast.EXACT_NAME})
"""Those that are not compared with the others: they take too long for more than a few regions."""


def make_plan(problem: Problem, algorithm: str = optimal.NAME) -> Plan:
    """Plans a multicast.

    Args:
        problem: what is to be sent where, and by when.
        algorithm: one of ``ALGORITHMS``; only the default proves that its plan is near the best.

    Raises:
        ConfigError: there is no such algorithm.
        NoPlanError: no plan meets the deadline, or the algorithm's does not.
    """
    if algorithm not in ALGORITHMS:
        raise ConfigError(
            [f"{algorithm!r} is unknown{suggestion(algorithm, list(ALGORITHMS))}"], "algorithm"
        )
    plan = ALGORITHMS[algorithm](problem)
    deadline = problem.deadline_s
    if deadline is not None and plan.predicted_time_s > deadline * (1 + TIME_TOLERANCE):
        raise NoPlanError(
            f"{algorithm} needs {plan.predicted_time_s:.6g} s, and the deadline is {deadline:g} s; "
            f"allow more time, or use the algorithm {optimal.NAME!r}",
            fastest_s=plan.predicted_time_s,
        )
    return plan
