"""Goal: plans for streams carry the rate, keep the freshness bound, and cost what they say.

Method: rates, loads, delays and costs are recomputed here from the JSON and the profiles alone.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.errors import ConfigError
from freshet.planner import NoPlanError, Stream, StreamPlan, plan_stream
from freshet.planner.problem import Floats
from freshet.planner.steiner_in_time import tree_in_time
from tests.unit.planner.networks import INTER_CLOUD, clouds, random_network

RELATIVE = 2e-6


def assert_valid(plan: dict[str, Any], stream: Stream) -> None:
    """Fails with what is wrong with a plan."""
    network = stream.network
    bits: dict[tuple[str, str], float] = defaultdict(float)
    assert math.isclose(sum(stripe["fraction"] for stripe in plan["stripes"]), 1.0, rel_tol=1e-6)
    for stripe in plan["stripes"]:
        for u, v in stripe["edges"]:
            bits[u, v] += stripe["fraction"] * stream.gb_per_s * 8e9
    sent, received = defaultdict[str, float](float), defaultdict[str, float](float)
    egress, fullest = 0.0, 0.0
    for (u, v), rate in bits.items():
        i, j = network.index[u], network.index[v]
        fullest = max(fullest, rate / (network.bandwidth_bps[i, j] * plan["vms"][u]))
        sent[u], received[v] = sent[u] + rate, received[v] + rate
        egress += rate / 8e9 * 3600 * network.price_usd_per_gb[i, j]
    vms_usd = 0.0
    for region, count in plan["vms"].items():
        limits = network.limits[network.index[region]]
        assert limits.min_vms <= count <= limits.max_vms
        fullest = max(fullest, sent[region] / (limits.egress_bps * count))
        fullest = max(fullest, received[region] / (limits.ingress_bps * count))
        vms_usd += count * limits.usd_per_s * 3600
    assert fullest <= stream.load * (1 + RELATIVE)
    assert math.isclose(
        plan["capacity_gb_per_s"], stream.gb_per_s * stream.load / fullest, rel_tol=1e-6
    )
    cost = plan["cost"]
    assert math.isclose(cost["egress_usd_per_h"], egress, rel_tol=1e-6, abs_tol=1e-9)
    assert math.isclose(cost["instance_usd_per_h"], vms_usd, rel_tol=1e-6, abs_tol=1e-9)
    assert math.isclose(cost["total_usd_per_h"], egress + vms_usd, rel_tol=1e-6, abs_tol=1e-9)
    assert cost["lower_bound_usd_per_h"] <= cost["total_usd_per_h"]
    assert_paths(plan, stream)


def assert_paths(plan: dict[str, Any], stream: Stream) -> None:
    """Fails unless each stripe has a path in time to each destination, with the right delay."""
    expected = itertools.product(range(len(plan["stripes"])), stream.destinations)
    assert [(path["stripe"], path["destination"]) for path in plan["paths"]] == list(expected)
    for path in plan["paths"]:
        edges = [tuple(edge) for edge in plan["stripes"][path["stripe"]]["edges"]]
        hops = list(itertools.pairwise(path["regions"]))
        assert path["regions"][0] == stream.source
        assert path["regions"][-1] == path["destination"]
        assert set(hops) <= set(edges)
        assert math.isclose(path["delay_s"], sum(hop_s(stream, *hop) for hop in hops), rel_tol=1e-9)
    slowest = max(path["delay_s"] for path in plan["paths"])
    assert plan["predicted_delay_s"] == slowest
    if stream.freshness_s is not None:
        assert slowest <= stream.freshness_s * (1 + RELATIVE)


def hop_s(stream: Stream, u: str, v: str) -> float:
    """Seconds of a hop: latency, transmission by one VM, and the wait of a queue M/D/1."""
    network = stream.network
    i, j = network.index[u], network.index[v]
    speed = min(
        network.bandwidth_bps[i, j], network.limits[i].egress_bps, network.limits[j].ingress_bps
    )
    service = stream.chunk_mb * 8e6 / speed
    waiting = service * stream.load / (2 * (1 - stream.load))
    latency = np.broadcast_to(stream.latency_s, network.bandwidth_bps.shape)[i, j]
    return float(latency + service + waiting)


def random_stream(seed: int, destinations: int, gb_per_s: float, missing: float) -> Stream:
    """A stream over a random network, with latencies up to 0.2 s."""
    network = random_network(seed, destinations + 3, missing=missing)
    latency = np.random.default_rng(seed).uniform(0.0, 0.2, network.bandwidth_bps.shape)
    ends = network.regions[1 : destinations + 1]
    return Stream(network, network.regions[0], ends, gb_per_s, latency_s=latency)


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


@given(st.integers(0, 10_000), st.integers(1, 3), st.floats(0.3, 2.0))
@settings(max_examples=30, deadline=None)
def test_trees_in_time(seed: int, terminals: int, limit: float) -> None:
    """Rounded down, no tree in time is lighter; rounded up, the tree is in time."""
    rng, n = np.random.default_rng(seed), terminals + 3
    weights = rng.integers(0, 9, (n, n)).astype(float)
    delays = rng.uniform(0.1, 1.0, (n, n))
    np.fill_diagonal(weights, np.inf)
    best = lightest_by_trial(weights, delays, limit, terminals)
    wanted = list(range(1, terminals + 1))
    _, bound = tree_in_time(weights, delays, limit, 0, wanted, 20, rounded_up=False)
    tree, weight = tree_in_time(weights, delays, limit, 0, wanted, 20, rounded_up=True)
    assert bound <= best
    if tree:
        parent = {v: u for u, v in tree}
        assert all(delay_to(v, parent, delays) <= limit * (1 + 1e-6) for v in wanted)
        assert sum(weights[edge] for edge in tree) >= best
    else:
        assert weight == np.inf


def lightest_by_trial(weights: Floats, delays: Floats, limit: float, terminals: int) -> float:
    """Weight of the lightest tree in time from node 0: every choice of parents is tried."""
    n, best = len(weights), np.inf
    for parents in itertools.product(range(-1, n), repeat=n - 1):
        parent = {v: u for v, u in enumerate(parents, start=1) if u >= 0}
        used = sum(weights[u, v] for v, u in parent.items())
        if used < best and all(
            delay_to(v, parent, delays) <= limit for v in range(1, terminals + 1)
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
