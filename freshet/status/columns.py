"""The tables in which a snapshot is shown: what each column says, on terminals and on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from freshet.multicast.standing import LinkStanding, Standing
from freshet.stack.flink_rest import JobStatus
from freshet.status import text
from freshet.status.snapshot import TableStatus

SILENT_S = 10.0
"""A region reports every half second; one that has not for so long is marked."""

Row = TypeVar("Row")


class Level(StrEnum):
    """How a figure is to be taken."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Cell(NamedTuple):
    """What a table has in one place."""

    text: str
    level: Level = Level.PLAIN


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column."""

    name: str
    meaning: str
    cell: Callable[[Row], Cell]
    rank: int = 0
    """Columns of the highest rank go first where there is no room for all; those of 0 stay."""

    is_text: bool = False
    """Whether it has words, and not figures."""


def _plain(show: Callable[[Row], str]) -> Callable[[Row], Cell]:
    return lambda row: Cell(show(row))


def _bad_above_zero(show: Callable[[Row], int | None]) -> Callable[[Row], Cell]:
    return lambda row: Cell(text.count(show(row)), Level.WARN if show(row) else Level.PLAIN)


TABLES: tuple[Column[TableStatus], ...] = (
    Column("table", "Feature table.", _plain(lambda t: t.table), is_text=True),
    Column(
        "policy",
        "Which key is computed next.",
        _plain(lambda t: t.policy or text.NONE),
        rank=6,
        is_text=True,
    ),
    Column("keys", "Keys known to the job.", _plain(lambda t: text.count(t.keys)), rank=3),
    Column(
        "waiting",
        "Backlog: keys with data that their feature does not have yet.",
        _plain(lambda t: text.count(t.pending_keys)),
        rank=1,
    ),
    Column(
        "regret",
        "What staleness costs the model now, estimated, in the unit of its error.",
        _plain(lambda t: text.decimal(t.regret, 3)),
    ),
    Column(
        "updates/s",
        "Features computed and written a second, over the last 10 s.",
        _plain(lambda t: text.decimal(t.updates_per_s)),
    ),
    Column(
        "events/s",
        "Events that arrived a second, over the last 10 s.",
        _plain(lambda t: text.decimal(t.events_per_s)),
        rank=5,
    ),
    Column(
        "staleness p50",
        "From an event's time to the write of the feature at home; the worst subtask's median.",
        _plain(lambda t: text.milliseconds(t.staleness_p50_ms)),
        rank=4,
    ),
    Column(
        "staleness p99",
        "The same, 99th percentile.",
        _plain(lambda t: text.milliseconds(t.staleness_p99_ms)),
        rank=2,
    ),
    Column(
        "failed",
        "Computations that failed or timed out since the job's start.",
        _bad_above_zero(lambda t: t.updates_failed),
        rank=5,
    ),
    Column(
        "dead letters",
        "Inputs that could not be used, ever; the topic dead-letters.<table> has the reasons.",
        _bad_above_zero(lambda t: t.dead_letters),
    ),
)


def _region_name(region: Standing) -> Cell:
    kind = "" if region.keeps else " (waypoint)"
    return Cell(f"{region.region}{kind}", Level.BAD if region.detached else Level.PLAIN)


def _delay_p99(region: Standing) -> Cell:
    levels = {None: Level.PLAIN, True: Level.GOOD, False: Level.BAD}
    return Cell(text.milliseconds(region.delay_p99_ms), levels[region.meets_slo])


def _slo(region: Standing) -> Cell:
    if region.slo_ms is None:
        return Cell(text.NONE)
    missed = region.meets_slo is False
    # The word as well: colour alone does not reach everybody.
    return Cell(
        text.limit(region.slo_ms) + (", missed" if missed else ""),
        Level.BAD if missed else Level.PLAIN,
    )


def _backlog(region: Standing | LinkStanding) -> Cell:
    due = ", due" if region.behind else ""
    return Cell(f"{text.count(region.backlog_keys)}{due}", Level.WARN if due else Level.PLAIN)


def _heard(region: Standing) -> Cell:
    ago = f"{region.heard_ago_s:.0f} s ago"
    if region.detached:
        return Cell(f"{ago}, away", Level.BAD)
    return Cell(ago, Level.WARN if region.heard_ago_s > SILENT_S else Level.PLAIN)


REGIONS: tuple[Column[Standing], ...] = (
    Column("region", "Region; a waypoint only sends on.", _region_name, is_text=True),
    Column("table", "Feature table.", _plain(lambda r: r.table), is_text=True),
    Column(
        "delay p50",
        "Freshness: from computing to readable there, of the last changes; the worst subtask's.",
        _plain(lambda r: text.milliseconds(r.delay_p50_ms)),
        rank=2,
    ),
    Column("delay p99", "The same, 99th percentile; it has to be within the SLO.", _delay_p99),
    Column("SLO", "The table's freshness SLO.", _slo),
    Column("late", "Live changes that came after their SLO.", _bad_above_zero(lambda r: r.late)),
    Column(
        "age p50",
        "From an event's time to readable there, of the last changes.",
        _plain(lambda r: text.milliseconds(r.freshness_p50_ms)),
        rank=6,
    ),
    Column(
        "age p99",
        "The same, 99th percentile.",
        _plain(lambda r: text.milliseconds(r.freshness_p99_ms)),
        rank=6,
    ),
    Column(
        "backlog",
        "Keys, of all tables, that wait on the links to it; due where a link is behind, and else"
        " they wait for company.",
        _backlog,
    ),
    Column(
        "sent",
        "To the region, of all tables, since the jobs' first start.",
        _plain(lambda r: text.megabytes(r.wire_bytes)),
        rank=4,
    ),
    Column(
        "dollars",
        "What that cost, at the profiles' prices.",
        _plain(lambda r: text.dollars(r.usd)),
        rank=3,
    ),
    Column("heard", "Since its last report; away where the plan does without it.", _heard, rank=1),
)

LINKS: tuple[Column[LinkStanding], ...] = (
    Column("from", "Region.", _plain(lambda link: link.source), is_text=True),
    Column("to", "Region.", _plain(lambda link: link.target), is_text=True),
    Column(
        "sent",
        "Since the jobs' first start, all tables.",
        _plain(lambda link: text.megabytes(link.wire_bytes)),
    ),
    Column("backlog", "Keys that wait on the link.", _backlog),
    Column(
        "fastest",
        "Fastest recent delivery.",
        _plain(lambda link: f"{text.megabytes(link.bytes_per_s)}/s" if link.bytes_per_s else "-"),
        rank=3,
    ),
    Column(
        "round trip",
        "Fastest recent acknowledgement.",
        _plain(lambda link: text.milliseconds(link.round_trip_ms or None)),
        rank=2,
    ),
    Column(
        "$/GB", "The profiles' price.", _plain(lambda li: text.decimal(li.usd_per_gb, 3)), rank=4
    ),
    Column("dollars", "For what was sent.", _plain(lambda link: text.dollars(link.usd)), rank=1),
)


def _state(job: JobStatus) -> Cell:
    levels = {"RUNNING": Level.GOOD, "FAILED": Level.BAD, "RESTARTING": Level.WARN}
    return Cell(job.state, levels.get(job.state, Level.PLAIN))


JOBS: tuple[Column[JobStatus], ...] = (
    Column("job", "Name.", _plain(lambda job: job.name), is_text=True),
    Column("id", "Flink's.", _plain(lambda job: job.id), rank=5, is_text=True),
    Column("state", "Flink's.", _state, is_text=True),
    Column("subtasks", "Largest parallelism.", _plain(lambda job: str(job.parallelism)), rank=3),
    Column("restarts", "After failures.", _bad_above_zero(lambda job: job.restarts)),
)


def plan_lines(plans: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The plans in force: each tree by its links."""
    if not plans:
        return ["No plan is in force."]
    lines = []
    for name, plan in sorted(plans.items()):
        lines.append(f"Plan {plan['number']} of {name}: {plan['note']}")
        for stripe in plan["stripes"]:
            links = ", ".join(f"{u} -> {v}" for u, v in stripe["edges"]) or "nowhere"
            lines.append(f"  {stripe['fraction']:.0%}: {links}")
        if plan["detached"]:
            lines.append(f"  directly: {', '.join(plan['detached'])}")
    return lines
