"""Goal: plans are as certain as they say. Method: bandwidths are drawn, and times recomputed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.errors import ConfigError
from freshet.planner import Billing, NoPlanError, Plan, Problem, plan_with_confidence
from freshet.planner import make_plan as solve
from freshet.planner.confidence import price_of_certainty, probability_in_time
from freshet.planner.optimal.planner import fastest_possible
from freshet.planner.problem import Floats
from tests.unit.planner.checker import assert_valid
from tests.unit.planner.networks import INTER_CLOUD, clouds, random_network

DRAWS = 20_000


def share_in_time(plan: Plan, problem: Problem, spread: Floats, seed: int) -> float:
    """Share of draws of all bandwidths in which the plan meets the deadline."""
    assert problem.deadline_s is not None
    network, rng = problem.network, np.random.default_rng(seed)
    bits: dict[tuple[str, str], float] = {}
    for stripe in plan.stripes:
        for edge in stripe.edges:
            bits[edge] = bits.get(edge, 0.0) + stripe.fraction * plan.volume_gb * 8e9
    in_time = np.ones(DRAWS, bool)
    for (u, v), amount in sorted(bits.items()):
        i, j = network.index[u], network.index[v]
        mean = network.bandwidth_bps[i, j]
        drawn = np.maximum(rng.normal(mean, spread[i, j] * mean, DRAWS), 1.0)
        in_time &= amount / (drawn * plan.vms[u]) <= problem.deadline_s * (1 + 2e-6)
    return float(in_time.mean())


@pytest.mark.parametrize(("confidence", "spread"), [(0.99, "one"), (0.9, "each")])
def test_as_certain_as_asked(confidence: float, spread: str) -> None:
    network = random_network(8, 10, max_vms=5)
    problem = Problem(network, network.regions[0], network.regions[1:5], 100.0)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 2.0)
    shape = problem.network.bandwidth_bps.shape
    spreads = np.full(shape, 0.15)
    if spread == "each":
        spreads = np.random.default_rng(1).uniform(0.0, 0.3, shape)
    found = plan_with_confidence(problem, spreads if spread == "each" else 0.15, confidence)
    assert_valid(json.loads(found.plan.to_json()), problem)
    share = share_in_time(found.plan, problem, spreads, seed=2)
    sigma = np.sqrt(found.probability * (1 - found.probability) / DRAWS)
    assert found.probability >= confidence
    assert abs(share - found.probability) <= 5 * sigma + 1e-4
    assert found.time_at_confidence_s <= problem.deadline_s * (1 + 2e-6)
    assert found.plan.cost.gap < 0.1
    if confidence == 0.99:
        assert share_in_time(solve(problem), problem, spreads, seed=3) < confidence


@pytest.mark.parametrize("stripes", [None, 4])
def test_links_that_trees_share(stripes: int | None) -> None:
    """A link that several trees use is slow for all of them at once, or for none."""
    network = random_network(1, 6, max_vms=4)
    problem = Problem(network, network.regions[0], network.regions[1:5], 80.0, stripes=stripes)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 1.4)
    spreads = np.random.default_rng(5).uniform(0.0, 0.25, (6, 6))
    found = plan_with_confidence(problem, spreads, 0.9)
    trees = {frozenset(stripe.edges) for stripe in found.plan.stripes}
    shared = {edge for tree in trees for edge in tree if sum(edge in other for other in trees) > 1}
    assert shared, "this test needs a plan whose trees share links"
    share = share_in_time(found.plan, problem, spreads, seed=6)
    sigma = np.sqrt(found.probability * (1 - found.probability) / DRAWS)
    assert 0.9 <= found.probability < 1.0
    assert abs(share - found.probability) <= 5 * sigma + 1e-4
    in_time = problem.with_deadline(found.time_at_confidence_s)
    share = share_in_time(found.plan, in_time, spreads, seed=7)
    assert share >= 0.9 - 5 * np.sqrt(0.09 / DRAWS)


@given(st.integers(0, 10_000), st.sampled_from([1.1, 1.5, 3.0]), st.sampled_from(Billing))
@settings(max_examples=6, deadline=None)
def test_random_problems(seed: int, looseness: float, billing: Billing) -> None:
    network = random_network(seed, 6)
    problem = Problem(network, network.regions[0], network.regions[1:4], 50.0, billing=billing)
    problem = problem.with_deadline(fastest_possible(problem).seconds * looseness)
    spreads = np.random.default_rng(seed).uniform(0.0, 0.2, (6, 6))
    try:
        found = plan_with_confidence(problem, spreads, 0.95)
    except NoPlanError as error:
        assert error.fastest_s is not None
        assert error.fastest_s > problem.deadline_s * (1 - 1e-6)
        return
    assert_valid(json.loads(found.plan.to_json()), problem)
    share = share_in_time(found.plan, problem, spreads, seed)
    assert share >= 0.95 - 5 * np.sqrt(0.05 * 0.95 / DRAWS)
    assert found.plan.cost.total_usd >= solve(problem).cost.lower_bound_usd * (1 - 1e-9)


def test_certainty_has_a_price() -> None:
    network = random_network(2, 7)
    problem = Problem(network, network.regions[0], network.regions[1:4], 50.0)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 1.5)
    rows = price_of_certainty(problem, 0.1, (0.99, 0.5, 0.9))
    assert [row.confidence for row in rows] == [0.5, 0.9, 0.99]
    costs = [row.total_usd for row in rows if row.total_usd is not None]
    assert len(costs) == 3
    assert costs == sorted(costs)
    assert all(row.probability is not None and row.probability >= row.confidence for row in rows)


def test_no_spread_is_the_usual_plan() -> None:
    network = random_network(4, 6)
    problem = Problem(network, network.regions[0], network.regions[1:4], 50.0)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 1.2)
    found = plan_with_confidence(problem, 0.0, 0.999)
    assert found.plan.cost == solve(problem).cost
    assert found.probability == 1.0
    late = replace(problem, deadline_s=found.plan.predicted_time_s * 0.9)
    assert probability_in_time(late, found.plan, 0.0) == 0.0


def test_too_certain_says_what_is_possible() -> None:
    network = random_network(1, 5)
    problem = Problem(network, network.regions[0], network.regions[1:4], 50.0)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 1.001)
    slow = replace(network, limits=tuple(replace(x, egress_bps=np.inf) for x in network.limits))
    problem = replace(problem, network=slow)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 1.001)
    with pytest.raises(
        NoPlanError, match=r"with probability 0\.999; the fastest plan is done"
    ) as raised:
        plan_with_confidence(problem, 0.25, 0.999)
    assert raised.value.fastest_s is not None
    assert f"is done in {raised.value.fastest_s:.6g} s" in str(raised.value)
    with pytest.raises(NoPlanError, match="not done with it in any time") as raised:
        plan_with_confidence(problem, 0.3, 0.999)  # some link has no bandwidth too often
    assert raised.value.fastest_s is None


def test_what_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        plan_with_confidence(Problem(clouds(), *INTER_CLOUD, 1.0), -0.1, 1.0)
    assert raised.value.problems == [
        "there is no deadline to be sure of; give deadline_s",
        "confidence must be from 0.5 and below 1, not 1.0",
        "spread must be finite and not negative everywhere",
    ]
