"""How regions stand, from reports as the jobs write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from freshet.multicast.standing import Heard, Reports, total_usd
from freshet.status.columns import REGIONS, Level, plan_lines
from tests.unit.multicast.reports import FAR, HOME, NEAR, TABLE, WAY, link, report_dict

PLAN = {
    "number": 9,
    "note": "first plan",
    "stripes": [{"fraction": 1.0, "edges": [[HOME, WAY], [WAY, NEAR]]}],
    "detached": [FAR],
}
PRICES = {(HOME, WAY): 0.01, (WAY, NEAR): 0.02, (HOME, FAR): 0.12}


def heard(at_ms: int, region: str, **fields: Any) -> Heard:
    counters = {
        "applies": True,
        "freshness": None,
        "delay": None,
        "applied": 0,
        "caught_up": 0,
        "late": 0,
    }
    return Heard(at_ms, report_dict(region, at_ms, **{**counters, "plan": "", **fields}))


def lags(p50_ms: float, p99_ms: float) -> dict[str, float]:
    return {"count": 3, "p50_ms": p50_ms, "p99_ms": p99_ms, "max_ms": p99_ms}


REPORTS = [
    heard(1_000, HOME, reporter="MULTICAST", plan=json.dumps(PLAN | {"number": 3})),
    heard(
        2_000, NEAR, subtask=0, parallelism=3, applied=1_000, freshness=lags(9, 9), delay=lags(7, 7)
    ),
    heard(2_000, NEAR, subtask=2, parallelism=3, applied=7_000),
    heard(
        3_000,
        NEAR,
        subtask=0,
        parallelism=2,
        applied=40,
        late=2,
        freshness=lags(80, 200),
        delay=lags(40, 100),
    ),
    heard(3_500, NEAR, subtask=0, parallelism=2, applied=50, late=2),
    heard(
        4_000,
        NEAR,
        subtask=1,
        parallelism=2,
        applied=7,
        freshness=lags(20, 900),
        delay=lags(10, 450),
    ),
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
    far, near, way = Reports(REPORTS).standings(PRICES, 10_000, {TABLE: 500})
    assert (far.region, near.region, way.region) == (FAR, NEAR, WAY)
    assert {each.table for each in (far, near, way)} == {TABLE}
    # What a subtask said before there were fewer is left out; freshness holds until there is more.
    assert (near.applied, near.late) == (57, 2)
    assert (near.freshness_p50_ms, near.freshness_p99_ms) == (80, 900)
    assert (near.delay_p50_ms, near.delay_p99_ms) == (40, 450)
    assert near.heard_ago_s == 6
    assert (near.wire_bytes, near.backlog_keys, near.behind) == (2_000_000, 4, True)
    assert (far.backlog_keys, far.behind) == (8, False)
    assert near.usd == pytest.approx(0.00004)
    assert (far.detached, near.detached) == (True, False)
    assert far.delay_p99_ms is None
    assert far.usd == pytest.approx(0.06)
    assert (way.keeps, near.keeps) == (False, True)
    assert {each.plan for each in (far, near, way)} == {9}
    assert Reports([GONE, *REPORTS]).standings(PRICES, 10_000, {TABLE: 500}) == [far, near, way]


def test_whether_an_slo_is_met_is_told_where_it_is_known() -> None:
    for slo_ms, met in ((450, True), (449, False), (None, None)):
        slos = {} if slo_ms is None else {TABLE: slo_ms}
        far, near, _ = Reports(REPORTS).standings(PRICES, 10_000, slos)
        assert (near.slo_ms, near.meets_slo) == (slo_ms, met)
        assert far.meets_slo is None, "nothing was ever applied there"


def test_links_are_those_that_subtasks_report() -> None:
    links = Reports([GONE, *REPORTS]).links(PRICES)
    assert [(link.source, link.target) for link in links] == sorted(PRICES)
    assert sum(link.wire_bytes for link in links) == 505_000_000
    assert total_usd(links) == pytest.approx(0.06007)


def test_what_has_no_price_makes_no_sum() -> None:
    prices = {link: usd for link, usd in PRICES.items() if link != (HOME, FAR)}
    reports = Reports(REPORTS)
    far, near, _ = reports.standings(prices, 10_000)
    assert (far.usd, near.usd) == (None, pytest.approx(0.00004))
    assert total_usd(reports.links(prices)) is None
    assert total_usd([]) == 0


def test_the_newest_plan_is_in_force() -> None:
    assert Reports(REPORTS).plans == {TABLE: PLAN}
    assert Reports(reversed(REPORTS)).plans == {TABLE: PLAN}


def test_people_are_shown_trees_by_their_links() -> None:
    shown = "\n".join(plan_lines({TABLE: PLAN}))
    assert f"100%: {HOME} -> {WAY}, {WAY} -> {NEAR}" in shown
    assert f"directly: {FAR}" in shown
    assert plan_lines({}) == ["No plan is in force."]


def test_people_are_shown_what_needs_them() -> None:
    far, near, way = Reports(REPORTS).standings(PRICES, 12_500, {TABLE: 200})
    cells = [{column.name: column.cell(each) for column in REGIONS} for each in (far, near, way)]
    assert [each["region"].text for each in cells] == [FAR, NEAR, f"{WAY} (waypoint)"]
    assert cells[0]["heard"] == ("10 s ago, away", Level.BAD)
    assert cells[1]["delay p99"] == ("450 ms", Level.BAD)
    assert cells[1]["SLO"] == ("200 ms, missed", Level.BAD)
    assert cells[1]["backlog"] == ("4, due", Level.WARN)
    assert cells[0]["delay p99"] == ("-", Level.PLAIN)
    assert cells[2]["SLO"] == ("200 ms", Level.PLAIN)
