"""When to plan a table anew, what to ask, and which plan to put in force.

Pure but for what it remembers: messages, answers and times come in as arguments, and times are
those of one clock in milliseconds.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freshet import avro
from freshet.multicast.conditions import Conditions, conditions, differences
from freshet.multicast.links import LinkReports, LinkSample, LinkWatch
from freshet.multicast.liveness import Attention, Liveness
from freshet.multicast.requests import (
    Answer,
    Outcome,
    PlanDict,
    Request,
    edges_of,
    load_bps,
    plan_without_solver,
    request,
)
from freshet.multicast.settings import Link, PlannedTable, PlannerSettings
from freshet.multicast.volume import Volume

HISTORY_MS_MAX = 3_000
"""Reports are read from the topic's beginning. What stands before the first one that is made after
the start says nothing of now; after so long that is not waited for."""

CLOCKS_APART_MS = 1_000
"""Between this process and the multicast operators; they may be on different machines."""

RESEND_MS = 5_000
"""A plan that an operator does not report as in force is sent again after this."""

_MESSAGE_FIELDS = ("table", "number", "detached", "note", "delay_s")

_log = logging.getLogger(__name__)


@dataclass
class _Table:
    """One table, and the plan that it has."""

    settings: PlannedTable
    volume: Volume
    running: PlanDict | None = None
    """What the next plan stays close to."""

    message: dict[str, Any] | None = None
    """The plan in force, as it was sent by this run; None before the first."""

    number: int = 0
    asked_for: Conditions | None = None
    """What the plan in force, or the last attempt, follows from."""

    attempted_ms: int | None = None
    sent_ms: int | None = None
    failed_ms: int | None = None
    in_force: dict[int, int] = field(default_factory=dict)
    """Number of the plan that each subtask reports."""


@dataclass(frozen=True)
class Pending:
    """A request on its way, and why it was made."""

    table: str
    asked: Request
    conditions: Conditions
    note: str


class Decisions:
    """Plans for all tables of a multicast job.

    Args:
        settings: of the planner.
        now_ms: of the start.
    """

    def __init__(self, settings: PlannerSettings, now_ms: int) -> None:
        self._settings = settings
        self._thresholds = settings.thresholds
        self._profile_bps = settings.network.links()
        self._start_ms = now_ms
        self._attention = Attention(now_ms)
        others = [region for region in settings.network.regions if region != settings.home]
        self._liveness = Liveness(others, self._thresholds)
        self._reports = LinkReports()
        self._watches = {link: LinkWatch(self._thresholds) for link in self._profile_bps}
        self._is_live = False
        self._tables = {
            table.table: _Table(table, Volume(self._thresholds.volume_window_ms))
            for table in settings.tables
        }
        self.plans = 0
        """Plans put in force."""
        self.failures = 0
        """Attempts that did not give what was asked for."""
        self.confirmed_ms: int | None = None
        """When every plan in force was last found to follow from what is known."""

    # Reports.

    def hear(self, message: bytes, now_ms: int) -> None:
        """Takes in a record of the topic ``progress``; those that are no regions' are passed over.

        Args:
            message: an Avro single object.
            now_ms: when it arrived.
        """
        attended_ms = self._attention.advance(now_ms)
        if attended_ms >= HISTORY_MS_MAX:
            self._is_live = True
        try:
            name, report = avro.decode(message)
        except avro.AvroError:
            return  # of another release, or not a report at all
        if name != "RegionReport":
            return
        if report["reporter"] == "MULTICAST":
            self._hear_home(report, now_ms)
        elif self._is_live:
            self._liveness.heard(report["region"], attended_ms)
            self._reports.report(report)

    def _hear_home(self, report: Mapping[str, Any], now_ms: int) -> None:
        made_ms = report["reported_at_micros"] / 1_000
        if made_ms >= self._start_ms - CLOCKS_APART_MS:
            self._is_live = True
        table = self._tables.get(report["table"])
        if table is None or report["region"] != self._settings.home:
            return
        plan = _plan_of(report["plan"])
        number = int(plan.get("number", 0))
        if number > table.number:
            # Of an earlier run: this one goes on behind it.
            table.number, table.running = number, _without_message(plan)
        if self._is_live:
            self._reports.report(report)
            table.volume.report(report)
            table.in_force[report["subtask"]] = number
            for subtask in [s for s in table.in_force if s >= report["parallelism"]]:
                del table.in_force[subtask]

    def links(self) -> dict[Link, LinkSample]:
        """Each link as it was reported last."""
        return self._reports.samples()

    # Asking.

    def at_once(self, now_ms: int) -> list[bytes]:
        """A plan for each table that has none yet, before anything is measured or computed.

        It is that of the run before, if it still leads everywhere, or the one of the fewest hops.
        """
        if not self._is_live:
            return []
        usable = self._usable_bps()
        messages = []
        for table in self._tables.values():
            if table.message is not None:
                continue
            pending = self._pending(table, self._conditions(table, usable), "first plan")
            if table.running is not None and _leads(table.running, pending):
                plan, note = table.running, "the plan from before the job's start"
            else:
                plan, note = plan_without_solver(pending.asked), "the fewest hops, for the start"
            messages.append(self._message(table, plan, pending.conditions.detached, note, now_ms))
        return messages

    def ask(self, now_ms: int) -> Pending | None:
        """The next request, if a table needs a plan and may have one."""
        if not self._is_live:
            return None
        usable = self._usable_bps()
        confirmed = True
        for table in self._tables.values():
            now = self._conditions(table, usable)
            reasons = self._reasons(table, now, now_ms)
            if reasons and self._may_plan(table, now_ms):
                table.attempted_ms = now_ms
                return self._pending(table, now, "; ".join(reasons))
            confirmed = confirmed and not reasons and table.failed_ms is None
        if confirmed:
            self.confirmed_ms = now_ms
        return None

    def _usable_bps(self) -> dict[Link, float]:
        attended_ms = self._attention.ms
        gone = self._liveness.gone(attended_ms)
        samples = self._reports.samples()
        for (u, v), watch in self._watches.items():
            watch.update(samples.get((u, v)), u not in gone and v not in gone, attended_ms)
        return {
            link: self._watches[link].usable_bps(bps, attended_ms)
            for link, bps in self._profile_bps.items()
        }

    def _conditions(self, table: _Table, usable: Mapping[Link, float]) -> Conditions:
        bytes_per_s = table.volume.bytes_per_s()
        if bytes_per_s is not None:
            # What newer changes replace on the way is not taken off: the less a link can carry,
            # the more that is.
            bytes_per_s *= self._reports.compressed_share(self._settings.home)
        elif table.running is not None:
            bytes_per_s = table.running["gb_per_s"] * 1e9
        gone = self._liveness.gone(self._attention.ms)
        return conditions(self._settings, table.settings, gone, usable, bytes_per_s or 0.0)

    def _pending(self, table: _Table, now: Conditions, note: str) -> Pending:
        latency_ms = {
            link: sample.round_trip_ms / 2
            for link, sample in self._reports.samples().items()
            if sample.round_trip_ms > 0
        }
        asked = request(
            self._settings,
            table.settings,
            now,
            latency_ms=latency_ms,
            taken_bps=self._taken_bps(table),
            running=table.running,
        )
        return Pending(table.settings.table, asked, now, note)

    def _reasons(self, table: _Table, now: Conditions, now_ms: int) -> list[str]:
        if table.asked_for is None:
            return ["the first since the job's start, or since a region went away"]
        reasons = differences(table.asked_for, now, self._thresholds)
        failed_ms = table.failed_ms
        if failed_ms is not None and now_ms - failed_ms >= self._thresholds.retry_ms:
            reasons.append("the last attempt failed")
        return reasons

    def _may_plan(self, table: _Table, now_ms: int) -> bool:
        # A clock that was set back must not hold plans up.
        return all(
            last_ms is None or not 0 <= now_ms - last_ms < self._thresholds.min_interval_ms
            for last_ms in (table.attempted_ms, table.sent_ms)
        )

    def _taken_bps(self, table: _Table) -> dict[Link, float]:
        taken: dict[Link, float] = {}
        for other in self._tables.values():
            if other is not table and other.message is not None:
                for link, bps in load_bps(other.message).items():
                    taken[link] = taken.get(link, 0.0) + bps
        return taken

    # Answers.

    def take(self, pending: Pending, answer: Answer | str, now_ms: int) -> bytes | None:
        """The message that puts a plan in force, unless the one before stays.

        Args:
            pending: the request.
            answer: to it, or why there is none.
            now_ms: of the message.
        """
        table = self._tables[pending.table]
        table.asked_for = pending.conditions
        plan, note = self._chosen(table, pending, answer, now_ms)
        if plan is None:
            return None
        table.running = plan
        if _touches(plan, self._liveness.gone(self._attention.ms)):
            # Gone meanwhile, and perhaps back before the next request.
            table.asked_for = None
            return None
        if table.message is not None and _is_same(table.message, plan, pending.conditions.detached):
            table.message |= {"gb_per_s": plan["gb_per_s"]}
            return None
        return self._message(table, plan, pending.conditions.detached, note, now_ms)

    def _chosen(
        self, table: _Table, pending: Pending, answer: Answer | str, now_ms: int
    ) -> tuple[PlanDict | None, str]:
        """The plan to run, None for the one before, and the note."""
        if isinstance(answer, Answer) and answer.outcome in (Outcome.NEW, Outcome.KEPT):
            table.failed_ms = None
            return answer.plan, pending.note
        self.failures += 1
        table.failed_ms = now_ms
        why = answer if isinstance(answer, str) else answer.reason
        if isinstance(answer, Answer):
            stays = "the last good plan stays" if answer.outcome is Outcome.LAST_GOOD else "reduced"
            note = f"{pending.note}; {stays}: {why}"
            _log.warning("Table %s: %s", pending.table, note)
            return answer.plan, note
        if _stays(table.message, pending):
            _log.warning("Table %s: %s; the plan stays: %s", pending.table, pending.note, why)
            return None, ""
        note = f"{pending.note}; the fewest hops: {why}"
        _log.warning("Table %s: %s", pending.table, note)
        return plan_without_solver(pending.asked), note

    def plan_at_once(self, pending: Pending, now_ms: int) -> bytes | None:
        """Answers a request for which there is nothing to choose: no destination is left."""
        return self.take(
            pending, Answer(plan_without_solver(pending.asked), Outcome.NEW, ""), now_ms
        )

    def _message(
        self,
        table: _Table,
        plan: PlanDict,
        detached: tuple[str, ...],
        note: str,
        now_ms: int,
    ) -> bytes:
        table.number = max(now_ms, table.number + 1)
        table.sent_ms = now_ms
        table.message = {
            **plan,
            "table": table.settings.table,
            "number": table.number,
            "detached": list(detached),
            "note": note,
            "delay_s": _delays(plan),
        }
        table.in_force.clear()
        self.plans += 1
        _log.info("Table %s: plan %d: %s", table.settings.table, table.number, note)
        return _encoded(table.message)

    def resend(self, now_ms: int) -> list[bytes]:
        """Plans that an operator should have by now, and does not report."""
        messages = []
        for table in self._tables.values():
            if table.message is None or table.sent_ms is None:
                continue
            behind = any(number < table.number for number in table.in_force.values())
            if behind and now_ms - table.sent_ms >= RESEND_MS:
                table.sent_ms = now_ms
                messages.append(_encoded(table.message))
        return messages


def _plan_of(text: str) -> dict[str, Any]:
    try:
        plan = json.loads(text) if text else {}
    except ValueError:
        return {}
    return plan if isinstance(plan, dict) else {}


def _without_message(plan: dict[str, Any]) -> PlanDict | None:
    """What the solver made of a plan that was put in force; None if it says too little."""
    if not {"destinations", "stripes", "gb_per_s"} <= plan.keys():
        return None
    return {name: value for name, value in plan.items() if name not in _MESSAGE_FIELDS}


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _touches(plan: Mapping[str, Any], regions: frozenset[str]) -> bool:
    return any(region in regions for edge in edges_of(plan) for region in edge)


def _stays(message: Mapping[str, Any] | None, pending: Pending) -> bool:
    """Whether the plan in force can be used on."""
    return (
        message is not None
        and set(message["detached"]) == set(pending.conditions.detached)
        and _leads(message, pending)
    )


def _leads(plan: Mapping[str, Any], pending: Pending) -> bool:
    """Whether a plan reaches all destinations on links that there are, and no others."""
    return (
        set(plan["destinations"]) == set(pending.asked.destinations)
        and edges_of(plan) <= pending.asked.links()
    )


def _is_same(message: Mapping[str, Any], plan: PlanDict, detached: tuple[str, ...]) -> bool:
    def ways(of: Mapping[str, Any]) -> list[tuple[float, list[tuple[str, str]]]]:
        return sorted(
            (round(stripe["fraction"], 9), sorted((u, v) for u, v in stripe["edges"]))
            for stripe in of["stripes"]
        )

    return (
        set(message["detached"]) == set(detached)
        and set(message["destinations"]) == set(plan["destinations"])
        and ways(message) == ways(plan)
    )


def _delays(plan: Mapping[str, Any]) -> dict[str, float]:
    """Predicted seconds to each destination, by the slowest of its trees."""
    delays: dict[str, float] = {}
    for path in plan.get("paths", ()):
        region = path["destination"]
        delays[region] = max(path["delay_s"], delays.get(region, 0.0))
    return delays
