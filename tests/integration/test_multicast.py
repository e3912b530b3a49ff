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

import json
import random
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from freshet import avro
from freshet.cli.status import describe_regions
from freshet.wan.faults import fired
from freshet.wan.scenario import Fault, Kind
from tests.integration.polling import eventually
from tests.integration.store import ENCODING_VECTOR, Store, Stored
from tests.integration.tables import write_definition
from tests.integration.wide_area import DESTINATIONS, FAR, HOME, NEAR, WAY, WideArea, wide_area
from tests.reference.model import Version

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TABLE = "worldwide"
CHANGES_TOPIC = f"changes.{TABLE}"
KEYS = 2_000
CHANGES = 10_000
ORIGIN = 7
VECTOR_LENGTH = 16

REGIONS = f"({HOME!r}, {NEAR!r}, {FAR!r})"


class Changes:
    """Writes change events, and knows what every store must have in the end."""

    def __init__(self, area: WideArea) -> None:
        self._topics = area.topics
        self._random = random.Random(17)
        self._clock_micros = time.time_ns() // 1_000
        self.newest: dict[str, Stored] = {}

    def write(self, count: int, keys: int = KEYS) -> None:
        """Writes changes of random keys, in the order of their versions."""
        for _ in range(count):
            self._clock_micros += 1
            key = f"key-{self._random.randrange(keys)}"
            self._write(key, [self._random.random() for _ in range(VECTOR_LENGTH)])
        self._topics.flush()

    def _write(self, key: str, vector: list[float]) -> None:
        now_ms = time.time_ns() // 1_000_000
        payload = struct.pack(f"<{len(vector)}f", *vector)
        change = {
            "table": TABLE,
            "key": key,
            "version_timestamp": self._clock_micros,
            "version_origin": ORIGIN,
            "event_time": now_ms,
            "computed_at": now_ms,
            "operation": "UPSERT",
            "encoding": "FLOAT32_VECTOR",
            "value": payload,
            "regret_removed": self._random.random(),
        }
        self._topics.send(CHANGES_TOPIC, avro.encode("FeatureChange", change), key.encode())
        version = Version(self._clock_micros, ORIGIN)
        self.newest[key] = Stored(version, now_ms, now_ms, ENCODING_VECTOR, payload)


@pytest.fixture(scope="module")
def area(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WideArea]:
    """The deployment, with its four jobs running."""
    folder = tmp_path_factory.mktemp("wide-area")
    with wide_area(folder) as running:
        file = write_definition(
            folder, TABLE, window="Points(4)", regions=REGIONS, freshness_slo="'1s'"
        )
        running.submit(file)
        yield running


@pytest.fixture(scope="module")
def changes(area: WideArea) -> Changes:
    """Writes to the table's changes."""
    return Changes(area)


def differing(area: WideArea, changes: Changes, region: str) -> list[str]:
    """Keys whose value in a region is not the newest."""
    stored = Store(area.regions[region].redis.url, TABLE).get_many(changes.newest)
    return [key for key, value in changes.newest.items() if stored.get(key) != value]


def wait_until_equal(area: WideArea, changes: Changes, region: str) -> None:
    """Waits until a region's store is the reference."""

    def is_equal() -> bool:
        wrong = differing(area, changes, region)
        assert not wrong, f"{len(wrong)} of {len(changes.newest)} keys, such as {wrong[:3]}"
        return True

    eventually(is_equal, f"{region} has the newest of each key")
    assert Store(area.regions[region].redis.url, TABLE).keys() == set(changes.newest)


def plan_in_force(area: WideArea) -> dict[str, Any]:
    """The plan that the multicast job reports."""
    mine = [r for r in area.reports() if r["reporter"] == "MULTICAST" and r["plan"]]
    return dict(json.loads(mine[-1]["plan"])) if mine else {}


def edges(plan: dict[str, Any]) -> set[tuple[str, str]]:
    return {(u, v) for stripe in plan.get("stripes", ()) for u, v in stripe["edges"]}


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
