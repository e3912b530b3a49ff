"""Reports and settings for tests of the planner in the job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from freshet import avro
from freshet.multicast.settings import PlainNetwork, PlannedTable, PlannerSettings, Thresholds

HOME = "local:home"
NEAR, FAR, WAY = "local:near", "local:far", "local:way"
TABLE = "features"
START_MS = 1_800_000_000_000

LIMITS = {
    "egress_bps": None,
    "ingress_bps": None,
    "usd_per_s": 0.0,
    "max_vms": 1,
    "min_vms": 1,
}


def network(
    regions: tuple[str, ...] = (HOME, NEAR, FAR, WAY),
    price: Mapping[tuple[str, str], float] | None = None,
    bandwidth_bps: float = 100e6,
    slow: Mapping[str, float] | None = None,
) -> PlainNetwork:
    """All links of one bandwidth but those to slow regions; $ 0.10 a GB where no price is given."""
    prices, bps = price or {}, slow or {}
    return PlainNetwork(
        regions,
        tuple(tuple(0.0 if u == v else prices.get((u, v), 0.1) for v in regions) for u in regions),
        tuple(
            tuple(0.0 if u == v else bps.get(v, bandwidth_bps) for v in regions) for u in regions
        ),
        tuple(LIMITS for _ in regions),
    )


CHEAP_OVER_WAY = {(HOME, WAY): 0.01, (WAY, NEAR): 0.02, (WAY, FAR): 0.02}
"""Prices that make the waypoint the best way to both destinations."""


def settings(
    net: PlainNetwork | None = None, slo_ms: int = 10_000, **thresholds: float
) -> PlannerSettings:
    """One table of four shards with two destinations."""
    table = PlannedTable(TABLE, (NEAR, FAR), shards=4, slo_ms=slo_ms)
    return PlannerSettings(
        HOME,
        (table,),
        net or network(price=CHEAP_OVER_WAY),
        Thresholds(**thresholds),  # type: ignore[arg-type]
    )


def link(to: str, **fields: float) -> dict[str, Any]:
    """A link's report, idle where nothing else is said."""
    return {
        "to": to,
        "chunks": 0,
        "raw_bytes": 0,
        "wire_bytes": 0,
        "catch_up_bytes": 0,
        "backlog_keys": 0,
        "behind": False,
        "in_flight_bytes": 0,
        "bytes_per_s": 0.0,
        "round_trip_ms": 0.0,
        "silent_ms": 0,
        **fields,
    }


def report_dict(region: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    """A region's report, with its links and nothing else where nothing is said."""
    return {
        "region": region,
        "reporter": "REGION",
        "table": TABLE,
        "subtask": 0,
        "parallelism": 1,
        "reported_at_micros": at_ms * 1_000,
        "links": [],
        **fields,
    }


def region_report(region: str, at_ms: int, **fields: Any) -> bytes:
    """The same as it is in the topic."""
    return avro.encode("RegionReport", report_dict(region, at_ms, **fields))


def home_report(
    at_ms: int, change_bytes: int = 0, plan: Mapping[str, Any] | str = "", **fields: Any
) -> bytes:
    """The multicast job's own report."""
    text = plan if isinstance(plan, str) else json.dumps(plan)
    more = {"reporter": "MULTICAST", "change_bytes": change_bytes, "plan": text, **fields}
    return region_report(HOME, at_ms, **more)
