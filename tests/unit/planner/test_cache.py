"""Goal: equal inputs give the plan that was made, others never do. Method: change each input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.planner import Billing, NoPlanError, PlanCache, Problem, Stream
from freshet.planner.cache import fingerprint, stream_fingerprint
from tests.unit.planner.networks import random_network


def problem_of(seed: int) -> Problem:
    network = random_network(seed, 4)
    return Problem(network, network.regions[0], network.regions[1:3], 1.0)


def test_equal_inputs_share_a_plan() -> None:
    cache = PlanCache()
    assert cache.make_plan(problem_of(1)) is cache.make_plan(problem_of(1))
    assert cache.make_plan(problem_of(1), "direct").algorithm == "direct"
    assert len(cache) == 2


def test_every_input_counts() -> None:
    problem = problem_of(1)
    network = problem.network
    limits = (replace(network.limits[0], usd_per_s=0.25), *network.limits[1:])
    others = [
        replace(problem, volume_gb=2.0),
        replace(problem, deadline_s=100.0),
        replace(problem, stripes=3),
        replace(problem, billing=Billing.USED),
        replace(problem, destinations=problem.destinations[::-1]),
        replace(problem, network=replace(network, bandwidth_bps=network.bandwidth_bps * 2)),
        replace(problem, network=replace(network, price_usd_per_gb=network.price_usd_per_gb * 2)),
        replace(problem, network=replace(network, limits=limits)),
    ]
    keys = {fingerprint(other) for other in [problem, *others]}
    assert len({*keys, fingerprint(problem, "direct")}) == len(others) + 2


def test_only_so_many_are_kept() -> None:
    cache = PlanCache(max_plans=2)
    first = cache.make_plan(problem_of(1))
    cache.make_plan(problem_of(2))
    assert cache.make_plan(problem_of(1)) is first
    cache.make_plan(problem_of(3))
    assert len(cache) == 2
    assert cache.make_plan(problem_of(1)) is first


def stream_of(seed: int) -> Stream:
    network = random_network(seed, 4)
    return Stream(network, network.regions[0], network.regions[1:3], 0.001, latency_s=0.05)


def test_streams_and_confident_plans_are_kept() -> None:
    cache, problem = PlanCache(), problem_of(1).with_deadline(1000.0)
    assert cache.plan_stream(stream_of(1)) is cache.plan_stream(stream_of(1))
    confident = cache.plan_with_confidence(problem, 0.1, 0.9)
    assert cache.plan_with_confidence(problem_of(1).with_deadline(1000.0), 0.1, 0.9) is confident
    assert cache.plan_with_confidence(problem, 0.2, 0.9) is not confident
    assert cache.plan_with_confidence(problem, 0.1, 0.95) is not confident
    assert len(cache) == 4
    with pytest.raises(NoPlanError):
        cache.plan_stream(replace(stream_of(1), freshness_s=1e-6))
    assert len(cache) == 4


def test_every_input_of_a_stream_counts() -> None:
    stream = stream_of(1)
    others = [
        replace(stream, gb_per_s=0.002),
        replace(stream, freshness_s=1.0),
        replace(stream, chunk_mb=2.0),
        replace(stream, latency_s=0.06),
        replace(stream, load=0.7),
        replace(stream, stripes=2),
        replace(stream, destinations=stream.destinations[::-1]),
        replace(stream, network=stream.network.with_vms(2)),
    ]
    keys = {stream_fingerprint(other) for other in [stream, *others]}
    assert len(keys) == len(others) + 1
    same = replace(stream, latency_s=np.full((4, 4), 0.05))
    assert stream_fingerprint(same) == stream_fingerprint(stream)
    assert stream_fingerprint(stream) != fingerprint(stream.problem)
