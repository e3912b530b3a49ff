"""Goal: plans for streams are as certain as they say. Method: bandwidths are drawn."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from freshet.errors import ConfigError
from freshet.planner import NoPlanError, Stream, StreamPlan, plan_stream
from freshet.planner.stream_confidence import plan_stream_with_confidence
from tests.unit.planner.stream_checker import hop_s, random_stream

DRAWS = 1000


def share_that_holds(plan: StreamPlan, stream: Stream, spread: float) -> float:
    """Share of draws in which all chunks are fresh and no link is loaded too much."""
    network, rng, held = stream.network, np.random.default_rng(1), 0
    rates = defaultdict[tuple[str, str], float](float)
    for stripe in plan.stripes:
        for edge in stripe.edges:
            rates[edge] += stripe.fraction * stream.gb_per_s * 8e9
    for _ in range(DRAWS):
        factors = np.maximum(rng.normal(1.0, spread, network.bandwidth_bps.shape), 1e-3)
        drawn = replace(
            stream, network=replace(network, bandwidth_bps=network.bandwidth_bps * factors)
        )
        hops = {edge: hop_s(drawn, *edge) for edge in rates}
        fresh = all(
            sum(hops[hop] for hop in zip(path.regions, path.regions[1:], strict=False))
            <= (stream.freshness_s or np.inf) * (1 + 1e-6)
            for path in plan.paths
        )
        fits = all(
            rate
            <= drawn.network.bandwidth_bps[network.index[u], network.index[v]]
            * plan.vms[u]
            * stream.load
            * (1 + 1e-6)
            for (u, v), rate in rates.items()
        )
        held += fresh and fits
    return held / DRAWS


def stream_of(looseness: float) -> Stream:
    stream = replace(random_stream(3, 3, 0.1, 0.0), chunk_mb=16.0)
    freshest = stream.fresh_trees().freshest
    assert freshest is not None
    delay_s = max(stream.delays.arrivals(freshest, stream.problem.root).values())
    return replace(stream, freshness_s=delay_s * looseness)


@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_as_certain_as_asked(confidence: float) -> None:
    stream = stream_of(1.6)
    found = plan_stream_with_confidence(stream, 0.15, confidence)
    assert found.probability >= confidence
    sigma = np.sqrt(confidence * (1 - confidence) / DRAWS)
    assert share_that_holds(found.plan, stream, 0.15) >= confidence - 5 * sigma
    usual = plan_stream(stream)
    assert found.plan.cost.total_usd_per_h >= usual.cost.lower_bound_usd_per_h
    assert found.plan.cost.lower_bound_usd_per_h == usual.cost.lower_bound_usd_per_h


def test_no_spread_is_the_usual_plan() -> None:
    stream = stream_of(1.6)
    found = plan_stream_with_confidence(stream, 0.0, 0.99)
    assert found.plan.stripes == plan_stream(stream).stripes
    assert found.probability == 1.0


def test_too_certain() -> None:
    with pytest.raises(NoPlanError, match=r"deviations slower, for a probability of 0\.999"):
        plan_stream_with_confidence(stream_of(1.0001), 0.3, 0.999)


def test_what_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        plan_stream_with_confidence(stream_of(2.0), -0.1, 0.5)
    assert len(raised.value.problems) == 2
