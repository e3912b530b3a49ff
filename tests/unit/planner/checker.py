"""Checks plans from their JSON and the profiles alone, with none of the planner's model code."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from freshet.planner import Network, Problem

RELATIVE = 2e-6
"""Rounding that a plan may show in a sum, a capacity or a time."""


def assert_valid(plan: dict[str, Any], problem: Problem, *, in_time: bool = True) -> None:
    """Fails with what is wrong with a plan.

    Args:
        plan: as JSON types.
        problem: that it is for.
        in_time: whether it must meet the deadline.
    """
    assert plan["source"] == problem.source
    assert plan["destinations"] == list(problem.destinations)
    assert plan["volume_gb"] == problem.volume_gb
    assert_stripes(plan, problem)
    _assert_vms(plan, problem)
    _assert_cost(plan, problem)
    seconds = plan["predicted_time_s"]
    assert math.isclose(seconds, time_needed(plan, problem.network), rel_tol=RELATIVE)
    if problem.deadline_s is not None and in_time:
        assert seconds <= problem.deadline_s * (1 + RELATIVE), "the deadline is missed"


def time_needed(plan: dict[str, Any], network: Network) -> float:
    """Seconds of the slowest link and VM, each with its part of the data."""
    bits: dict[tuple[str, str], float] = defaultdict(float)
    for stripe in plan["stripes"]:
        for u, v in stripe["edges"]:
            bits[u, v] += stripe["fraction"] * plan["volume_gb"] * 8e9
    slowest = 0.0
    sent, received = defaultdict[str, float](float), defaultdict[str, float](float)
    for (u, v), amount in bits.items():
        rate = network.bandwidth_bps[network.index[u], network.index[v]]
        assert rate > 0, f"there is no link from {u} to {v}"
        slowest = max(slowest, amount / (rate * plan["vms"][u]))
        sent[u] += amount
        received[v] += amount
    for region, count in plan["vms"].items():
        limits = network.limits[network.index[region]]
        slowest = max(slowest, sent[region] / (limits.egress_bps * count))
        slowest = max(slowest, received[region] / (limits.ingress_bps * count))
    return slowest


def assert_stripes(plan: dict[str, Any], problem: Problem) -> None:
    """Fails unless each stripe takes a tree from the source to all destinations."""
    fractions = [stripe["fraction"] for stripe in plan["stripes"]]
    assert math.isclose(sum(fractions), 1.0, rel_tol=RELATIVE)
    assert all(fraction > 0 for fraction in fractions)
    if problem.stripes is not None:
        assert len(fractions) == problem.stripes
        assert all(math.isclose(f, 1 / problem.stripes, rel_tol=1e-12) for f in fractions)
    for stripe in plan["stripes"]:
        reached = {problem.source}
        for u, v in stripe["edges"]:
            assert u in reached, f"nothing has come to {u} when it sends to {v}"
            assert v not in reached, f"{v} gets the same stripe twice"
            reached.add(v)
        assert reached.issuperset(problem.destinations)
        leaves = reached - {u for u, _ in stripe["edges"]}
        assert leaves.issubset(problem.destinations), "data is sent to where nobody needs it"


def _assert_vms(plan: dict[str, Any], problem: Problem) -> None:
    used = {problem.source, *problem.destinations}
    used.update(region for s in plan["stripes"] for edge in s["edges"] for region in edge)
    assert used.issubset(plan["vms"]), "a region that is used has no VM"
    for region, count in plan["vms"].items():
        limits = problem.network.limits[problem.network.index[region]]
        assert limits.min_vms <= count <= limits.max_vms, f"{count} VMs in {region}"


def _assert_cost(plan: dict[str, Any], problem: Problem) -> None:
    network, cost = problem.network, plan["cost"]
    egress = sum(
        stripe["fraction"]
        * plan["volume_gb"]
        * network.price_usd_per_gb[network.index[u], network.index[v]]
        for stripe in plan["stripes"]
        for u, v in stripe["edges"]
    )
    per_second = sum(
        count * network.limits[network.index[region]].usd_per_s
        for region, count in plan["vms"].items()
    )
    billed = problem.deadline_s if problem.billed_s is not None else plan["predicted_time_s"]
    assert math.isclose(plan["time_budget_s"], billed, rel_tol=RELATIVE)
    total = egress + per_second * billed
    assert math.isclose(cost["egress_usd"], egress, rel_tol=RELATIVE, abs_tol=1e-9)
    assert math.isclose(cost["total_usd"], total, rel_tol=RELATIVE, abs_tol=1e-9)
    assert math.isclose(
        plan["cost_as_used_usd"],
        egress + per_second * plan["predicted_time_s"],
        rel_tol=RELATIVE,
        abs_tol=1e-9,
    )
    assert cost["lower_bound_usd"] <= cost["total_usd"]
    gap = (cost["total_usd"] - cost["lower_bound_usd"]) / cost["total_usd"] if total > 0 else 0.0
    assert math.isclose(cost["gap"], gap, rel_tol=1e-6, abs_tol=1e-9)
