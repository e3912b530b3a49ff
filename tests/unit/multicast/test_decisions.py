"""Decisions of the planner in the job, on reports that a test writes and plans that are real.

Method: time is the test's own; every request is solved in this process by the real solver, or fails
as the test says. Reports come twice a second from home, and from each region that is up.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from freshet import avro
from freshet.multicast.attainable import attainable
from freshet.multicast.decisions import Decisions
from freshet.multicast.requests import Answer, Outcome, edges_of
from freshet.multicast.settings import PlannerSettings
from freshet.multicast.solving import solve, split, stream_of
from freshet.planner import StreamPlan
from tests.unit.multicast.reports import (
    CHEAP_OVER_WAY,
    FAR,
    HOME,
    NEAR,
    START_MS,
    TABLE,
    WAY,
    home_report,
    link,
    network,
    region_report,
    settings,
)
from tests.unit.planner.stream_checker import assert_valid

STEP_MS = 500
REGIONS = (NEAR, FAR, WAY)


class Job:
    """A multicast job whose planner decides, in steps of half a second."""

    def __init__(self, of: PlannerSettings | None = None, now_ms: int = START_MS) -> None:
        self.settings = of or settings()
        self.decisions = Decisions(self.settings, now_ms)
        self.now_ms = now_ms
        self.up = set(REGIONS)
        self.bytes_per_s = 0.0
        self.read = 0.0
        self.links: dict[str, list[dict[str, Any]]] = {}
        self.plans: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.fails: str | None = None
        self.in_force: Mapping[str, Any] | str = ""

    def run(self, seconds: float) -> None:
        """Reports, decides and solves for so long."""
        for _ in range(round(seconds * 1_000 / STEP_MS)):
            self.step()

    def step(self) -> None:
        self.now_ms += STEP_MS
        self.read += self.bytes_per_s * STEP_MS / 1_000
        links = self.links.get(HOME, [])
        self.hear(home_report(self.now_ms, int(self.read), self.in_force, links=links))
        for region in sorted(self.up):
            self.hear(region_report(region, self.now_ms, links=self.links.get(region, [])))

    def hear(self, message: bytes) -> None:
        self.decisions.hear(message, self.now_ms)
        for plan in self.decisions.at_once(self.now_ms):
            self._take(plan)
        pending = self.decisions.ask(self.now_ms)
        if pending is None:
            return
        assert self.decisions.ask(self.now_ms) is None, "one attempt at a time"
        if not pending.asked.destinations:
            self._take(self.decisions.plan_at_once(pending, self.now_ms))
            return
        answer = self.fails or solve(pending.asked)
        if isinstance(answer, Answer) and answer.outcome is not Outcome.LAST_GOOD:
            self._check(answer, pending.asked)
        self._take(self.decisions.take(pending, answer, self.now_ms))

    def _check(self, answer: Answer, asked: Any) -> None:
        # Where less is planned for than was asked for, the plan says so.
        plan = answer.plan
        stream, _ = attainable(stream_of(asked))
        assert_valid(plan, replace(stream, gb_per_s=plan["gb_per_s"], stripes=None))
        parts = split(StreamPlan.from_dict(plan), asked.parts).stripes
        assert {round(part.fraction * asked.parts, 6) for part in parts} == {1.0}

    def _take(self, message: bytes | None) -> None:
        if message is not None:
            self.plans.append(json.loads(message) | {"sent_ms": self.now_ms})
            self.in_force = self.plans[-1]

    @property
    def plan(self) -> dict[str, Any]:
        return self.plans[-1]


@pytest.fixture
def job() -> Job:
    return Job()


def test_data_flows_at_once_and_then_along_the_cheapest_way(job: Job) -> None:
    job.step()
    assert edges_of(job.plan) == {(HOME, NEAR), (HOME, FAR)}
    assert job.plan["destinations"] == [NEAR, FAR]
    job.run(3)
    assert edges_of(job.plan) == {(HOME, WAY), (WAY, NEAR), (WAY, FAR)}
    assert len(job.plans) == 2
    assert set(job.plan["delay_s"]) == {NEAR, FAR}
    assert job.plan["table"] == TABLE
    assert job.plan["source"] == HOME
    assert sum(stripe["fraction"] for stripe in job.plan["stripes"]) == pytest.approx(1)

    job.run(60)
    assert len(job.plans) == 2, "nothing has changed"


def test_numbers_rise_over_restarts_even_if_the_clock_was_set_back(job: Job) -> None:
    job.run(4)
    assert [plan["number"] for plan in job.plans] == sorted({p["number"] for p in job.plans})
    assert job.plan["number"] >= START_MS

    again = Job(now_ms=START_MS - 3_600_000)
    again.hear(home_report(job.now_ms, plan=job.plan))
    again.run(4)
    assert again.plans[0]["number"] == job.plan["number"] + 1
    # Data takes the way that it took before, and there was no reason to leave it since.
    assert edges_of(again.plans[0]) == edges_of(job.plan)
    assert len(again.plans) == 1


def test_a_destination_that_is_gone_is_detached_until_it_is_back(job: Job) -> None:
    job.run(4)
    job.up.discard(FAR)
    job.run(4)
    assert job.plan["detached"] == []
    job.run(3)
    assert job.plan["detached"] == [FAR]
    assert job.plan["destinations"] == [NEAR]
    assert f"{FAR} does not answer" in job.plan["note"]

    job.up.add(FAR)
    job.run(1)
    assert job.plan["detached"] == [FAR]
    job.run(4)
    assert job.plan["detached"] == []
    assert f"{FAR} is back" in job.plan["note"]


def test_without_any_destination_left_there_is_one_empty_tree(job: Job) -> None:
    job.run(4)
    job.up = {WAY}
    job.run(10)
    assert job.plan["stripes"] == [{"fraction": 1.0, "edges": []}]
    assert job.plan["destinations"] == []
    assert job.plan["detached"] == [NEAR, FAR]


def test_a_waypoint_that_never_reported_is_left_after_15_seconds(job: Job) -> None:
    job.up = {NEAR, FAR}
    job.run(13)
    assert (HOME, WAY) in edges_of(job.plan)
    job.run(4)
    assert not any(WAY in edge for edge in edges_of(job.plan))
    assert job.plan["detached"] == []


def test_nobody_is_gone_because_home_was_away(job: Job) -> None:
    job.run(4)
    before = len(job.plans)
    job.now_ms += 60_000
    job.run(5)
    assert len(job.plans) == before


def test_reports_from_before_the_start_say_nothing_of_now() -> None:
    job = Job()
    for second in range(100):
        job.now_ms += 10
        job.hear(home_report(START_MS - 200_000 + 1_000 * second, change_bytes=second * 10**9))
        job.hear(region_report(FAR, START_MS - 200_000 + 1_000 * second))
    assert job.plans == []
    job.up = {NEAR, WAY}
    job.run(13)
    assert job.plan["detached"] == []
    assert job.plan["gb_per_s"] == 1e-5, "what was read before is not a volume of now"
    job.run(4)
    assert job.plan["detached"] == [FAR]


def test_a_silent_link_is_gone_round_and_tried_again_later(job: Job) -> None:
    job.run(4)
    job.links[HOME] = [link(WAY, chunks=9, in_flight_bytes=10, silent_ms=2_500)]
    job.run(2)
    assert (HOME, WAY) not in edges_of(job.plan)
    assert job.plan["destinations"] == [NEAR, FAR]
    assert f"the link from {HOME} to {WAY} is down" in job.plan["note"]
    job.links[HOME] = [link(WAY, chunks=9)]  # given up, and nothing is sent there any more
    job.run(8)
    assert (HOME, WAY) not in edges_of(job.plan)
    job.run(4)
    assert (HOME, WAY) in edges_of(job.plan)


def test_a_link_that_delivers_again_is_used_again_at_once(job: Job) -> None:
    job.run(4)
    job.links[HOME] = [link(WAY, chunks=9, in_flight_bytes=10, silent_ms=2_500)]
    job.run(3)
    assert (HOME, WAY) not in edges_of(job.plan)
    job.links[HOME] = [link(WAY, chunks=10)]
    job.run(3)
    assert (HOME, WAY) in edges_of(job.plan)


def test_a_destination_without_a_way_left_is_detached(job: Job) -> None:
    job.run(4)
    stuck = {"in_flight_bytes": 10, "silent_ms": 3_000}
    job.links[HOME] = [link(FAR, **stuck)]
    job.links[NEAR] = [link(FAR, **stuck)]
    job.links[WAY] = [link(FAR, **stuck)]
    job.run(3)
    assert job.plan["detached"] == [FAR]
    assert job.plan["destinations"] == [NEAR]


def test_a_link_at_its_limit_counts_for_what_it_delivers() -> None:
    job = Job(settings(network(price={(HOME, WAY): 0.01, (WAY, NEAR): 0.02, (WAY, FAR): 0.02})))
    job.bytes_per_s = 500_000
    job.run(10)
    assert (HOME, WAY) in edges_of(job.plan)
    for second in range(12):
        # 100 KB/s are 0.8 Mbit/s, a fifth of what the table needs.
        busy = {"bytes_per_s": 110_000.0, "behind": True, "in_flight_bytes": 64_000}
        job.links[HOME] = [link(WAY, chunks=second, wire_bytes=50_000 * second, **busy)]
        job.step()
    job.run(2)
    assert (HOME, WAY) not in edges_of(job.plan)
    assert f"the link from {HOME} to {WAY} went from 100" in job.plan["note"]


def test_a_link_that_keeps_up_is_not_slow_though_changes_wait_for_company() -> None:
    job = Job(settings(network(price={(HOME, WAY): 0.01, (WAY, NEAR): 0.02, (WAY, FAR): 0.02})))
    job.run(10)
    before = len(job.plans)
    for second in range(12):
        batching = {"bytes_per_s": 50_000.0, "backlog_keys": 50, "in_flight_bytes": 64_000}
        job.links[HOME] = [link(WAY, chunks=second, wire_bytes=50_000 * second, **batching)]
        job.step()
    assert len(job.plans) == before


def test_a_link_that_has_nothing_to_do_is_not_slow(job: Job) -> None:
    job.run(4)
    before = len(job.plans)
    for second in range(20):
        job.links[HOME] = [
            link(WAY, chunks=second, wire_bytes=50_000 * second, bytes_per_s=9e3, backlog_keys=5)
        ]
        job.step()
    assert len(job.plans) == before


def test_a_larger_volume_is_planned_for_and_a_slightly_larger_one_is_not(job: Job) -> None:
    job.bytes_per_s = 1e6
    job.run(20)
    attempts = job.decisions._tables[TABLE].asked_for
    assert attempts is not None
    assert attempts.bytes_per_s == pytest.approx(1e6, rel=0.5)
    job.bytes_per_s = 1.05e6
    job.run(20)
    assert job.decisions._tables[TABLE].asked_for == attempts


def test_what_compression_saves_is_not_planned_for(job: Job) -> None:
    job.bytes_per_s = 4e6
    job.links[HOME] = [link(WAY, raw_bytes=9 << 20, wire_bytes=3 << 20)]
    job.run(20)
    running = job.decisions._tables[TABLE].running
    assert running is not None
    assert running["gb_per_s"] == pytest.approx(4e-3 / 3, rel=0.1)


def test_the_last_good_plan_stays_when_none_is_found(job: Job) -> None:
    job.run(4)
    before, job.fails = job.plans[:], "no plan was found within 5 s"
    job.bytes_per_s = 5e6
    job.run(20)
    assert job.plans == before
    assert job.decisions.failures >= 1
    assert job.decisions.failures <= 4, "not over and over"


def test_a_plan_through_a_lost_region_never_stays_though_none_is_found(job: Job) -> None:
    job.run(4)
    job.fails = "no plan was found within 5 s"
    job.up.discard(WAY)
    job.run(8)
    assert edges_of(job.plan) == {(HOME, NEAR), (HOME, FAR)}
    assert "no plan was found" in job.plan["note"]


def test_too_much_or_too_late_is_no_reason_to_send_nothing() -> None:
    slow = Job(settings(network(bandwidth_bps=1e5), slo_ms=20))
    slow.bytes_per_s = 1e9
    slow.run(10)
    assert slow.plan["destinations"] == [NEAR, FAR]
    assert slow.decisions.failures >= 1


def test_a_region_that_cannot_have_all_holds_up_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its links carry a hundredth of the volume, and the others are planned for as ever."""
    job = Job(settings(network(price=CHEAP_OVER_WAY, slow={NEAR: 1e5})))
    job.bytes_per_s = 1e6
    job.run(10)
    assert (WAY, FAR) in edges_of(job.plan)
    assert NEAR in job.plan["destinations"]
    assert f"reduced: the links to {NEAR} carry" in caplog.text
    running = job.decisions._tables[TABLE].running
    assert running is not None
    assert running["gb_per_s"] == pytest.approx(1e-3, rel=0.1), "the others can have all"
    job.up.discard(WAY)
    job.run(10)
    assert (HOME, FAR) in edges_of(job.plan)
    assert job.plan["gb_per_s"] == pytest.approx(1e-3, rel=0.3)


def test_a_region_that_is_too_far_holds_up_no_other(job: Job) -> None:
    job.links = {
        region: [link(NEAR, round_trip_ms=trip_ms)]
        for region, trip_ms in ((HOME, 60_000), (WAY, 80_000), (FAR, 90_000))
    }
    job.run(4)
    job.bytes_per_s = 1e6
    job.run(20)
    assert f"to {NEAR} at the least" in job.plan["note"]
    assert (WAY, FAR) in edges_of(job.plan)
    assert job.plan["delay_s"][FAR] < 5 < 30 <= job.plan["delay_s"][NEAR]
    job.up.discard(WAY)
    job.run(10)
    assert edges_of(job.plan) == {(HOME, FAR), (HOME, NEAR)}


def test_an_operator_without_the_plan_gets_it_again(job: Job) -> None:
    job.run(4)
    sent, job.in_force = job.plan, ""
    job.step()
    assert job.decisions.resend(job.now_ms) == []
    job.run(6)
    again = job.decisions.resend(job.now_ms)
    assert [json.loads(message)["number"] for message in again] == [sent["number"]]
    assert job.decisions.resend(job.now_ms) == []
    job.in_force = sent
    job.run(6)
    assert job.decisions.resend(job.now_ms) == []


def test_what_is_no_report_is_passed_over(job: Job) -> None:
    job.hear(b"{}")
    job.hear(b"")
    writer = {"region": HOME, "table": TABLE, "subtask": 0, "parallelism": 1}
    fields = {f["name"] for f in avro.load_schema("Progress")["fields"]}
    zero = {name: writer.get(name, 0) for name in fields}
    job.hear(avro.encode("Progress", zero))
    assert job.plans == []


EVENTS = st.lists(
    st.tuples(
        st.integers(1, 20),  # steps until it happens
        st.sampled_from(["up", "down", "stuck", "free", "fail", "solve", "pause", "volume"]),
        st.sampled_from(REGIONS),
    ),
    max_size=14,
)


@hypothesis_settings(max_examples=12, deadline=None)
@given(EVENTS)
def test_whatever_happens_plans_keep_the_rules(events: list[tuple[int, str, str]]) -> None:
    job = Job()
    silent_s = dict.fromkeys(REGIONS, 0.0)
    for steps, what, region in [*events, (30, "solve", NEAR)]:
        if what in ("up", "down"):
            (job.up.add if what == "up" else job.up.discard)(region)
        elif what in ("stuck", "free"):
            stuck = {"in_flight_bytes": 1, "silent_ms": 9_000} if what == "stuck" else {}
            job.links[HOME] = [link(region, **stuck)]
        elif what in ("fail", "solve"):
            job.fails = "it failed" if what == "fail" else None
        elif what == "volume":
            job.bytes_per_s = 1e7 if job.bytes_per_s < 1e6 else 1e3
        else:
            job.now_ms += 30_000
        for _ in range(steps):
            before = len(job.plans)
            job.step()
            for name in REGIONS:
                silent_s[name] = 0.0 if name in job.up else silent_s[name] + STEP_MS / 1_000
            for plan in job.plans[before:]:
                _assert_rules(plan, silent_s)
    sent = [plan["sent_ms"] for plan in job.plans]
    assert all(b - a >= 2_000 for a, b in itertools.pairwise(sent))
    assert [p["number"] for p in job.plans] == sorted({p["number"] for p in job.plans})
    # In the end, in quiet, the plan is that of the regions that are up.
    gone = {region for region in REGIONS if region not in job.up}
    assert {NEAR, FAR} & gone <= set(job.plan["detached"])
    assert not any(region in gone for edge in edges_of(job.plan) for region in edge)


def _assert_rules(plan: dict[str, Any], silent_s: Mapping[str, float]) -> None:
    used = {region for edge in edges_of(plan) for region in edge}
    # A step may pass between a report that is missed and a decision.
    long_gone = {region for region, seconds in silent_s.items() if seconds >= 17}
    assert not used & long_gone
    assert set(plan["destinations"]) | set(plan["detached"]) == {NEAR, FAR}
    assert not set(plan["destinations"]) & set(plan["detached"])
    assert set(plan["destinations"]) <= used
    assert sum(stripe["fraction"] for stripe in plan["stripes"]) == pytest.approx(1)
    for stripe in plan["stripes"]:
        reached = {HOME}
        for u, v in stripe["edges"]:
            assert u in reached
            assert v not in reached
            reached.add(v)
        assert set(plan["destinations"]) <= reached


def test_plans_are_confirmed_while_they_follow_from_what_is_reported() -> None:
    job = Job()
    job.bytes_per_s = 1e5
    job.run(30)
    assert job.decisions.confirmed_ms == job.now_ms

    job.fails = "no solver"
    job.bytes_per_s = 1e6
    job.run(20)
    failed_ms = job.now_ms
    assert job.decisions.failures
    assert failed_ms - 20_000 <= (job.decisions.confirmed_ms or 0) < failed_ms - 10_000

    job.fails = None
    job.run(60)
    assert job.decisions.confirmed_ms == job.now_ms
