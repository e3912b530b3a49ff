"""Goal: after a change a stream's plan is valid, near the best, and close to the one that runs.

Method: streams are changed, and the result is checked and compared with a plan made from scratch.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.planner import Network, NoPlanError, Outcome, Stream, plan_stream, replan_stream
from freshet.planner.replanning import closeness
from tests.unit.planner.stream_checker import assert_valid, random_stream
from tests.unit.planner.test_replanning import without

CHANGES = ("slower links", "region vanished", "destination less", "higher rate", "fresher")


def stream_of(seed: int, looseness: float = 1.5, stripes: int | None = None) -> Stream:
    stream = replace(random_stream(seed, 3, 0.1, 0.0), stripes=stripes)
    freshest = stream.fresh_trees().freshest
    assert freshest is not None
    delay_s = max(stream.delays.arrivals(freshest, stream.problem.root).values())
    return replace(stream, freshness_s=delay_s * looseness)


def changed(stream: Stream, change: str) -> Stream:
    """The stream after a change."""
    network = stream.network
    if change == "slower links":
        bandwidth = network.bandwidth_bps.copy()
        bandwidth[stream.problem.root] *= 0.7
        return replace(stream, network=replace(network, bandwidth_bps=bandwidth))
    if change == "region vanished":
        latency = stream.delays.latency_s[:-1, :-1]
        return replace(stream, network=without(network, network.regions[-1]), latency_s=latency)
    if change == "destination less":
        return replace(stream, destinations=stream.destinations[:-1])
    if change == "fresher":
        assert stream.freshness_s is not None
        return replace(stream, freshness_s=stream.freshness_s / 1.3)
    return replace(stream, gb_per_s=stream.gb_per_s * 1.3)


def with_free_vms(network: Network) -> Network:
    """The network with brokers that are there anyway."""
    limits = tuple(replace(limits, usd_per_s=0.0) for limits in network.limits)
    return replace(network, limits=limits)


@given(st.integers(0, 10_000), st.sampled_from(CHANGES), st.sampled_from([None, 4]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_after_a_change(seed: int, change: str, stripes: int | None, free_vms: bool) -> None:
    before = stream_of(seed, stripes=stripes)
    if free_vms:
        before = replace(before, network=with_free_vms(before.network))
    stream = changed(before, change)
    try:
        running = plan_stream(before)
    except NoPlanError:
        return
    found = replan_stream(running, stream)
    try:
        best = plan_stream(stream)
    except NoPlanError as error:
        assert (found.plan, found.outcome) == (running, Outcome.LAST_GOOD)
        assert found.reason == str(error)
        return
    assert_valid(json.loads(found.plan.to_json()), stream)
    slack = 1e-2 if stripes is None else 5e-2
    assert found.plan.cost.total_usd_per_h <= best.cost.total_usd_per_h * 1.01 * (1 + slack)
    assert (found.trees_kept, found.vms_kept) == pytest.approx(closeness(running, found.plan))


def test_nothing_changed() -> None:
    stream = stream_of(1)
    running = plan_stream(stream)
    found = replan_stream(running, stream)
    assert found.outcome is Outcome.KEPT
    assert (found.plan.stripes, found.plan.vms) == (running.stripes, running.vms)


def test_late_trees_are_left() -> None:
    """A plan that costs nothing more to keep, but is late now, does not stay."""
    stream = stream_of(1, looseness=3.0)
    running = plan_stream(stream)
    fresher = replace(stream, freshness_s=running.predicted_delay_s * 0.99)
    found = replan_stream(running, fresher, tolerance=10.0)
    assert found.outcome is not Outcome.KEPT
    assert_valid(json.loads(found.plan.to_json()), fresher)


def test_last_good_plan_stays() -> None:
    stream = stream_of(1)
    running = plan_stream(stream)
    for changed_stream, limit_s, reason in (
        (replace(stream, freshness_s=1e-6), None, "smallest possible delay"),
        (replace(stream, gb_per_s=1e3), None, "largest rate found"),
        (stream, 0.0, "within 0 s"),
    ):
        found = replan_stream(running, changed_stream, time_limit_s=limit_s)
        assert (found.plan, found.outcome) == (running, Outcome.LAST_GOOD)
        assert reason in found.reason


def test_same_result_each_time() -> None:
    stream = stream_of(5)
    running, later = plan_stream(stream), changed(stream, "higher rate")
    first, second = (replan_stream(running, later) for _ in range(2))
    assert replace(first, plan=replace(first.plan, solve_time_s=0.0)) == replace(
        second, plan=replace(second.plan, solve_time_s=0.0)
    )
