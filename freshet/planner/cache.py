"""A small cache of plans in this process, by everything that they follow from."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

import numpy as np

from freshet.planner.algorithms import make_plan
from freshet.planner.optimal.planner import NAME
from freshet.planner.plan import Plan
from freshet.planner.problem import Problem

DEFAULT_MAX_PLANS = 128


def fingerprint(problem: Problem, algorithm: str = NAME) -> str:
    """A hash of a problem and an algorithm: equal inputs have equal ones, in every process."""
    network, digest = problem.network, hashlib.sha256()
    scalars = (
        algorithm,
        network.regions,
        tuple(
            (x.egress_bps, x.ingress_bps, x.usd_per_s, x.max_vms, x.min_vms) for x in network.limits
        ),
        problem.source,
        problem.destinations,
        float(problem.volume_gb),
        None if problem.deadline_s is None else float(problem.deadline_s),
        problem.stripes,
        str(problem.billing),
    )
    digest.update(repr(scalars).encode())
    for matrix in (network.price_usd_per_gb, network.bandwidth_bps):
        digest.update(np.ascontiguousarray(matrix, "<f8").tobytes())
    return digest.hexdigest()


class PlanCache:
    """Plans that were used last; threads may share it.

    Args:
        max_plans: that are kept; the one that was not used for longest goes first.
    """

    def __init__(self, max_plans: int = DEFAULT_MAX_PLANS) -> None:
        self._max_plans = max_plans
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Number of plans that are kept."""
        return len(self._plans)

    def make_plan(self, problem: Problem, algorithm: str = NAME) -> Plan:
        """The plan that was made for an equal input, or a new one.

        Raises:
            ConfigError, NoPlanError: as ``freshet.planner.make_plan``; errors are not kept.
        """
        key = fingerprint(problem, algorithm)
        with self._lock:
            if key in self._plans:
                self._plans.move_to_end(key)
                return self._plans[key]
        plan = make_plan(problem, algorithm)  # without the lock: others need not wait for it
        with self._lock:
            self._plans[key] = plan
            self._plans.move_to_end(key)
            while len(self._plans) > self._max_plans:
                self._plans.popitem(last=False)
        return plan
