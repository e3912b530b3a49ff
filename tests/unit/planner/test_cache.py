"""Goal: equal inputs give the plan that was made, others never do. Method: change each input."""

from __future__ import annotations

from dataclasses import replace

from freshet.planner import Billing, PlanCache, Problem
from freshet.planner.cache import fingerprint
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
