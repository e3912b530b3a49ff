"""How each region stands: what the newest reports in ``progress`` say of it, for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from freshet.avro import AvroError, decode
from freshet.config import Config
from freshet.multicast.settings import Link
from freshet.topic_reading import read_topic

BYTES_PER_GB = 1e9


class Heard(NamedTuple):
    """A report, and when home's broker was told."""

    at_ms: int
    report: dict[str, Any]


@dataclass(frozen=True)
class Standing:
    """One table in one region. Counters count since the jobs' first start."""

    region: str
    table: str
    keeps: bool
    """False for a waypoint, which only sends on."""

    heard_ago_s: float
    detached: bool
    """Whether the plan does without it, because it does not answer or cannot be reached."""

    freshness_p50_ms: float | None
    """Of the last report with live changes: the worst of the region's subtasks."""

    freshness_p99_ms: float | None
    applied: int
    caught_up: int
    late: int
    backlog_keys: int
    """Keys with a change that is on its way to the region and not sent, of all tables."""

    behind: bool
    """Whether some of them are due; if not, they wait for company until their deadline."""

    wire_bytes: int
    """Sent to the region, of all tables."""

    usd: float | None
    """For that, at the profiles' prices; None if they are not known."""

    plan: int
    """Number of the plan in force; 0 before the first."""

    def to_dict(self) -> dict[str, Any]:
        """The standing as JSON types."""
        return asdict(self)


def read_reports(config: Config) -> list[Heard]:
    """The reports in the topic ``progress`` on home's broker, oldest first; none if it is missing.

    Raises:
        FreshetError: the broker does not answer.
    """
    heard = []
    properties = config.kafka_client_properties(config.home_region)
    for message in read_topic(properties, f"{config.topic_prefix}progress"):
        report = _report_of(message.value())
        if report is not None:
            heard.append(Heard(message.timestamp()[1], report))
    return sorted(heard, key=lambda each: each.at_ms)


def _report_of(value: bytes | None) -> dict[str, Any] | None:
    try:
        name, record = decode(value or b"")
    except AvroError:
        return None
    return record if name == "RegionReport" else None


def plans_in_force(heard: Iterable[Heard]) -> dict[str, dict[str, Any]]:
    """The newest plan of each table that the multicast job reports as in force."""
    plans: dict[str, dict[str, Any]] = {}
    for _, report in heard:
        if report["reporter"] == "MULTICAST" and report["plan"]:
            plan: dict[str, Any] = json.loads(report["plan"])
            if plan["number"] >= plans.get(report["table"], plan)["number"]:
                plans[report["table"]] = plan
    return plans


def standings(
    heard: Iterable[Heard], usd_per_gb: Mapping[Link, float] | None, now_ms: int
) -> list[Standing]:
    """Each region's standing with each table that it reports of, by region and table.

    Args:
        heard: oldest first.
        usd_per_gb: price of each link; None if it is not known.
        now_ms: home's wall clock.
    """
    heard = list(heard)
    plans = plans_in_force(heard)
    subtasks: dict[tuple[str, str], dict[int, Heard]] = {}
    links: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for each in heard:
        report = each.report
        links[report["region"], report["subtask"]] = report["links"]
        for gone in [s for r, s in links if r == report["region"] and s >= report["parallelism"]]:
            del links[report["region"], gone]  # what it counted, the others go on from
        if report["reporter"] == "REGION" and report["table"]:
            of_table = subtasks.setdefault((report["region"], report["table"]), {})
            of_table[report["subtask"]] = _with_last_freshness(each, of_table)
            for gone in [s for s in of_table if s >= report["parallelism"]]:
                del of_table[gone]
    to: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for (sender, _), reports in links.items():
        for link in reports:
            to.setdefault(link["to"], []).append((sender, link))
    return [
        _standing(region, table, latest.values(), to.get(region, []), plans, usd_per_gb, now_ms)
        for (region, table), latest in sorted(subtasks.items())
    ]


def _with_last_freshness(new: Heard, before: Mapping[int, Heard]) -> Heard:
    """A report without live changes says nothing of freshness; the one before does."""
    old = before.get(new.report["subtask"])
    if new.report["freshness"] is None and old is not None:
        return Heard(new.at_ms, {**new.report, "freshness": old.report["freshness"]})
    return new


def _standing(
    region: str,
    table: str,
    latest: Iterable[Heard],
    links: Iterable[tuple[str, Mapping[str, Any]]],
    plans: Mapping[str, Mapping[str, Any]],
    usd_per_gb: Mapping[Link, float] | None,
    now_ms: int,
) -> Standing:
    latest, links = list(latest), list(links)
    reports = [each.report for each in latest]
    lags = [report["freshness"] for report in reports if report["freshness"] is not None]
    plan = plans.get(table, {})
    usd = None
    if usd_per_gb is not None:
        usd = sum(
            link["wire_bytes"] / BYTES_PER_GB * usd_per_gb.get((sender, region), 0.0)
            for sender, link in links
        )
    return Standing(
        region=region,
        table=table,
        keeps=all(report["applies"] for report in reports),
        heard_ago_s=max(0.0, (now_ms - max(each.at_ms for each in latest)) / 1_000),
        detached=region in plan.get("detached", ()),
        freshness_p50_ms=max((lag["p50_ms"] for lag in lags), default=None),
        freshness_p99_ms=max((lag["p99_ms"] for lag in lags), default=None),
        applied=sum(report["applied"] for report in reports),
        caught_up=sum(report["caught_up"] for report in reports),
        late=sum(report["late"] for report in reports),
        backlog_keys=sum(link["backlog_keys"] for _, link in links),
        behind=any(link["behind"] for _, link in links),
        wire_bytes=sum(link["wire_bytes"] for _, link in links),
        usd=usd,
        plan=int(plan.get("number", 0)),
    )
