"""Runs the demo: stack, jobs, replay with a model loop for each table, report.

::

    readings --> events.cpu_stl --> job cpu_stl (regret-proportional) ----> Redis --> model --+
                              \\--> job cpu_stl_round_robin (round-robin) --> Redis --> model --|-+
                 feedback.cpu_stl <-------------------------------------------------- errors -+ |
                 feedback.cpu_stl_round_robin <--------------------------------------- errors --+
    changes.cpu_stl --> multicast job --> region jobs of a waypoint and two destinations --> Redis

Each hour of event time is one step, in lockstep: the models read and forecast, the hour's readings
and the models' errors are sent, heartbeats end the hour, and the next begins when both stores hold
what the jobs decided. So both policies, and every run, decide on the same input.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from freshet.client import Client
from freshet.config import stack_home
from freshet.demo.dissemination import Dissemination
from freshet.demo.feed import Feed, malformed_events
from freshet.demo.live import LiveDisplay, PolicyView, RegionView, View
from freshet.demo.model import Floats, Model, naive_errors
from freshet.demo.readings import DATA_FILE, Readings
from freshet.demo.regions import DESTINATIONS, HOME, RegionStores, region_configs
from freshet.demo.report import PolicyRecord, RunRecord, build_report, report_json
from freshet.demo.tables import SEASONS, SENT_POLICY, STEP, STEP_MS, DemoTable, write_tables
from freshet.errors import FreshetError
from freshet.files import write_atomically
from freshet.lockstep import wait_for_step
from freshet.observer import Observer, ProductionLog, percentiles_ms
from freshet.replay import Pace
from freshet.stack import FlinkOptions, KafkaOptions, Stack, StackOptions
from freshet.stack.signals import Interrupted, Interrupts
from freshet.submission import (
    Submission,
    prepare_multicast,
    prepare_region,
    prepare_tables,
    submit_together,
)

WARM_UP_DEADLINE_S = 240.0
STEP_DEADLINE_S = 90.0
DRAIN_DEADLINE_S = 20.0
"""How long the last change events and dead letters may take after the last step."""

SETTLE_DEADLINE_S = 60.0
"""How long the destinations may take to become equal to home after the last step."""

REPORT_DEADLINE_S = 10.0

_TASK_MANAGERS, _SLOTS = 2, 3
"""One slot for each job: two of features, one of the multicast, and three regions'."""

_CLOSING_S = 15.0
"""What the end of a run takes after the last step: drain, stop and report."""

_DAY_STEPS = 24
_LEAST_STEPS = 24
_MALFORMED_STEP = 12
"""Malformed events are sent in this step, or in the middle of a shorter replay."""
_ALMOST = 0.98

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DemoOptions:
    """What a user may choose."""

    days: float
    """Days of event time to replay beyond those that fill the first window."""

    budget: float
    """Share of the keys that may be computed in each hour, above 0 and at most 1."""

    speed_up: float | None
    """Event time over wall time; None: as fast as this machine can."""

    time_limit_s: float
    """The replay ends early, at a whole hour, so that the demo takes no longer than this."""

    out: Path
    """Folder of the report."""

    seed: int
    """Of the bootstrap intervals; the replay has no chance in it."""

    keep_running: bool
    """Whether the stack and the jobs stay up."""


@dataclass(frozen=True)
class Plan:
    """The replay in numbers."""

    first_row: int
    """Readings before this fill the first window."""

    rows_per_step: int
    steps: int

    @staticmethod
    def of(readings: Readings, days: float) -> Plan:
        """The longest replay of at most so many days.

        Raises:
            FreshetError: that is not a single step.
        """
        first_row, rows = SEASONS * readings.period, STEP_MS // readings.step_ms
        available = (len(readings) - first_row) // rows
        steps = min(available, int(days * _DAY_STEPS))
        if steps < 1:
            raise FreshetError(f"--days {days:g} is less than one hour; give more")
        return Plan(first_row, rows, steps)

    def rows(self, step: int) -> tuple[int, int]:
        """Rows of a step, half open."""
        first = self.first_row + step * self.rows_per_step
        return first, first + self.rows_per_step


@dataclass(frozen=True)
class DemoOutcome:
    """How a run ended."""

    report: dict[str, Any]
    json_file: Path
    html_file: Path

    stack: Stack | None
    """The stack, if it was kept running."""


def run_demo(options: DemoOptions, display: LiveDisplay) -> DemoOutcome:
    """Runs the demo and writes its report, also when it is interrupted.

    Raises:
        ConfigError: an option makes no table.
        FreshetError: the stack, a job or the replay failed; everything started is stopped.
    """
    started_s = time.monotonic()
    readings = Readings.load()
    plan = Plan.of(readings, options.days)
    tables = write_tables(options.out / "tables", readings, options.budget)
    run = _record(options, readings, plan, tables)
    stack: Stack | None = None
    with Interrupts() as interrupts:
        try:
            with _running_stack(options, run, display, interrupts) as stack:
                jobs = _submit(stack, tables, run, display)
                deadline_s = started_s + options.time_limit_s - _CLOSING_S
                replay = _Replay(stack, jobs, readings, plan, tables, run, display, interrupts)
                replay.run(options.speed_up, deadline_s)
        except (Interrupted, Exception) as error:
            # What an interrupt breaks off may fail in its own way, while it cleans up.
            if not interrupts.came:
                raise
            _log.debug("interrupted", exc_info=error)
            run.interrupted = True
            stack = None
            display.say("Interrupted: everything is stopped; writing the report of what there is.")
    run.wall_s["total"] = time.monotonic() - started_s
    return _write_report(run, options, stack if options.keep_running else None)


def _record(
    options: DemoOptions, readings: Readings, plan: Plan, tables: Sequence[DemoTable]
) -> RunRecord:
    budget = tables[0].table.to_dict()["budget"]
    return RunRecord(
        keys=readings.keys,
        scale=naive_errors(readings.values[: plan.first_row]),
        policies={table.policy: PolicyRecord(table.table.name) for table in tables},
        dissemination=Dissemination(_sent(tables).table.name),
        configuration={
            "keys": len(readings.keys),
            "budget": options.budget,
            "updates_per_step": budget["updates_per_step"],
            "step": STEP,
            "days": options.days,
            "queries_per_key_and_step": plan.rows_per_step,
            "speed_up_wanted": options.speed_up,
            "time_limit_s": options.time_limit_s,
            "seed": options.seed,
            "data": f"examples/data/{DATA_FILE.name}",
            "tables": [table.table.to_dict() for table in tables],
        },
        steps_planned=plan.steps,
        seed=options.seed,
    )


def _sent(tables: Sequence[DemoTable]) -> DemoTable:
    """The table that is sent to other regions."""
    return next(table for table in tables if table.policy == SENT_POLICY)


@contextlib.contextmanager
def _running_stack(
    options: DemoOptions, run: RunRecord, display: LiveDisplay, interrupts: Interrupts
) -> Iterator[Stack]:
    """The stack, which ends with the block unless it is to be kept and all went well."""
    started_s = time.monotonic()
    display.say("Starting Kafka, Redis and Flink on loopback ...")
    home = stack_home() if options.keep_running else options.out
    short = not options.keep_running
    stack = Stack(
        home / "stack",
        StackOptions(
            regions=(HOME, *DESTINATIONS),
            kafka=KafkaOptions(short_lived=short),
            flink=FlinkOptions(task_managers=_TASK_MANAGERS, slots=_SLOTS, short_lived=short),
        ),
    )
    if options.keep_running:
        stack.start_detached(home)
    else:
        stack.start()
    keep = False
    try:
        run.wall_s["start"] = time.monotonic() - started_s
        display.say(f"Flink's web UI: {stack.config.flink_rest}")
        yield stack
        keep = options.keep_running
    finally:
        if not keep:
            stopping_s = time.monotonic()
            with interrupts.shield():
                if options.keep_running:
                    Stack.stop_detached(home)
                else:
                    stack.stop()
            run.wall_s["stop"] = time.monotonic() - stopping_s


def _submit(
    stack: Stack, tables: Sequence[DemoTable], run: RunRecord, display: LiveDisplay
) -> list[str]:
    """Submits all jobs by one client; the ids of the feature jobs, once all run."""
    started_s = time.monotonic()
    names = " and ".join(f"{table.table.name} ({table.policy})" for table in tables)
    sent = _sent(tables)
    display.say(f"Submitting the feature jobs {names} ...")
    display.say(f"... and the jobs that take {sent.table.name} to {' and '.join(DESTINATIONS)} ...")

    def submit() -> list[Submission]:
        home, *others = region_configs(stack.config).values()
        jobs = [prepare_tables([table.file], stack.config, stack=stack) for table in tables]
        # Who is to be sent to before who sends: a region without a job would be planned around.
        jobs += [prepare_region([sent.file], config, stack=stack) for config in others]
        jobs.append(prepare_multicast([sent.file], home, stack=stack))
        return submit_together(jobs, stack=stack)

    # In a thread, which is not waited for when interrupted: the stack's end ends the client.
    pool = concurrent.futures.ThreadPoolExecutor(1)
    try:
        submissions = pool.submit(submit).result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    run.wall_s["submit"] = time.monotonic() - started_s
    return [submission.job.id for submission in submissions[: len(tables)]]


class _Replay:
    """The input's side of the demo: readings, models and their bookkeeping."""

    def __init__(
        self,
        stack: Stack,
        jobs: Sequence[str],
        readings: Readings,
        plan: Plan,
        tables: Sequence[DemoTable],
        run: RunRecord,
        display: LiveDisplay,
        interrupts: Interrupts,
    ) -> None:
        self._config = stack.config
        self._rest = stack.flink.rest
        self._jobs = jobs
        self._readings = readings
        self._plan = plan
        self._tables = tables
        self._run = run
        self._display = display
        self._interrupts = interrupts
        self._now_ms = 0
        self._warming_up = True

    def run(self, speed_up: float | None, deadline_s: float) -> None:
        """Replays the readings: those of the first window at once, the others step by step.

        Args:
            speed_up: event time over wall time; None for as fast as possible.
            deadline_s: no step begins after this time of the monotonic clock, but for the first
                few, without which there would be no result.
        """
        definitions = [table.table for table in self._tables]
        production = ProductionLog()
        with (
            Client(self._config, tables=definitions, clock=lambda: self._now_ms) as client,
            Observer(
                self._config, definitions, production, self._run.dissemination.take
            ) as observer,
            contextlib.closing(
                RegionStores(
                    region_configs(self._config),
                    self._run.dissemination.table,
                    self._readings.keys,
                )
            ) as stores,
        ):
            self._client, self._observer, self._stores = client, observer, stores
            self._feed = Feed(self._config, definitions, self._readings, production)
            try:
                with self._display:
                    self._warm_up()
                    self._replay(speed_up, deadline_s)
                    self._drain()
                    self._settle()
                    self._show(now=True)
            finally:
                self._keep_observations()

    def _warm_up(self) -> None:
        """Fills every key's window and has every key computed once."""
        started_s = time.monotonic()
        days = self._plan.first_row // self._readings.period
        keys = len(self._readings.keys)
        self._display.say(
            f"Loading {days} days of readings of {keys} machines; then every feature is computed "
            "once in each table ..."
        )
        self._run.events += self._feed.send(0, self._plan.first_row)
        self._end_step(self._plan.first_row - 1, WARM_UP_DEADLINE_S)
        self._run.wall_s["warm-up"] = time.monotonic() - started_s

    def _replay(self, speed_up: float | None, deadline_s: float) -> None:
        models = {table.policy: self._model(table) for table in self._tables}
        self._warming_up = False
        started_s = time.monotonic()
        pace = Pace(speed_up or 0.0)
        pace.wait_until(self._now_ms)
        try:
            for step in range(self._plan.steps):
                if step >= _LEAST_STEPS and time.monotonic() > deadline_s:
                    self._say_cut_short()
                    break
                if step == min(_MALFORMED_STEP, self._plan.steps // 2):
                    self._send_malformed()
                self._step(step, models)
                pace.wait_until(self._now_ms)
                elapsed_s = time.monotonic() - started_s
                self._run.speed_up = (step + 1) * STEP_MS / 1_000 / elapsed_s
                self._show()
        finally:
            self._run.wall_s["replay"] = time.monotonic() - started_s
        if speed_up and self._run.speed_up is not None and self._run.speed_up < _ALMOST * speed_up:
            self._display.say(
                f"A speed-up of {speed_up:,.0f} was asked for; this machine reached "
                f"{self._run.speed_up:,.0f}. The result is the same: each hour waits for the last."
            )

    def _model(self, table: DemoTable) -> Model:
        return Model(
            self._client,
            table.table.name,
            self._readings.keys,
            self._run.scale,
            self._readings.step_ms,
            self._plan.rows_per_step,
        )

    def _step(self, step: int, models: dict[str, Model]) -> None:
        """One hour: forecast, let the readings come, learn, and wait until the jobs have too."""
        forecasts = {policy: model.predict() for policy, model in models.items()}
        first, last = self._plan.rows(step)
        self._run.events += self._feed.send(first, last)
        actual: Floats = self._readings.values[first:last]
        times_ms = [self._readings.time_ms(row) for row in range(first, last)]
        answered = []
        for policy, model in models.items():
            errors = model.learn(forecasts[policy], actual, times_ms)
            answered.append((policy, errors, forecasts[policy].staleness_ms))
        self._client.flush()
        self._end_step(last - 1, STEP_DEADLINE_S)
        # An interrupt in between would leave one policy a step ahead.
        with self._interrupts.shield():
            for policy, errors, staleness_ms in answered:
                self._run.policies[policy].errors.append(errors)
                self._run.policies[policy].staleness_ms.append(staleness_ms)
                self._run.feedback += int(np.isfinite(errors).sum())
            self._run.step_ends_ms.append(times_ms[-1])

    def _end_step(self, last_row: int, deadline_s: float) -> None:
        """Ends the step that this row is the last of, and waits for what the jobs decide."""
        end_ms = self._readings.time_ms(last_row)
        self._feed.end_step(end_ms)
        wait_for_step(
            self._observer,
            self._rest,
            self._jobs,
            end_ms,
            deadline_s,
            too_late=f"the jobs have not finished an hour of event time within {deadline_s:.0f} s; "
            f"see Flink's web UI at {self._config.flink_rest} (with --keep-running) and the "
            "stack's logs",
            waiting=self._show,
        )
        self._now_ms = end_ms

    def _say_cut_short(self) -> None:
        self._display.say(
            f"The time limit is near: ending after {len(self._run.step_ends_ms)} of "
            f"{self._plan.steps} hours. The rest needs a faster machine or a longer --time-limit."
        )

    def _send_malformed(self) -> None:
        events = malformed_events(self._readings.keys[0], self._now_ms + 1)
        self._display.say(
            f"Sending {len(events)} malformed events on purpose, to show dead letters ..."
        )
        self._feed.send_malformed(events)
        self._run.malformed.update(event.what for event in events)

    def _drain(self) -> None:
        """Waits for the last change events and dead letters, which nothing else waits for."""
        stored = {}
        for table in self._tables:
            features = self._client.get_many(table.table.name, self._readings.keys)
            stored[table.table.name] = {
                key: (version.timestamp_micros, version.origin)
                for key, version in zip(self._readings.keys, features.versions, strict=True)
                if version is not None
            }
        if not self._observer.wait_for_changes(stored, DRAIN_DEADLINE_S):
            self._display.say("Warning: not every stored value has its change event yet.")
        expected = sum(self._run.malformed.values())
        if not self._observer.wait_for_dead_letters(expected, DRAIN_DEADLINE_S):
            self._display.say("Warning: not every malformed event has its dead letter yet.")

    def _settle(self) -> None:
        """Waits until the other regions have what home has, and have said so."""
        started_s = time.monotonic()
        dissemination = self._run.dissemination
        states = self._stores.settle(SETTLE_DEADLINE_S, self._show)
        dissemination.stores = states
        for region, state in states.items():
            if not state.equal_to_home:
                self._display.say(
                    f"Warning: after {SETTLE_DEADLINE_S:.0f} s the store of {region} is not that of"
                    f" {HOME}; see Flink's log in the stack's logs."
                )
        all_said = dissemination.reported_after(time.time_ns() // 1_000)
        if not self._observer.wait_for(all_said, REPORT_DEADLINE_S):
            self._display.say("Warning: not every region has reported in the end.")
        self._run.wall_s["settle"] = time.monotonic() - started_s

    def _keep_observations(self) -> None:
        for table in self._tables:
            watch = self._observer.tables[table.table.name]
            record = self._run.policies[table.policy]
            record.updates = watch.updates
            record.freshness_ms = watch.freshness_ms
            record.initial_freshness_ms = watch.initial_freshness_ms
            record.dead_letters = watch.dead_letters

    def _show(self, *, now: bool = False) -> None:
        self._display.show(self._view, now=now)

    def _view(self) -> View:
        policies = [self._policy_view(table) for table in self._tables]
        steps = len(self._run.step_ends_ms)
        return View(
            phase="first features" if self._warming_up else "replay",
            done=sum(policy.updates for policy in policies) if self._warming_up else steps,
            total=len(self._readings.keys) * len(policies)
            if self._warming_up
            else self._plan.steps,
            unit="value" if self._warming_up else "hour",
            events=self._run.events,
            speed_up=self._run.speed_up,
            policies=policies,
            regions=[self._region_view(region) for region in DESTINATIONS],
        )

    def _region_view(self, region: str) -> RegionView:
        dissemination = self._run.dissemination
        fresh = dissemination.recent_freshness_ms(region)
        return RegionView(
            region=region,
            sender=dissemination.sender_to(region),
            changes=dissemination.changes(region),
            freshness_p50_ms=fresh["p50"],
            freshness_p99_ms=fresh["p99"],
        )

    def _policy_view(self, table: DemoTable) -> PolicyView:
        record = self._run.policies[table.policy]
        watch = self._observer.tables[table.table.name]
        fresh = percentiles_ms(watch.recent_freshness_ms())
        recent = record.errors[-_DAY_STEPS:]
        return PolicyView(
            policy=table.policy,
            updates=watch.changes,
            loss=record.loss() if record.errors else None,
            recent_loss=float(np.nanmean(recent)) if recent else None,
            staleness_hours=(
                float(np.nanmean(record.staleness_ms[-1])) / STEP_MS
                if record.staleness_ms
                else None
            ),
            freshness_p50_ms=fresh["p50"],
            freshness_p99_ms=fresh["p99"],
            dead_letters=len(watch.dead_letters),
        )


def _write_report(run: RunRecord, options: DemoOptions, stack: Stack | None) -> DemoOutcome:
    report = build_report(run)
    if stack is not None:
        report["stack"] = {"flink": stack.config.flink_rest, "kafka": stack.config.kafka_bootstrap}
    json_file, html_file = options.out / "report.json", options.out / "report.html"
    # The numbers first: they do not depend on anything being drawn.
    write_atomically(json_file, report_json(report))
    # Imported late: matplotlib takes a second, which a start should not wait for.
    from freshet.demo.page import render_page
    from freshet.demo.plots import draw_plots
    from freshet.report.figures import to_png

    plots = draw_plots(report)
    write_atomically(html_file, render_page(report, plots).encode())
    for plot in plots:
        write_atomically(options.out / f"{plot.name}.png", to_png(plot.figure))
    return DemoOutcome(report, json_file, html_file, stack)
