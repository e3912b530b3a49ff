"""How each region stands: what the newest reports in ``progress`` say of it, for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from freshet.avro import AvroError, decode
from freshet.config import Config
from freshet.multicast.settings import Link
from freshet.topic_reading import read_topic

if TYPE_CHECKING:
    from confluent_kafka import Message

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
    """From event time to readable there, of the last report with live changes: the worst of the
    region's subtasks."""

    freshness_p99_ms: float | None
    delay_p50_ms: float | None
    """The same from computing on, which the table's SLO is about."""

    delay_p99_ms: float | None
    slo_ms: int | None
    """The table's freshness SLO; None if its definition is not known."""

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
    """For that, at the profiles' prices; None if one of them is not known."""

    plan: int
    """Number of the plan in force; 0 before the first."""

    @property
    def meets_slo(self) -> bool | None:
        """Whether 99 % of the last live changes did; None if that is not known."""
        if self.slo_ms is None or self.delay_p99_ms is None:
            return None
        return self.delay_p99_ms <= self.slo_ms

    def to_dict(self) -> dict[str, Any]:
        """The standing as JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class LinkStanding:
    """One link that changes go along, all subtasks and tables together."""

    source: str
    target: str
    wire_bytes: int
    """Sent since the jobs' first start."""

    backlog_keys: int
    behind: bool
    bytes_per_s: float
    """Fastest recent delivery; 0 if unknown."""

    round_trip_ms: float
    """Fastest recent acknowledgement; 0 if unknown."""

    usd_per_gb: float | None
    usd: float | None
    """For ``wire_bytes``; None if the price is not known."""

    def to_dict(self) -> dict[str, Any]:
        """The link as JSON types."""
        return asdict(self)


def read_reports(config: Config) -> list[Heard]:
    """The reports in the topic ``progress`` on home's broker, oldest first; none if it is missing.

    Raises:
        FreshetError: the broker does not answer.
    """
    properties = config.kafka_client_properties(config.home_region)
    messages = read_topic(properties, f"{config.topic_prefix}progress")
    heard = [report for message in messages if (report := heard_of(message)) is not None]
    return sorted(heard, key=lambda each: each.at_ms)


def heard_of(message: Message) -> Heard | None:
    """The report in a record of ``progress``; None if it is something else."""
    try:
        name, record = decode(message.value() or b"")
    except AvroError:
        return None
    return Heard(message.timestamp()[1], record) if name == "RegionReport" else None


class Reports:
    """What the newest reports say, taken in one by one; not safe to share between threads."""

    def __init__(self, heard: Iterable[Heard] = ()) -> None:
        """Takes these in, oldest first."""
        self.plans: dict[str, dict[str, Any]] = {}
        """The newest plan of each table that the multicast job reports as in force."""

        self._subtasks: dict[tuple[str, str], dict[int, Heard]] = {}
        self._links: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for each in heard:
            self.take(each)

    def take(self, heard: Heard) -> None:
        """Takes a report in, which is newer than those before."""
        report = heard.report
        region, subtask, parallelism = report["region"], report["subtask"], report["parallelism"]
        self._links[region, subtask] = report["links"]
        for gone in [s for r, s in self._links if r == region and s >= parallelism]:
            del self._links[region, gone]  # what it counted, the others go on from
        if report["reporter"] == "MULTICAST":
            self._take_plan(report["table"], report["plan"])
        elif report["table"]:
            of_table = self._subtasks.setdefault((region, report["table"]), {})
            of_table[subtask] = _with_last_lags(heard, of_table.get(subtask))
            for gone in [s for s in of_table if s >= parallelism]:
                del of_table[gone]

    def _take_plan(self, table: str, text: str) -> None:
        if text:
            plan: dict[str, Any] = json.loads(text)
            if plan["number"] >= self.plans.get(table, plan)["number"]:
                self.plans[table] = plan

    def links(self, usd_per_gb: Mapping[Link, float]) -> list[LinkStanding]:
        """Each link that was reported, by its ends.

        Args:
            usd_per_gb: price of each link, as far as it is known.
        """
        reported: dict[Link, list[dict[str, Any]]] = {}
        for (source, _), links in self._links.items():
            for link in links:
                reported.setdefault((source, link["to"]), []).append(link)
        return [
            _link_standing(ends, links, usd_per_gb.get(ends))
            for ends, links in sorted(reported.items())
        ]

    def standings(
        self,
        usd_per_gb: Mapping[Link, float],
        now_ms: int,
        slo_ms: Mapping[str, int] | None = None,
    ) -> list[Standing]:
        """Each region's standing with each table that it reports of, by region and table.

        Args:
            usd_per_gb: price of each link, as far as it is known.
            now_ms: home's wall clock.
            slo_ms: freshness SLO of each table, as far as it is known.
        """
        to: dict[str, list[LinkStanding]] = {}
        for link in self.links(usd_per_gb):
            to.setdefault(link.target, []).append(link)
        return [
            _standing(
                (region, table),
                list(latest.values()),
                to.get(region, []),
                self.plans.get(table, {}),
                now_ms,
                (slo_ms or {}).get(table),
            )
            for (region, table), latest in sorted(self._subtasks.items())
        ]


_LAGS = ("freshness", "delay")


def _with_last_lags(new: Heard, old: Heard | None) -> Heard:
    """A report without live changes says nothing of freshness; the one before does."""
    if old is None:
        return new
    lags = {name: old.report[name] for name in _LAGS if new.report[name] is None}
    return Heard(new.at_ms, {**new.report, **lags})


def _link_standing(
    ends: Link, reports: list[dict[str, Any]], usd_per_gb: float | None
) -> LinkStanding:
    wire_bytes = sum(report["wire_bytes"] for report in reports)
    trips = [report["round_trip_ms"] for report in reports if report["round_trip_ms"] > 0]
    return LinkStanding(
        source=ends[0],
        target=ends[1],
        wire_bytes=wire_bytes,
        backlog_keys=sum(report["backlog_keys"] for report in reports),
        behind=any(report["behind"] for report in reports),
        bytes_per_s=sum(report["bytes_per_s"] for report in reports),
        round_trip_ms=min(trips, default=0.0),
        usd_per_gb=usd_per_gb,
        usd=None if usd_per_gb is None else wire_bytes / BYTES_PER_GB * usd_per_gb,
    )


def _standing(
    place: tuple[str, str],
    latest: list[Heard],
    links: list[LinkStanding],
    plan: Mapping[str, Any],
    now_ms: int,
    slo_ms: int | None,
) -> Standing:
    region, table = place
    reports = [each.report for each in latest]
    return Standing(
        region=region,
        table=table,
        keeps=all(report["applies"] for report in reports),
        heard_ago_s=max(0.0, (now_ms - max(each.at_ms for each in latest)) / 1_000),
        detached=region in plan.get("detached", ()),
        freshness_p50_ms=_worst(reports, "freshness", "p50_ms"),
        freshness_p99_ms=_worst(reports, "freshness", "p99_ms"),
        delay_p50_ms=_worst(reports, "delay", "p50_ms"),
        delay_p99_ms=_worst(reports, "delay", "p99_ms"),
        slo_ms=slo_ms,
        applied=sum(report["applied"] for report in reports),
        caught_up=sum(report["caught_up"] for report in reports),
        late=sum(report["late"] for report in reports),
        backlog_keys=sum(link.backlog_keys for link in links),
        behind=any(link.behind for link in links),
        wire_bytes=sum(link.wire_bytes for link in links),
        usd=total_usd(links),
        plan=int(plan.get("number", 0)),
    )


def _worst(reports: Iterable[Mapping[str, Any]], lags: str, quantile: str) -> float | None:
    return max((r[lags][quantile] for r in reports if r[lags] is not None), default=None)


def total_usd(links: Iterable[LinkStanding]) -> float | None:
    """What all that the links have sent cost; None if the price of one is not known."""
    costs = [link.usd for link in links if link.wire_bytes]
    known = [cost for cost in costs if cost is not None]
    return sum(known, 0.0) if len(known) == len(costs) else None
