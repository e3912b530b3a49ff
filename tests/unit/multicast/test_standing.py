"""How regions stand, from reports as the jobs write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from freshet.cli.status import render_plans, render_regions
from freshet.multicast.standing import Heard, plans_in_force, standings
from tests.unit.multicast.reports import FAR, HOME, NEAR, TABLE, WAY, link, report_dict

PLAN = {
    "number": 9,
    "note": "first plan",
    "stripes": [{"fraction": 1.0, "edges": [[HOME, WAY], [WAY, NEAR]]}],
    "detached": [FAR],
}
PRICES = {(HOME, WAY): 0.01, (WAY, NEAR): 0.02, (HOME, FAR): 0.12}


def heard(at_ms: int, region: str, **fields: Any) -> Heard:
    counters = {"applies": True, "freshness": None, "applied": 0, "caught_up": 0, "late": 0}
    return Heard(at_ms, report_dict(region, at_ms, **{**counters, "plan": "", **fields}))


def lags(p50_ms: float, p99_ms: float) -> dict[str, float]:
    return {"count": 3, "p50_ms": p50_ms, "p99_ms": p99_ms, "max_ms": p99_ms}


REPORTS = [
    heard(1_000, HOME, reporter="MULTICAST", plan=json.dumps(PLAN | {"number": 3})),
    heard(2_000, NEAR, subtask=0, parallelism=3, applied=1_000, freshness=lags(9, 9)),
    heard(2_000, NEAR, subtask=2, parallelism=3, applied=7_000),
    heard(3_000, NEAR, subtask=0, parallelism=2, applied=40, late=2, freshness=lags(80, 200)),
    heard(3_500, NEAR, subtask=0, parallelism=2, applied=50, late=2),
    heard(4_000, NEAR, subtask=1, parallelism=2, applied=7, freshness=lags(20, 900)),
    heard(
        5_000,
        WAY,
        applies=False,
        links=[link(NEAR, wire_bytes=2_000_000, backlog_keys=4, behind=True)],
    ),
    heard(
        6_000,
        HOME,
        reporter="MULTICAST",
        plan=json.dumps(PLAN),
        links=[link(WAY, wire_bytes=3_000_000), link(FAR, wire_bytes=500_000_000, backlog_keys=8)],
    ),
    heard(2_500, FAR),
]
# Before there were fewer subtasks, which go on from what this one had counted.
GONE = heard(
    500, HOME, reporter="MULTICAST", subtask=1, parallelism=2, links=[link(FAR, wire_bytes=10**9)]
)


def test_a_region_stands_as_its_subtasks_and_the_links_to_it_say() -> None:
    far, near, way = standings(REPORTS, PRICES, 10_000)
    assert (far.region, near.region, way.region) == (FAR, NEAR, WAY)
    assert {each.table for each in (far, near, way)} == {TABLE}
    # What a subtask said before there were fewer is left out; freshness holds until there is more.
    assert (near.applied, near.late) == (57, 2)
    assert (near.freshness_p50_ms, near.freshness_p99_ms) == (80, 900)
    assert near.heard_ago_s == 6
    assert (near.wire_bytes, near.backlog_keys, near.behind) == (2_000_000, 4, True)
    assert (far.backlog_keys, far.behind) == (8, False)
    assert near.usd == pytest.approx(0.00004)
    assert (far.detached, near.detached) == (True, False)
    assert far.freshness_p99_ms is None
    assert far.usd == pytest.approx(0.06)
    assert (way.keeps, near.keeps) == (False, True)
    assert {each.plan for each in (far, near, way)} == {9}
    assert standings(REPORTS, None, 10_000)[0].usd is None
    assert standings([GONE, *REPORTS], PRICES, 10_000) == [far, near, way]


def test_the_newest_plan_is_in_force() -> None:
    assert plans_in_force(REPORTS) == {TABLE: PLAN}
    assert plans_in_force(reversed(REPORTS)) == {TABLE: PLAN}


def test_people_are_shown_trees_by_their_links() -> None:
    shown = "\n".join(str(line) for line in render_plans({TABLE: PLAN}))
    assert f"100%: {HOME} -> {WAY}, {WAY} -> {NEAR}" in shown
    assert f"directly: {FAR}" in shown
    assert render_plans({}) == ["No plan is in force."]
    assert render_regions([]) == ["No region has reported."]
    (table,) = render_regions([each.to_dict() for each in standings(REPORTS, PRICES, 10_000)])
    assert table.row_count == 3  # type: ignore[union-attr]
