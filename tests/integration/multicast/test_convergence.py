"""Tables reach their regions along the plan, and regions that were cut off become equal again.

Goal: what stands in a destination's Redis in the end is the newest change of each key, byte for
byte, over the links that the plan names, and after a partition as well.

Method: change events are written straight to the changes topic; a dictionary keeps the newest of
each key. The multicast job and three region jobs run on one Flink; regions have servers of their
own behind emulated links.

Fails when: a key is missing, old or different in a destination, data takes links that the plan does
not have, the plan ignores prices or a region that is away, or a heal does not end in equality.
"""

from __future__ import annotations

import pytest

from freshet.cli.status import describe_regions
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
from tests.integration.wide_area import DESTINATIONS, FAR, HOME, NEAR, WAY, WideArea

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CHANGES = 10_000


def test_destinations_have_the_newest_of_each_key_over_the_plan_s_links(
    area: WideArea, changes: Changes
) -> None:
    tree = {(HOME, WAY), (WAY, NEAR), (WAY, FAR)}
    eventually(lambda: edges(plan_in_force(area)) == tree, "the cheapest plan is in force")
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
    for u, v in tree:
        assert bytes_out[f"{u}->{v}"] > least, bytes_out
    for region in DESTINATIONS:
        assert bytes_out[f"{HOME}->{region}"] < least / 4, bytes_out

    links = {
        (report["region"], link["to"]): link["wire_bytes"]
        for report in area.reports()
        for link in report["links"]
    }
    assert {link for link in links if link in tree} == tree


def test_status_tells_how_regions_stand(area: WideArea, changes: Changes) -> None:
    changes.write(100)

    def stands() -> bool:
        status = describe_regions(area.config(HOME))
        of_region = {each["region"]: each for each in status["regions"]}
        assert set(of_region) == {NEAR, FAR, WAY}
        for region in DESTINATIONS:
            assert of_region[region]["applied"] >= len(changes.newest)
            assert (
                0 < of_region[region]["freshness_p50_ms"] <= of_region[region]["freshness_p99_ms"]
            )
        for each in of_region.values():
            assert each["heard_ago_s"] < 10
            assert each["usd"] > 0
            assert each["plan"] == status["plans"][TABLE]["number"]
            assert not each["detached"]
        assert not of_region[WAY]["keeps"]
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
