"""A small cache of plans in this process, by everything that they follow from."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from freshet.planner.algorithms import make_plan
from freshet.planner.confidence import ConfidentPlan, plan_with_confidence
from freshet.planner.optimal.planner import NAME
from freshet.planner.plan import Plan
from freshet.planner.problem import Floats, Network, Problem
from freshet.planner.stream import Stream, StreamPlan, plan_stream

DEFAULT_MAX_PLANS = 128


AnyPlan = TypeVar("AnyPlan", Plan, StreamPlan, ConfidentPlan)


def fingerprint(problem: Problem, algorithm: str = NAME) -> str:
    """A hash of a problem and an algorithm: equal inputs have equal ones, in every process."""
    asked = (
        algorithm,
        problem.source,
        problem.destinations,
        float(problem.volume_gb),
        None if problem.deadline_s is None else float(problem.deadline_s),
        problem.stripes,
        str(problem.billing),
    )
    return _hash("batch", problem.network, asked)


def stream_fingerprint(stream: Stream) -> str:
    """A hash of a stream: equal ones have equal ones, in every process."""
    asked = (
        stream.source,
        stream.destinations,
        float(stream.gb_per_s),
        None if stream.bounds_s is None else tuple(map(float, stream.bounds_s)),
        float(stream.chunk_mb),
        float(stream.load),
        stream.stripes,
    )
    return _hash("stream", stream.network, asked, stream.delays.latency_s)


def _hash(kind: str, network: Network, asked: tuple[object, ...], *matrices: Floats) -> str:
    limits = tuple(
        (x.egress_bps, x.ingress_bps, x.usd_per_s, x.max_vms, x.min_vms) for x in network.limits
    )
    digest = hashlib.sha256(repr((kind, network.regions, limits, asked)).encode())
    for matrix in (network.price_usd_per_gb, network.bandwidth_bps, *matrices):
        digest.update(np.ascontiguousarray(matrix, "<f8").tobytes())
    return digest.hexdigest()


class PlanCache:
    """Plans that were used last; threads may share it.

    Args:
        max_plans: that are kept; the one that was not used for longest goes first.
    """

    def __init__(self, max_plans: int = DEFAULT_MAX_PLANS) -> None:
        self._max_plans = max_plans
        self._plans: OrderedDict[str, Plan | StreamPlan | ConfidentPlan] = OrderedDict()
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
        return self._get(Plan, key, lambda: make_plan(problem, algorithm))

    def plan_stream(self, stream: Stream) -> StreamPlan:
        """The same for a stream.

        Raises:
            NoPlanError: as ``freshet.planner.plan_stream``; errors are not kept.
        """
        return self._get(StreamPlan, stream_fingerprint(stream), lambda: plan_stream(stream))

    def plan_with_confidence(
        self, problem: Problem, spread: float | Floats, confidence: float
    ) -> ConfidentPlan:
        """The same for uncertain bandwidths.

        Raises:
            ConfigError, NoPlanError: as ``freshet.planner.plan_with_confidence``; errors are not
                kept.
        """
        spreads = np.asarray(spread, np.float64)
        key = hashlib.sha256(repr((spreads.shape, float(confidence))).encode())
        key.update(np.ascontiguousarray(spreads, "<f8").tobytes())
        key.update(fingerprint(problem).encode())
        return self._get(
            ConfidentPlan,
            key.hexdigest(),
            lambda: plan_with_confidence(problem, spread, confidence),
        )

    def _get(self, kind: type[AnyPlan], key: str, make: Callable[[], AnyPlan]) -> AnyPlan:
        with self._lock:
            known = self._plans.get(key)
            if isinstance(known, kind):
                self._plans.move_to_end(key)
                return known
        plan = make()  # without the lock: others need not wait for it
        with self._lock:
            self._plans[key] = plan
            self._plans.move_to_end(key)
            while len(self._plans) > self._max_plans:
                self._plans.popitem(last=False)
        return plan
