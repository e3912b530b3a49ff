"""Goal: plans for streams carry the rate, keep the freshness bound, and cost what they say.

Method: ``stream_checker`` recomputes rates, loads, delays and costs from the JSON and the profiles.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.errors import ConfigError
from freshet.planner import (
    Network,
    NoPlanError,
    RegionLimits,
    Stream,
    StreamPlan,
    plan_stream,
    replan_stream,
)
from freshet.planner.ascent_in_time import Paths, ascend
from freshet.planner.problem import Floats
from freshet.planner.steiner_cuts import CutProgram
from freshet.planner.trees import Tree
from tests.unit.planner.networks import INTER_CLOUD, clouds, random_network
from tests.unit.planner.stream_checker import assert_valid, random_stream


@given(
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.sampled_from([0.001, 0.1]),
    st.sampled_from([0.0, 0.4]),
    st.sampled_from([1.0, 1.2, 2.0]),
)
@settings(max_examples=25, deadline=None)
def test_random_streams(
    seed: int, destinations: int, gb_per_s: float, missing: float, looseness: float
) -> None:
    stream = random_stream(seed, destinations, gb_per_s, missing)
    try:
        unbound = plan_stream(stream)
    except NoPlanError:
        return
    assert_valid(json.loads(unbound.to_json()), stream)
    with pytest.raises(NoPlanError, match="the smallest possible delay is") as raised:
        plan_stream(replace(stream, freshness_s=1e-6))
    assert raised.value.fastest_s is not None
    fresh = replace(stream, freshness_s=raised.value.fastest_s * looseness)
    try:
        plan = plan_stream(fresh)
    except NoPlanError as error:
        assert "GB/s" in str(error)
        return
    assert_valid(json.loads(plan.to_json()), fresh)
    assert plan.cost.gap <= (5e-3 if gb_per_s > 0.01 else 5e-2)  # else most of it is whole VMs
    assert plan.cost.total_usd_per_h >= unbound.cost.lower_bound_usd_per_h * (1 - 1e-9)


@given(st.integers(0, 10_000), st.lists(st.floats(0.3, 2.0), min_size=1, max_size=4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_trees_in_time(seed: int, limits_s: list[float], same: bool) -> None:
    """Asked until nothing is new, the search gives the lightest tree in time, and proves it."""
    terminals = len(limits_s)
    limits_s = [limits_s[0]] * terminals if same else limits_s
    rng, n = np.random.default_rng(seed), min(terminals + 3, 6)
    weights = rng.integers(0, 9, (n, n)).astype(float)
    latency = rng.uniform(0.1, 1.0, (n, n))
    np.fill_diagonal(weights, np.inf)
    regions = tuple(f"cloud:r{i}" for i in range(n))
    limits = (RegionLimits(np.inf, np.inf, 0.0, 1),) * n
    network = Network(regions, np.zeros((n, n)), np.full((n, n), 1e15), limits)
    destinations = regions[1 : terminals + 1]
    # The general bound is that of the first; the others have their own.
    own = dict(zip(destinations[1:], limits_s[1:], strict=True))
    stream = Stream(network, regions[0], destinations, 1.0, limits_s[0], own, latency_s=latency)
    hops = stream.delays.hops
    best = lightest_by_trial(weights, hops, limits_s)
    search = stream.fresh_trees()
    first = last = search(weights)
    given_before = set[Tree]()
    while last[0] and last[0][0] not in given_before:
        given_before.update(last[0])
        last = search(weights)
    ends = stream.problem.terminals
    tails = {end: max(limits_s) - limit for end, limit in zip(ends, limits_s, strict=True)}
    paths = Paths.within(hops, max(limits_s), 0, tails)
    ascent = ascend(weights, paths)
    program, fewer = CutProgram(paths), np.where(rng.random((n, n)) < 0.3, np.inf, weights)
    program.bound(fewer, ascend(fewer, paths), np.inf)  # its cuts must hold for other weights
    raised = program.bound(weights, ascent, np.inf)
    assert first[1] <= best * (1 + 1e-9)
    assert ascent.bound <= raised.bound <= best * (1 + 1e-9)
    assert last[1] == pytest.approx(best, rel=1e-6)
    for trees, _ in (first, last):
        for tree in trees:
            parent = {v: u for u, v in tree}
            for end, limit in zip(ends, limits_s, strict=True):
                assert delay_to(end, parent, hops) <= limit * (1 + 1e-6)
    if np.isfinite(best):
        assert sum(weights[edge] for edge in last[0][0]) == pytest.approx(best, rel=1e-6)
    else:
        assert (first, last) == (([], np.inf), ([], np.inf))


def lightest_by_trial(weights: Floats, delays: Floats, limits_s: list[float]) -> float:
    """Weight of the lightest tree in time from node 0: every choice of parents is tried."""
    n, best = len(weights), np.inf
    for parents in itertools.product(range(-1, n), repeat=n - 1):
        parent = {v: u for v, u in enumerate(parents, start=1) if u >= 0}
        used = sum(weights[u, v] for v, u in parent.items())
        if used < best and all(
            delay_to(v, parent, delays) <= limit for v, limit in enumerate(limits_s, start=1)
        ):
            best = used
    return float(best)


def delay_to(node: int, parent: dict[int, int], delays: Floats) -> float:
    """Delay of the path to a node; infinite if it does not begin at node 0."""
    total = 0.0
    for _ in range(len(parent) + 1):
        if node == 0:
            return total
        if node not in parent:
            return np.inf
        total, node = total + float(delays[parent[node], node]), parent[node]
    return np.inf


def test_freshness_costs_over_all_regions() -> None:
    latency = np.random.default_rng(0).uniform(0.02, 0.2, (71, 71))
    usual = Stream(clouds(5), *INTER_CLOUD, gb_per_s=0.2, latency_s=latency)
    costs = []
    for freshness_s in (None, 0.2, 0.15):
        stream = replace(usual, freshness_s=freshness_s)
        plan = plan_stream(stream)
        assert_valid(json.loads(plan.to_json()), stream)
        assert plan.cost.gap <= 5e-3
        costs.append(plan.cost.total_usd_per_h)
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_many_destinations_in_time() -> None:
    stream = replace(random_stream(5, 12, 0.05, 0.0), freshness_s=0.15)
    assert_valid(json.loads(plan_stream(stream).to_json()), stream)


@pytest.mark.parametrize("gb_per_s", [1e-7, 1e-4, 1.0, 10.0])
@pytest.mark.parametrize("free_vms", [False, True])
def test_rates_of_all_sizes(gb_per_s: float, free_vms: bool) -> None:
    """From a small table's to 10 GB/s: the program's numbers keep their meaning."""
    network = random_network(4, 8, free_vms=free_vms).with_vms(80)
    stream = Stream(network, network.regions[0], network.regions[1:4], gb_per_s, latency_s=0.05)
    plan = plan_stream(stream)
    assert_valid(json.loads(plan.to_json()), stream)
    assert plan.cost.gap <= 1e-3
    more = replace(stream, gb_per_s=gb_per_s * 1.2)
    found = replan_stream(plan, more)
    assert_valid(json.loads(found.plan.to_json()), more)
    assert found.trees_kept > 0.5


def test_rate_beyond_the_network() -> None:
    stream = Stream(clouds(5), *INTER_CLOUD, gb_per_s=100.0)
    with pytest.raises(NoPlanError, match=r"carries 100 GB/s .* largest rate found is") as raised:
        plan_stream(stream)
    assert raised.value.binding is not None
    assert raised.value.binding in str(raised.value)


def test_json_and_back() -> None:
    stream = replace(random_stream(3, 3, 0.1, 0.0), freshness_s=0.5, stripes=4)
    plan = plan_stream(stream)
    assert StreamPlan.from_dict(json.loads(plan.to_json())) == plan
    assert {stripe.fraction for stripe in plan.stripes} == {0.25}


def test_what_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        Stream(
            clouds(), "aws:us-east1", ("aws:us-west-2",), 0.0, -1.0, latency_s=np.ones(3), load=1.0
        )
    assert raised.value.problems == [
        "source 'aws:us-east1' is unknown; did you mean 'aws:us-east-1'?",
        "gb_per_s must be more than 0, not 0.0",
        "freshness_s must be more than 0, not -1.0",
        "load must be more than 0 and less than 1, not 1.0",
        "latency_s has the shape (3,); give one number, or (71, 71) for 71 regions",
    ]
