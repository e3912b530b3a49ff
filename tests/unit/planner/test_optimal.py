"""Goal: optimal plans are valid, near a bound that holds, and the error says what is not possible.

Method: an independent checker recomputes each plan; bounds are compared with costs of other plans.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.planner import ALGORITHMS, Billing, Network, NoPlanError, Plan, Problem, RegionLimits
from freshet.planner import make_plan as solve
from freshet.planner.algorithms import FOR_SMALL_NETWORKS
from freshet.planner.baselines import cloudcast
from freshet.planner.optimal.planner import fastest_possible
from tests.unit.planner.checker import assert_valid
from tests.unit.planner.networks import (
    INTER_CLOUD,
    INTRA_AWS,
    clouds,
    problems,
    random_network,
)

PROVEN = 5e-3
"""Largest gap that the planner may leave for up to 10 destinations and stripes of any size."""


def checked(problem: Problem) -> Plan:
    """The plan, after it has passed the checker."""
    plan = solve(problem)
    assert_valid(json.loads(plan.to_json()), problem)
    return plan


@given(problems(), st.sampled_from([None, 1.0, 1.001, 1.3, 2.0, 10.0]), st.sampled_from(Billing))
def test_random_problems(problem: Problem, tightness: float | None, billing: Billing) -> None:
    problem = replace(problem, billing=billing)
    try:
        fastest = fastest_possible(problem)
    except NoPlanError as error:
        assert "no path of links" in str(error)
        with pytest.raises(NoPlanError):
            solve(problem)
        return
    if tightness is not None:
        problem = problem.with_deadline(fastest.seconds * tightness)
    plan = checked(problem)
    if problem.stripes is None:
        assert plan.cost.gap <= PROVEN


@pytest.mark.parametrize("destinations", [8, 10, 13])
def test_many_destinations(destinations: int) -> None:
    network = random_network(destinations, destinations + 4)
    problem = Problem(network, network.regions[0], network.regions[1 : destinations + 1], 100.0)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 1.1)
    assert checked(problem).cost.gap < (PROVEN if destinations <= 10 else 0.1)


def test_twenty_destinations_over_all_regions() -> None:
    regions = sorted(clouds(5).regions, key=lambda region: region[::-1])
    problem = Problem(clouds(5), regions[0], tuple(regions[1:21]), volume_gb=100.0)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 1.2)
    assert checked(problem).cost.gap < PROVEN


@given(problems(most_destinations=4))
@settings(max_examples=30)
def test_more_freedom_never_costs_more(problem: Problem) -> None:
    problem = replace(problem, billing=Billing.USED, stripes=None)
    try:
        seconds = fastest_possible(problem).seconds
    except NoPlanError:
        return
    tight = checked(problem.with_deadline(seconds * 1.05)).cost
    loose = checked(problem.with_deadline(seconds * 1.5)).cost
    any_time = checked(problem).cost
    limits = tuple(replace(limit, max_vms=limit.max_vms + 1) for limit in problem.network.limits)
    richer = replace(problem, network=replace(problem.network, limits=limits))
    more_vms = checked(richer.with_deadline(seconds * 1.05)).cost
    for more, less in ((tight, loose), (loose, any_time), (tight, more_vms)):
        assert less.lower_bound_usd <= more.total_usd * (1 + 1e-9)
        assert less.total_usd <= more.total_usd * (1 + 1e-3)


@given(problems(most_destinations=4))
@settings(max_examples=20)
def test_no_other_algorithm_is_below_the_bound(problem: Problem) -> None:
    try:
        bound = solve(problem).cost.lower_bound_usd
        fastest = fastest_possible(problem)
    except NoPlanError:
        return
    for name in ALGORITHMS.keys() - FOR_SMALL_NETWORKS:
        try:
            plan = solve(problem, name)
        except NoPlanError:
            continue  # it needs a link that is missing
        assert_valid(json.loads(plan.to_json()), problem)
        assert plan.cost.total_usd >= bound * (1 - 1e-9), name
        assert plan.predicted_time_s >= fastest.bound_s * (1 - 1e-6), name


@pytest.mark.parametrize(
    ("endpoints", "most_usd"), [(INTRA_AWS, 58.1), (INTER_CLOUD, 161.95)], ids=["aws", "inter"]
)
def test_public_benchmark(endpoints: tuple[str, tuple[str, ...]], most_usd: float) -> None:
    """300 GB in 10 stripes, with exactly 2 VMs in each region that is used, and no deadline."""
    problem = Problem(clouds().with_vms(2, 2), *endpoints, volume_gb=300.0, stripes=10)
    plan = checked(problem)
    assert plan.cost.total_usd <= most_usd
    assert set(plan.vms.values()) == {2}


@pytest.mark.parametrize("tightness", [1.001, 1.05, 1.3, 2.0])
def test_close_to_the_bound_over_all_regions(tightness: float) -> None:
    problem = Problem(clouds(5), *INTER_CLOUD, volume_gb=100.0)
    seconds = fastest_possible(problem).seconds
    assert checked(problem.with_deadline(seconds * tightness)).cost.gap <= 1e-3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tightness", [1.001, 1.3, 2.0])
def test_as_cheap_as_the_exact_program(seed: int, tightness: float) -> None:
    """Cloudcast's mixed-integer program without approximations, where it can be solved."""
    network = random_network(seed, 6, missing=0.2 * (seed % 2))
    problem = Problem(network, network.regions[0], network.regions[1:4], 100.0, stripes=3)
    problem = problem.with_deadline(fastest_possible(problem).seconds * tightness)
    exact = solve(problem, "cloudcast-exact")
    assert_valid(json.loads(exact.to_json()), problem)
    plan = checked(problem)
    assert plan.cost.total_usd == pytest.approx(exact.cost.total_usd, rel=1e-3)
    assert plan.cost.lower_bound_usd <= exact.cost.total_usd * (1 + 1e-6)


def test_approximations_of_the_mixed_integer_program() -> None:
    network = random_network(3, 9)
    problem = Problem(network, network.regions[0], network.regions[1:4], 100.0, stripes=4)
    problem = problem.with_deadline(fastest_possible(problem).seconds * 2)
    approximated = cloudcast.solve(problem, cloudcast.Approximations(clusters=3))
    assert_valid(json.loads(approximated.to_json()), problem)
    best = checked(problem).cost
    assert best.lower_bound_usd <= approximated.cost.total_usd <= 1.5 * best.total_usd
    with pytest.raises(NoPlanError, match="cloudcast needs a deadline"):
        solve(problem.with_deadline(None), "cloudcast")


@pytest.mark.parametrize("tightness", [1.0, 1.001])
def test_last_bit_of_the_data_may_be_dear(tightness: float) -> None:
    """VMs cost more than all egress here, and the last thousandth of the data takes one more."""
    rng = np.random.default_rng(17)
    destinations = int(rng.integers(1, 6))
    network = random_network(
        17, destinations + 1 + int(rng.integers(0, 5)), free_links=1.0, max_vms=3, slower=4.0
    )
    problem = Problem(network, network.regions[0], network.regions[1 : destinations + 1], 100.0)
    problem = problem.with_deadline(fastest_possible(problem).seconds * tightness)
    assert checked(problem).cost.gap <= PROVEN


def test_same_plan_each_time() -> None:
    problem = Problem(clouds(5), *INTRA_AWS, volume_gb=100.0, deadline_s=40.0)
    first, second = (solve(problem).to_dict() for _ in range(2))
    del first["solve_time_s"], second["solve_time_s"]
    assert first == second


def test_toy_example_of_the_paper() -> None:
    """Cloudcast §2.4, Figure 4: direct 8 s, all by the waypoint 16 s, half of it 8 s."""
    names = ("x:s", "x:w", "x:d1", "x:d2")
    gbps = np.array([[0, 1, 2, 2], [0, 0, 1, 1], [0, 0, 0, 2], [0, 0, 2, 0]], float)
    price = np.where(gbps == 2, 0.1, 0.02)
    limits = tuple(RegionLimits(4e9, 4e9, 0.0, 1) for _ in names)
    network = Network(names, price, gbps * 1e9, limits)
    problem = Problem(network, "x:s", ("x:d1", "x:d2"), 2.0, stripes=2)
    assert solve(problem, "direct").predicted_time_s == pytest.approx(8.0)
    assert solve(problem).predicted_time_s == pytest.approx(16.0)
    assert solve(problem).cost.total_usd == pytest.approx(2 * 3 * 0.02)
    plan = checked(problem.with_deadline(8.0))
    assert plan.cost.total_usd == pytest.approx(0.06 + 0.2)


def test_too_early_names_the_time_and_the_limit() -> None:
    problem = Problem(clouds(5), *INTRA_AWS, volume_gb=100.0, deadline_s=20.0)
    with pytest.raises(NoPlanError, match=r"fastest possible time is 32 s, and the egress") as e:
        solve(problem)
    assert e.value.fastest_s == pytest.approx(32.0)
    assert e.value.binding == "the egress limit of 5 VMs in aws:ap-northeast-1"


def test_unreachable_destination_is_named() -> None:
    network = random_network(1, 4)
    network.bandwidth_bps[:, 2] = 0.0
    problem = Problem(network, "cloud:r0", ("cloud:r1", "cloud:r2"), 1.0)
    with pytest.raises(NoPlanError, match="no path of links leads from cloud:r0 to cloud:r2;"):
        solve(problem)
