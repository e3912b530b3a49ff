"""Checks plans for streams from their JSON and the profiles alone: rates, delays and costs."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np

from freshet.planner import Stream
from tests.unit.planner.checker import RELATIVE, assert_stripes
from tests.unit.planner.networks import random_network


def assert_valid(plan: dict[str, Any], stream: Stream) -> None:
    """Fails with what is wrong with a plan."""
    network = stream.network
    bits: dict[tuple[str, str], float] = defaultdict(float)
    assert_stripes(plan, stream.problem)
    assert {region for edge in edges_of(plan) for region in edge} <= set(plan["vms"])
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
    assert math.isclose(cost["egress_usd_per_h"], egress, rel_tol=1e-6, abs_tol=1e-12)
    assert math.isclose(cost["instance_usd_per_h"], vms_usd, rel_tol=1e-6, abs_tol=1e-12)
    assert math.isclose(cost["total_usd_per_h"], egress + vms_usd, rel_tol=1e-6, abs_tol=1e-12)
    assert cost["lower_bound_usd_per_h"] <= cost["total_usd_per_h"]
    assert_paths(plan, stream)


def edges_of(plan: dict[str, Any]) -> set[tuple[str, str]]:
    """The links that a plan uses."""
    return {(u, v) for stripe in plan["stripes"] for u, v in stripe["edges"]}


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
        for path in plan["paths"]:
            bound = stream.freshness_of_s.get(path["destination"], stream.freshness_s)
            assert path["delay_s"] <= bound * (1 + RELATIVE)


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
