"""A snapshot with something of everything, for tests of what is shown of it."""

from __future__ import annotations

from typing import Any

from freshet.multicast.standing import LinkStanding, Standing
from freshet.stack.flink_rest import JobStatus
from freshet.status.snapshot import Snapshot, SourceStatus, TableStatus

HOME, WAY = "azure:uaenorth", "aws:us-east-1"
NEAR, FAR = "aws:af-south-1", "aws:sa-east-1"
TABLE = "cpu_stl"
HOSTILE = "<img src=x onerror=\"document.title='taken'\">'&\x1b[2J[red]"
"""A table's name that is HTML, a terminal's command and markup in one."""


def standing(region: str, **fields: Any) -> Standing:
    """A region that stands well, but for what is given."""
    values: dict[str, Any] = {
        "table": TABLE,
        "keeps": True,
        "heard_ago_s": 0.4,
        "detached": False,
        "freshness_p50_ms": 900.0,
        "freshness_p99_ms": 12_345.0,
        "delay_p50_ms": 812.4,
        "delay_p99_ms": 1_950.0,
        "slo_ms": 2_000,
        "applied": 5_170,
        "caught_up": 0,
        "late": 0,
        "backlog_keys": 12,
        "behind": False,
        "wire_bytes": 1_234_567,
        "usd": 0.0371,
        "plan": 7,
    }
    return Standing(region, **(values | fields))


PLAN = {"number": 7, "note": "first plan", "detached": [], "stripes": [
    {"fraction": 1.0, "edges": [[HOME, WAY], [WAY, NEAR], [WAY, FAR]]}
]}  # fmt: skip


def snapshot(**fields: Any) -> Snapshot:
    """A deployment of two tables, one of them hostile, and three regions."""
    values: dict[str, Any] = {
        "taken_at_ms": 1_795_000_000_000,
        "took_ms": 12.0,
        "home_region": HOME,
        "sources": (SourceStatus("Kafka", 0.1, None), SourceStatus("Flink", 0.1, None)),
        "jobs": (JobStatus("ab" * 16, f"freshet-{HOSTILE}", "RUNNING", 2, 1),),
        "tables": (
            TableStatus(
                TABLE,
                "regret-proportional",
                2_000,
                129,
                47,
                3.25,
                5_620,
                41.7,
                1_290.0,
                0,
                150.0,
                1_303.0,
                6,
            ),
            TableStatus(HOSTILE),
        ),
        "regions": (
            standing(NEAR),
            standing(FAR, delay_p99_ms=2_400.0, late=3, behind=True, backlog_keys=40_000),
            standing(WAY, keeps=False, delay_p50_ms=None, delay_p99_ms=None),
            standing(FAR, table=HOSTILE, slo_ms=None, detached=True, heard_ago_s=31.0),
        ),
        "links": (
            LinkStanding(HOME, WAY, 2_469_134, 12, False, 5e6, 41.0, 0.08, 0.1975),
            LinkStanding(WAY, FAR, 1_234_567, 40_000, True, 0.0, 0.0, None, None),
        ),
        "plans": {TABLE: PLAN, HOSTILE: PLAN | {"number": 1, "detached": [FAR]}},
        "usd": None,
        "usd_per_h": None,
    }
    return Snapshot(**(values | fields))
