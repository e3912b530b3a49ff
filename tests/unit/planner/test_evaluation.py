"""The logic of the benchmarks that set the planner beside Cloudcast's evaluation."""

from __future__ import annotations

import pytest

from benchmarks.exhibits import Exhibit
from benchmarks.planner_claims import saving, speed_up, speed_up_with_start
from benchmarks.planner_times import Times, growth_factors
from benchmarks.planner_tradeoff import fastest_within
from freshet.planner import Plan
from freshet.planner.plan import Cost


def plan(cost_usd: float, time_s: float, *regions: str) -> Plan:
    return Plan(
        source="aws:a",
        destinations=("aws:b",),
        volume_gb=1.0,
        stripes=(),
        vms=dict.fromkeys(regions or ("aws:a",), 1),
        time_budget_s=time_s,
        cost=Cost(cost_usd, 0.0, cost_usd, 0.0, 1.0),
        predicted_time_s=time_s,
        cost_as_used_usd=cost_usd,
        algorithm="given",
        solve_time_s=0.0,
    )


@pytest.mark.parametrize(
    ("cost_usd", "seconds"), [(100.0, 10.0), (50.0, 10.0), (49.0, 20.0), (20.0, 40.0), (5.0, 40.0)]
)
def test_the_fastest_plan_for_a_cost(cost_usd: float, seconds: float) -> None:
    curve = [plan(50.0, 10.0), plan(30.0, 20.0), plan(20.0, 40.0)]
    assert fastest_within(curve, cost_usd) == seconds


def test_savings_and_speed_ups() -> None:
    own, direct = plan(25.0, 10.0, "aws:a", "azure:b"), plan(100.0, 100.0, "aws:a", "aws:b")
    assert saving(own, direct) == 0.75
    assert speed_up(own, direct) == 10.0
    # The slowest start of Figure 15 counts: Azure's 56 s for ours, AWS's 35 s for direct.
    assert speed_up_with_start(own, direct) == pytest.approx(135.0 / 66.0)


def test_the_growth_for_each_destination() -> None:
    curve = {2: Times((1.0,)), 4: Times((3.0, 4.0, 100.0)), 7: Times((32.0,))}
    assert growth_factors(curve) == {4: pytest.approx(2.0), 7: pytest.approx(2.0)}


def test_an_exhibit_as_markdown() -> None:
    exhibit = Exhibit("e", "Title", ("a", "b"), (("1", "2"),), "Note.")
    assert exhibit.to_markdown() == "**Title**\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nNote.\n"
