"""Replays a workload through the real feature job, in lockstep with event time.

::

    workload --> events.evaluate --> one feature job, a table for each arm --> Redis
                                            ^                                   |
                     feedback of each table |----------- errors ---- model <----+

Each step: its events are sent; the model reads every table's features, answers the step's queries
and sends the errors; heartbeats end the step, and the next begins when the store holds what the job
decided. So the choices do not depend on the pace, and every arm decides on the same input.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from freshet.choosing import VersionChooser
from freshet.client import Client
from freshet.errors import JobError
from freshet.evaluation.record import ArmRecord, serve, served_event_times
from freshet.evaluation.variants import NONE, UNLIMITED, Arm
from freshet.evaluation.workload import (
    Features,
    Floats,
    Step,
    Workload,
    computed_by_warm_up,
)
from freshet.lockstep import wait_for_step
from freshet.observer import Observer, ProductionLog
from freshet.replay import EventReplayer
from freshet.stack import FlinkOptions, KafkaOptions, Stack, StackOptions
from freshet.store.decoding import FeatureBatch
from freshet.submission import submit_tables
from freshet.table import FeatureTable, load_table

WARM_UP_DEADLINE_S = 600.0
STEP_DEADLINE_S = 300.0
DRAIN_DEADLINE_S = 60.0

_STACK_OPTIONS = StackOptions(
    kafka=KafkaOptions(short_lived=True),
    # A replay that fails is started over, so a checkpoint is of no use.
    flink=FlinkOptions(task_managers=1, short_lived=True, checkpoint_interval_ms=600_000),
)

Progress = Callable[[int, int], None]
"""Called with the steps done and the steps to do."""


@dataclass(frozen=True)
class JobOptions:
    """How the job is run."""

    folder: Path
    """For the stack's files and the table definitions."""

    seed: int = 0
    """Of policies with chance in them."""

    parallelism: int = 1
    """Subtasks; with several, each decides on its own keys with its part of the budget."""


class JobEngine:
    """The embedded stack with one feature job that has a table for each arm.

    Used as a context manager; a stack that was not given ends with the block.
    """

    def __init__(self, options: JobOptions, stack: Stack | None = None, name: str = "") -> None:
        """Describes the engine; nothing is started yet.

        Args:
            options: how the job is run.
            stack: that runs already; None starts one.
            name: tells the tables and topics apart from those of other engines on the same stack.
        """
        self._options = options
        self._name = f"evaluate_{name}" if name else "evaluate"
        self._owns_stack = stack is None
        self._stack = stack or Stack(options.folder / "stack", _STACK_OPTIONS)
        self.wall_s: dict[str, float] = {}
        """Time of each phase, seconds."""
        self.choices: dict[Arm, list[tuple[int, int]]] = {}
        """For each arm, (end of the step in epoch milliseconds, key) of every update."""

    def __enter__(self) -> JobEngine:
        """Starts Kafka, Redis and Flink."""
        started_s = time.monotonic()
        if self._owns_stack:
            self._stack.start()
        self.wall_s["start"] = time.monotonic() - started_s
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stops them."""
        started_s = time.monotonic()
        if self._owns_stack:
            self._stack.stop()
        self.wall_s["stop"] = time.monotonic() - started_s

    def replay(
        self, workload: Workload, arms: Sequence[Arm], progress: Progress
    ) -> list[ArmRecord]:
        """Replays the workload for all arms at once.

        Args:
            workload: what is replayed.
            arms: what is compared; ``none`` needs ``unlimited`` beside it, whose first values it
                serves to the end.
            progress: is told of every step.

        Returns:
            What happened to each arm, in the same order.

        Raises:
            FreshetError: the job or a server failed.
        """
        started_s = time.monotonic()
        maintained = [arm for arm in arms if arm.variant.policy != NONE]
        files = [self._write_table(workload, arm, number) for number, arm in enumerate(maintained)]
        submission = submit_tables(
            files,
            self._stack.config,
            stack=self._stack,
            parallelism=self._options.parallelism,
            # More would only cost more requests: each subtask reads one at a time.
            partitions=self._options.parallelism,
        )
        self.wall_s["submit"] = time.monotonic() - started_s
        tables = [load_table(file) for file in files]
        replay = _Replay(self._stack, submission.job.id, workload, arms, maintained, tables)
        try:
            replay.run(progress)
        finally:
            self._cancel(submission.job.id)
        self.wall_s |= replay.wall_s
        self.choices = replay.choices()
        for record in replay.records:
            record.wall_s = time.monotonic() - started_s
        return replay.records

    def _cancel(self, job: str) -> None:
        """Ends the job; a stack of our own ends with it anyway."""
        if not self._owns_stack:
            self._stack.flink.rest.cancel(job)

    def _write_table(self, workload: Workload, arm: Arm, number: int) -> Path:
        unlimited = arm.variant.policy == UNLIMITED
        definition = workload.definition()
        definition["source"] = {**definition["source"], "topic": f"events.{self._name}"}
        updates = len(workload.keys) if unlimited else workload.updates_per_step(arm.budget)
        table = {
            "name": f"{self._name}_{number:02d}",
            **definition,
            **(
                {"missing_regret": workload.missing_regret}
                if workload.missing_regret is not None
                else {}
            ),
            "policy": "round-robin" if unlimited else arm.variant.policy,
            "policy_seed": self._options.seed,
            "keep_versions": arm.variant.keep,
            "budget": {
                "kind": "event-time-step",
                "updates": round(updates, 9),
                "step": f"{workload.step_ms}ms",
                "initial_updates": int(computed_by_warm_up(workload).sum()),
            },
            # Decisions must not depend on the pace of the replay: no partition is given up on.
            "idle_timeout": None,
            "parallelism": self._options.parallelism,
        }
        folder = self._options.folder / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{table['name']}.yaml"
        file.write_text(yaml.safe_dump(table, sort_keys=False), encoding="utf-8")
        return file


class _Replay:
    """The input's side: events, models and their bookkeeping."""

    def __init__(
        self,
        stack: Stack,
        job: str,
        workload: Workload,
        arms: Sequence[Arm],
        maintained: Sequence[Arm],
        tables: Sequence[FeatureTable],
    ) -> None:
        self._config = stack.config
        self._rest = stack.flink.rest
        self._job = job
        self._workload = workload
        self._tables = tables
        self._maintained = maintained
        self._now_ms = workload.warm_up_end_ms()
        self.records = [ArmRecord(arm, len(workload.keys)) for arm in arms]
        self._record_of = {
            table.name: self.records[list(arms).index(arm)]
            for table, arm in zip(tables, maintained, strict=True)
        }
        self._none = next((r for r in self.records if r.arm.variant.policy == NONE), None)
        self._first_features: Features | None = None
        self._chooser = VersionChooser()
        self._index = {key: number for number, key in enumerate(workload.keys)}
        self.wall_s: dict[str, float] = {}

    def run(self, progress: Progress) -> None:
        """Replays everything."""
        with (
            Client(self._config, tables=self._tables, clock=lambda: self._now_ms) as client,
            Observer(self._config, self._tables, ProductionLog()) as observer,
        ):
            self._client, self._observer = client, observer
            definitions = [table.to_dict(self._config.topic_prefix) for table in self._tables]
            self._replayer = EventReplayer(
                self._config,
                definitions[0],
                self._workload.keys,
                feedback_topics=[definition["feedback_topic"] for definition in definitions],
            )
            started_s = time.monotonic()
            self._replayer.produce(self._workload.warm_up())
            self._end_step(self._workload.warm_up_end_ms(), WARM_UP_DEADLINE_S)
            self.wall_s["warm-up"] = time.monotonic() - started_s
            started_s = time.monotonic()
            for index in range(self._workload.steps):
                self._step(self._workload.step(index))
                progress(index + 1, self._workload.steps)
            self.wall_s["replay"] = time.monotonic() - started_s
            self._drain()
            self._count_updates()

    def _step(self, step: Step) -> None:
        # First, so that the job reads them while the models answer; it decides at the step's end.
        self._replayer.produce(step.events)
        for table, arm in zip(self._tables, self._maintained, strict=True):
            self._answer(step, table.name, arm)
        if self._none is not None and self._first_features is not None:
            errors = self._workload.errors(step, self._first_features)
            times = self._first_features.event_times[step.keys]
            self._none.answered(step, errors, times)
        self._client.flush()
        self._end_step(step.end_ms, STEP_DEADLINE_S)

    def _answer(self, step: Step, table: str, arm: Arm) -> None:
        """The model of one table: read, answer, and send the errors back."""
        if arm.variant.keep == 1:
            batch = self._client.get_many(table, self._workload.keys)
            features = self._features(batch)
            errors = self._workload.errors(step, features)
            self._record_of[table].answered(step, errors, features.event_times[step.keys])
            if arm.variant.policy == UNLIMITED:
                # Everything is chosen anyway, so it needs no feedback.
                self._first_features = self._first_features or features
                return
            self._send(step, table, batch, errors)
            return
        kept = self._client.get_versions(table, self._workload.keys)
        versions = [self._features(batch) for batch in kept.versions]
        every = [self._workload.errors(step, features) for features in versions]
        choice = self._chooser.choose_indexes(kept)
        errors = serve(step, versions, choice, every)
        self._record_of[table].answered(step, errors, served_event_times(step, versions, choice))
        present = np.stack([features.present for features in versions])
        scored = np.where(present[:, step.keys], np.stack(every), np.nan)
        for part in step.rounds:
            matrix = np.full((len(versions), len(self._workload.keys)), np.nan)
            matrix[:, step.keys[part]] = scored[:, part]
            self._chooser.observe(kept, matrix)
        self._send(step, table, kept.newest, errors, scored)

    def _send(
        self,
        step: Step,
        table: str,
        newest: FeatureBatch,
        errors: Floats,
        scored: Floats | None = None,
    ) -> None:
        """Sends the error of every query, in order of time."""
        keys, times_ms = step.keys, step.times_ms
        if self._workload.missing_regret is None:
            # Where a missing feature costs nothing, there is nothing to tell.
            told = newest.version_timestamps[keys] >= 0
            keys, times_ms, errors = keys[told], times_ms[told], errors[told]
            scored = None if scored is None else scored[:, told]
        names, versions = self._workload.keys, newest.versions
        self._client.feedback_many(
            table,
            [names[key] for key in keys.tolist()],
            [versions[key] for key in keys.tolist()],
            errors,
            kept_errors=scored,
            ts=times_ms,
        )

    def _features(self, batch: FeatureBatch) -> Features:
        values = batch.values
        dimension = self._workload.dimension()
        if values.shape[1] != dimension:  # nothing is there yet
            values = np.full((len(batch), dimension), np.nan, np.float32)
        return Features(values, batch.event_times)

    def _end_step(self, end_ms: int, deadline_s: float) -> None:
        """Ends a step, whose events and feedback are sent, and waits for what the job decides."""
        self._replayer.heartbeat(end_ms)
        wait_for_step(
            self._observer,
            self._rest,
            [self._job],
            end_ms,
            deadline_s,
            too_late=f"the job has not finished a step of event time within {deadline_s:.0f} s; "
            "see the logs in the stack's folder",
        )
        self._now_ms = end_ms

    def _drain(self) -> None:
        """Waits for the change events of all that is stored."""
        stored: dict[str, dict[str, Any]] = {}
        for table in self._tables:
            batch = self._client.get_many(table.name, self._workload.keys)
            stored[table.name] = {
                key: (version.timestamp_micros, version.origin)
                for key, version in zip(self._workload.keys, batch.versions, strict=True)
                if version is not None
            }
        if not self._observer.wait_for_changes(stored, DRAIN_DEADLINE_S):
            raise JobError("not every stored value has its change event; see the stack's logs")

    def choices(self) -> dict[Arm, list[tuple[int, int]]]:
        """For each arm, (end of the step, key) of every update after the warm-up."""
        begin_ms = self._workload.warm_up_end_ms()
        return {
            arm: [
                (micros // 1000, self._index[key])
                for micros, key in sorted(self._observer.tables[table.name].history)
                if micros // 1000 > begin_ms
            ]
            for table, arm in zip(self._tables, self._maintained, strict=True)
        }

    def _count_updates(self) -> None:
        first = computed_by_warm_up(self._workload)
        for table in self._tables:
            updates = self._record_of[table.name].key_updates
            for key, count in self._observer.tables[table.name].updates.items():
                updates[self._index[key]] = count - first[self._index[key]]
