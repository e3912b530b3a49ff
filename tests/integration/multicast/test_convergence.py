"""Tables reach their regions along the plan, and regions that were cut off become equal again.

Goal: what stands in a destination's Redis in the end is the newest change of each key, byte for
byte, over the links that the plan names, and after a partition as well; with one region behind
links of a tenth of the others' bandwidth, and two whose clocks are five minutes off.

Method: change events are written straight to the changes topic; a dictionary keeps the newest of
each key. The multicast job and four region jobs run on one Flink; regions have servers of their
own behind emulated links.

Fails when: a key is missing, old or different in a destination, data takes links that the plan does
not have, the plan ignores prices or a region that is away, a heal does not end in equality, or a
clock that is off shows in what is measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from freshet.multicast.standing import read_reports
from freshet.status.reader import StatusReader
from freshet.wan.faults import fired
from freshet.wan.scenario import Fault, Kind
from tests.integration.multicast.changes import (
    TABLE,
    VECTOR_LENGTH,
    Changes,
    differing,
    edges,
    plan_in_force,
    wait_until_equal,
)
from tests.integration.polling import eventually
from tests.integration.store import Store
from tests.integration.wide_area import (
    CLOCK_AHEAD_MS,
    DESTINATIONS,
    FAR,
    HOME,
    NEAR,
    SLOW,
    WAY,
    WideArea,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TREE = {(HOME, WAY), *((WAY, region) for region in DESTINATIONS)}
"""The cheapest way to all destinations."""

CHANGES = 10_000
REFUSED_S = 1.0
SANE_MS = 10_000
"""Far more than a change takes on a busy machine, and far less than clocks are apart."""

SLOW_FORGOTTEN_S = 180.0
"""A link that was slow after a fault is tried again by then."""


def wait_for_cheapest_plan(area: WideArea) -> None:
    """Waits until changes take the cheapest way."""
    eventually(
        lambda: edges(plan_in_force(area)) == TREE,
        "the cheapest plan is in force",
        SLOW_FORGOTTEN_S,
    )


def test_destinations_have_the_newest_of_each_key_over_the_plan_s_links(
    area: WideArea, changes: Changes
) -> None:
    wait_for_cheapest_plan(area)
    before = area.regions.wan.states()
    changes.write(CHANGES)
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)

    # Every key has crossed each of the plan's links, once for all destinations behind it.
    after = area.regions.wan.states()
    bytes_out = {
        link: after[link].forward.bytes_out - before[link].forward.bytes_out for link in after
    }
    least = len(changes.newest) * 4 * VECTOR_LENGTH // 2
    for u, v in TREE:
        assert bytes_out[f"{u}->{v}"] > least, bytes_out
    for region in DESTINATIONS:
        assert bytes_out[f"{HOME}->{region}"] < least / 4, bytes_out

    links = {
        (report["region"], link["to"]): link["wire_bytes"]
        for report in area.reports()
        for link in report["links"]
    }
    assert {link for link in links if link in TREE} == TREE


def test_status_tells_how_regions_stand(area: WideArea, changes: Changes) -> None:
    with StatusReader(area.config(HOME)) as reader:

        def stands() -> bool:
            changes.write(10)
            status = reader.snapshot()
            of_region = {each.region: each for each in status.regions if each.table == TABLE}
            assert set(of_region) == {*DESTINATIONS, WAY}
            for each in (of_region[region] for region in DESTINATIONS):
                assert each.applied >= len(changes.newest)
                assert 0 < (each.freshness_p50_ms or 0) <= (each.freshness_p99_ms or 0)
                assert 0 < (each.delay_p50_ms or 0) <= (each.delay_p99_ms or 0)
            for each in of_region.values():
                assert each.heard_ago_s < 10
                assert each.usd is not None
                assert each.usd > 0
                assert each.plan == status.plans[TABLE]["number"]
                assert not each.detached
            assert not of_region[WAY].keeps
            assert status.usd == sum(link.usd or 0.0 for link in status.links)
            return True

        eventually(stands, "all regions stand well")


def test_a_region_that_was_cut_off_becomes_equal(area: WideArea, changes: Changes) -> None:
    with fired(area.regions, Fault(Kind.CUT, region=FAR)) as cut:
        changes.write(CHANGES // 10)
        wait_until_equal(area, changes, NEAR)
        eventually(lambda: plan_in_force(area).get("detached") == [FAR], "the plan does without it")
        changes.write(CHANGES // 10)
        wait_until_equal(area, changes, NEAR)
        assert differing(area, changes, FAR)
    assert cut.connections_reset

    wait_until_equal(area, changes, FAR)
    eventually(lambda: plan_in_force(area).get("detached") == [], "the plan has it again")
    changes.write(CHANGES // 10)
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)


def test_tables_of_one_job_go_where_each_is_for(
    area: WideArea, changes: Changes, nearby: Changes
) -> None:
    changes.write(CHANGES // 10)
    nearby.write(CHANGES // 10)
    wait_until_equal(area, nearby, NEAR)
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)
    for region in (FAR, SLOW):
        assert Store(area.regions[region].redis.url, nearby.table).keys() == set()


def test_clocks_that_are_apart_do_not_show(area: WideArea, changes: Changes) -> None:
    """A region's clock is in its reports; freshness is measured by home's, once it is learnt."""
    heard = read_reports(area.config(HOME))
    for region in (*DESTINATIONS, WAY):
        at_ms, report = [each for each in heard if each.report["region"] == region][-1]
        ahead_ms = report["reported_at_micros"] / 1_000 - at_ms
        assert abs(ahead_ms - CLOCK_AHEAD_MS.get(region, 0)) < SANE_MS, (region, ahead_ms)

    eventually(lambda: is_sane(area, changes), "home has learnt the clocks")
    before = len(area.reports())
    eventually(
        lambda: (
            is_sane(area, changes)
            and {r["region"] for r in area.reports()[before:] if r["delay"]} >= set(DESTINATIONS)
        ),
        "each region has measured again",
    )
    for region in DESTINATIONS:
        measured = [r for r in area.reports()[before:] if r["region"] == region and r["delay"]]
        for lags in ("delay", "freshness"):
            # One that is far behind would measure nothing at all.
            assert 0 < max(report[lags]["max_ms"] for report in measured) < SANE_MS, measured
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)


def is_sane(area: WideArea, changes: Changes) -> bool:
    """Whether what each destination measured last of new changes is no more than seconds."""
    changes.write(10)
    last = {r["region"]: r["freshness"] for r in area.reports() if r["freshness"]}
    return all(last.get(region, {"max_ms": SANE_MS})["max_ms"] < SANE_MS for region in DESTINATIONS)


def assert_refused(bootstrap: str, properties: Mapping[str, str], code: int) -> None:
    """A client with these properties meets this error at a broker."""
    errors: list[KafkaError] = []
    client = AdminClient(
        {"bootstrap.servers": bootstrap, "log_level": "0", "error_cb": errors.append, **properties}
    )
    with contextlib.suppress(KafkaException):
        client.list_topics(timeout=REFUSED_S)

    def is_refused() -> bool:
        client.poll(0)
        assert code in [error.code() for error in errors], errors
        return True

    eventually(is_refused, "the broker refuses")


def bytes_to(area: WideArea, region: str) -> int:
    """Bytes that have come through the links to a region, whoever sent them."""
    states = area.regions.wan.states()
    return sum(each.forward.bytes_out for name, each in states.items() if name.endswith(region))


def test_chunks_go_over_tls_and_with_a_login(area: WideArea, changes: Changes) -> None:
    """The far region's broker takes them from no one else; none came another way."""
    before = bytes_to(area, FAR)
    changes.write(CHANGES // 10)
    wait_until_equal(area, changes, FAR)
    assert bytes_to(area, FAR) > before

    bootstrap, login = area.regions.addresses(WAY, FAR).bootstrap, area.far_properties
    assert AdminClient({"bootstrap.servers": bootstrap, **login}).list_topics(timeout=30).brokers
    stranger = {**login, "sasl.password": "guessed"}
    assert_refused(bootstrap, stranger, KafkaError._AUTHENTICATION)
    mistrustful = {name: value for name, value in login.items() if name != "ssl.ca.location"}
    assert_refused(bootstrap, mistrustful, KafkaError._SSL)
    assert_refused(bootstrap, {}, KafkaError._ALL_BROKERS_DOWN)
