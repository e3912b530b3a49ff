"""The demo's regions for tests: their configurations, the plan for them, and their reports."""

from __future__ import annotations

import functools
import json
from typing import Any

from freshet import Aggregate, Config, FeatureTable, Points
from freshet.demo.dissemination import Dissemination
from freshet.demo.regions import DESTINATIONS, HOME, ON_THE_WAY, StoreState, region_configs
from freshet.multicast.building import planner_settings
from freshet.multicast.conditions import conditions
from freshet.multicast.requests import request
from freshet.multicast.solving import solve
from freshet.topics import Log
from tests.unit.multicast.reports import link, report_dict

TABLE = "cpu_stl"
NEAR, FAR = DESTINATIONS
REDIS_URLS = ("redis://127.0.0.1:1",) * 3


def make_config(urls: tuple[str, ...] = REDIS_URLS) -> Config:
    """The stack's: a Redis for home and each destination."""
    return Config(
        kafka_bootstrap="127.0.0.1:1",
        redis=dict(zip((HOME, *DESTINATIONS), urls, strict=True)),
        home_region=HOME,
    )


@functools.cache
def plan_of_the_demo() -> str:
    """What the planner in the multicast job makes of the demo's regions, JSON."""
    table = FeatureTable(
        name=TABLE,
        function=Aggregate(),
        window=Points(4),
        regions=(HOME, *DESTINATIONS),
        freshness_slo="2s",
    )
    home = region_configs(make_config())[HOME]
    settings = planner_settings([table], home, {TABLE: Log("", 4)})
    (planned,) = settings.tables
    now = conditions(settings, planned, frozenset(), settings.network.links(), 50_000.0)
    asked = request(settings, planned, now, latency_ms={}, taken_bps={}, running=None)
    return json.dumps(solve(asked).plan)


def region(name: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    """A region's report of the table."""
    counters = {"delay": None, "applied": 0, "caught_up": 0}
    return report_dict(name, at_ms, table=TABLE, **{**counters, **fields})


def home(at_ms: int, plan: str, **fields: Any) -> dict[str, Any]:
    """The multicast job's report."""
    return region(HOME, at_ms, reporter="MULTICAST", plan=plan, **fields)


def sent() -> Dissemination:
    """What a run reports in which all changes took the planned way."""
    watch = Dissemination(TABLE)
    delay = {"count": 2, "p50_ms": 900.0, "p99_ms": 900.0, "max_ms": 1_500.0}
    to_both = [link(NEAR, wire_bytes=4_000), link(FAR, wire_bytes=4_000)]
    watch.take(home(1_000, plan_of_the_demo(), links=[link(ON_THE_WAY, wire_bytes=4_000)]))
    watch.take(region(ON_THE_WAY, 1_000, links=to_both))
    for name in DESTINATIONS:
        watch.take(region(name, 1_000, applied=2, delay=delay))
        watch.stores[name] = StoreState(3, True)
    return watch
