"""What the solver is asked and answers, as plain data: it crosses to another process as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from freshet.multicast.conditions import Conditions
from freshet.multicast.settings import Link, PlannedTable, PlannerSettings

SLACK_SHARE = 0.4
"""Of a table's SLO that is left for filling chunks and for what takes longer than on average; a
plan may use the rest."""

CHUNK_MB_MIN = 0.01
CHUNK_MB_MAX = 1.0

STAY_SHARE = 0.8
"""Of the time limit, after which the solver gives up by itself; at its end it is killed."""

LEAST_SHARE = 0.05
"""Of a link's speed that a table is planned with, however much others of the job send there."""

PlanDict = dict[str, Any]
"""A plan for a stream, as ``StreamPlan.to_dict`` gives it."""


class Outcome(StrEnum):
    """What the solver did."""

    NEW = "new"
    KEPT = "kept"
    """The running plan still does, within the tolerance."""

    LAST_GOOD = "last good"
    """None was found in time; the running one can still be used and stays."""

    REDUCED = "reduced"
    """No plan does what is asked, or not for every destination: the best that there is."""


@dataclass(frozen=True)
class Request:
    """A stream to plan for."""

    source: str
    destinations: tuple[str, ...]
    regions: tuple[str, ...]
    price_usd_per_gb: tuple[tuple[float, ...], ...]
    bandwidth_bps: tuple[tuple[float, ...], ...]
    latency_s: tuple[tuple[float, ...], ...]
    limits: tuple[Mapping[str, float | None], ...]
    gb_per_s: float
    freshness_s: float
    chunk_mb: float
    parts: int
    """Equal parts that the stream is cut into at most."""

    running: PlanDict | None
    tolerance: float
    time_limit_s: float

    def to_dict(self) -> dict[str, Any]:
        """The request as JSON types."""
        return dataclasses.asdict(self)

    def links(self) -> set[Link]:
        """The links that a plan may use."""
        return {
            (u, v)
            for u, row in zip(self.regions, self.bandwidth_bps, strict=True)
            for v, bps in zip(self.regions, row, strict=True)
            if bps > 0 and u != v
        }


@dataclass(frozen=True)
class Answer:
    """What the solver found."""

    plan: PlanDict
    outcome: Outcome
    reason: str
    """Why it is not what was asked for; empty if it is."""


def request(
    settings: PlannerSettings,
    table: PlannedTable,
    now: Conditions,
    *,
    latency_ms: Mapping[Link, float],
    taken_bps: Mapping[Link, float],
    running: PlanDict | None,
) -> Request:
    """The request for a table's plan.

    Args:
        settings: of the planner.
        table: to plan for; a destination must be left.
        now: what the plan follows from.
        latency_ms: of links on which it was measured, one way.
        taken_bps: of links, by other tables.
        running: the plan until now, if there is one.
    """
    network, thresholds = settings.network, settings.thresholds
    places = [i for i, region in enumerate(network.regions) if region not in now.gone]
    regions = tuple(network.regions[i] for i in places)

    def left_bps(link: Link) -> float:
        usable = now.usable_bps.get(link, 0.0)
        return max(usable - taken_bps.get(link, 0.0), LEAST_SHARE * usable)

    slack_s = table.slo_ms / 1_000 * SLACK_SHARE
    return Request(
        source=settings.home,
        destinations=now.destinations,
        regions=regions,
        price_usd_per_gb=tuple(
            tuple(network.price_usd_per_gb[i][j] for j in places) for i in places
        ),
        bandwidth_bps=tuple(tuple(left_bps((u, v)) for v in regions) for u in regions),
        latency_s=tuple(
            tuple(latency_ms.get((u, v), thresholds.latency_ms) / 1_000 for v in regions)
            for u in regions
        ),
        limits=tuple(network.limits[i] for i in places),
        gb_per_s=now.bytes_per_s / 1e9,
        freshness_s=max(table.slo_ms / 1_000 - slack_s, 1e-3),
        # A chunk is what comes together while it may wait.
        chunk_mb=min(CHUNK_MB_MAX, max(CHUNK_MB_MIN, now.bytes_per_s * slack_s / 1e6)),
        parts=min(table.shards, thresholds.max_parts),
        running=running,
        tolerance=thresholds.tolerance,
        time_limit_s=STAY_SHARE * thresholds.time_limit_ms / 1_000,
    )


def edges_of(plan: Mapping[str, Any]) -> set[Link]:
    """The links that a plan uses."""
    return {(u, v) for stripe in plan["stripes"] for u, v in stripe["edges"]}


def load_bps(plan: Mapping[str, Any]) -> dict[Link, float]:
    """What a plan sends along each link, bit/s."""
    load: dict[Link, float] = {}
    for stripe in plan["stripes"]:
        for u, v in stripe["edges"]:
            load[u, v] = load.get((u, v), 0.0) + stripe["fraction"] * plan["gb_per_s"] * 8e9
    return load


def plan_without_solver(asked: Request) -> PlanDict:
    """A plan with the fewest hops to each destination, for when none can be computed.

    It is also the plan for no destination at all.
    """
    links = sorted(asked.links())
    edges: list[list[str]] = []
    reached = [asked.source]
    for region in reached:  # grows as it is walked: breadth first
        for u, v in links:
            if u == region and v not in reached:
                reached.append(v)
                edges.append([u, v])
    kept = _needed(edges, asked.destinations)
    return {
        "source": asked.source,
        "destinations": list(asked.destinations),
        "gb_per_s": asked.gb_per_s,
        "freshness_s": asked.freshness_s,
        "stripes": [{"fraction": 1.0, "edges": kept}],
        "algorithm": "fewest hops",
    }


def _needed(edges: Sequence[list[str]], destinations: Sequence[str]) -> list[list[str]]:
    before = {v: u for u, v in edges}
    needed: set[str] = set()
    for destination in destinations:
        region = destination
        while region in before and region not in needed:
            needed.add(region)
            region = before[region]
    return [edge for edge in edges if edge[1] in needed]
