"""Goal: what makes a plan unfit is named, and what changes is told.

Method: a plan for one problem is judged for others, each with one thing changed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.planner import (
    Network,
    Plan,
    Problem,
    Stream,
    make_plan,
    plan_stream,
    replan,
)
from freshet.planner.changes import changes, cost_usd, why_unfit
from tests.unit.planner.networks import random_network

NETWORK = random_network(1, 7, max_vms=4)
ENDS = (NETWORK.regions[0], NETWORK.regions[1:4])


@pytest.fixture(scope="module")
def problem() -> Problem:
    problem = Problem(NETWORK, *ENDS, 50.0)
    return problem.with_deadline(make_plan(problem).predicted_time_s * 0.8)


@pytest.fixture(scope="module")
def running(problem: Problem) -> Plan:
    return make_plan(problem)


def without(network: Network, region: str) -> Network:
    """The network that a region has vanished from."""
    left = [i for i, name in enumerate(network.regions) if name != region]
    return Network(
        tuple(network.regions[i] for i in left),
        network.price_usd_per_gb[np.ix_(left, left)],
        network.bandwidth_bps[np.ix_(left, left)],
        tuple(network.limits[i] for i in left),
    )


def test_fit(problem: Problem, running: Plan) -> None:
    assert why_unfit(running, problem) == []
    assert cost_usd(running, problem) == pytest.approx(running.cost.total_usd)
    dearer = replace(NETWORK, price_usd_per_gb=NETWORK.price_usd_per_gb * 3)
    now = cost_usd(running, replace(problem, network=dearer))
    assert now == pytest.approx(running.cost.total_usd + 2 * running.cost.egress_usd)


def test_each_reason(problem: Problem, running: Plan) -> None:
    u, v = running.stripes[0].edges[0]
    edge = NETWORK.index[u], NETWORK.index[v]
    bandwidth = NETWORK.bandwidth_bps.copy()
    bandwidth[edge] = 0.0
    cut = replace(problem, network=replace(NETWORK, bandwidth_bps=bandwidth))
    assert why_unfit(running, cut) == [f"there is no link from {u} to {v} any more"]

    moved = replace(problem, destinations=(*problem.destinations[1:], NETWORK.regions[5]))
    assert why_unfit(running, moved) == [
        f"{NETWORK.regions[5]} is no destination of it",
        f"its destination {problem.destinations[0]} is not asked for any more",
    ]

    region, count = max(running.vms.items(), key=lambda item: item[1])
    fewer = replace(problem, network=NETWORK.with_vms(count - 1))
    assert f"{region} may have {count - 1} VMs, and it needs {count}" in why_unfit(running, fewer)

    gone = problem.destinations[0]
    rest = replace(problem, network=without(NETWORK, gone), destinations=problem.destinations[1:])
    assert f"{gone} is not in the profiles any more" in why_unfit(running, rest)

    (reason,) = why_unfit(running, replace(problem, volume_gb=100.0))
    seconds = 2 * running.predicted_time_s
    assert reason.startswith(f"it would take {seconds:.4g} s, and {problem.deadline_s:g} s are")
    assert reason.endswith("binds")

    striped = replace(problem, stripes=77)
    expected = [f"it has {len(running.stripes)} parts, and 77 are asked for"]
    assert why_unfit(running, striped) == expected


def test_streams() -> None:
    stream = Stream(NETWORK, *ENDS, 0.1, freshness_s=1.0, latency_s=0.05)
    running = plan_stream(stream)
    assert why_unfit(running, stream) == []
    assert cost_usd(running, stream.problem) == pytest.approx(running.cost.total_usd_per_h)
    late = replace(stream, freshness_s=running.predicted_delay_s / 2)
    (reason,) = why_unfit(running, late)
    assert reason.startswith(f"its chunks arrive within {running.predicted_delay_s:.4g} s, and")
    more = replace(stream, gb_per_s=running.capacity_gb_per_s * 2)
    (reason,) = why_unfit(running, more)
    assert reason.startswith(f"it carries {running.capacity_gb_per_s:.4g} GB/s at a load of 0.8")


def test_changes(problem: Problem, running: Plan) -> None:
    assert changes(running, running).vms == {}
    assert all(tree.before == tree.after for tree in changes(running, running).trees)
    after = replan(running, replace(problem, volume_gb=60.0)).plan
    found = changes(running, after)
    assert sum(tree.before for tree in found.trees) == pytest.approx(1.0)
    assert sum(tree.after for tree in found.trees) == pytest.approx(1.0)
    moved = {region: after.vms.get(region, 0) for region in {*running.vms, *after.vms}}
    for region, (old, new) in found.vms.items():
        assert (running.vms.get(region, 0), moved[region]) == (old, new)
        assert old != new
    same = set(moved) - set(found.vms)
    assert all(running.vms.get(region) == after.vms.get(region) for region in same)
