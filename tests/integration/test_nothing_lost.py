"""Servers die while events flow, and nothing is lost.

Goal: after a killed TaskManager, a killed Redis and an emptied Redis, with duplicated, reordered
and late input, every key ends with the model's value and version; on the way versions never go
back, and each version that a reader ever saw has its change event.

Method: a producer sends a generated workload step by step, with heartbeats; at given points of it
faults fire (see ``faults.py``), and the flow goes on while they last. A watcher reads the store all
the time. Because the budget is by event time, a job that recovered from its checkpoint must make
the very updates that it had made before: the change events are of the model's updates only.

Fails when: a change is missing or invented, the store ends with anything but the model's values, a
version goes back, a version has no change event, a fault did not fire, or the job did not recover.
"""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from freshet.stack.stack import Stack
from tests.integration.agreement import assert_same_store, predicted, seen
from tests.integration.faults import Fault, Kind, Target, fired
from tests.integration.job import Job, running
from tests.integration.polling import eventually
from tests.integration.tables import DigestModel, write_definition
from tests.integration.watcher import VersionWatcher
from tests.integration.workload import Shape, Step, Workload, decide, disordered, generate
from tests.reference.model import Event, Input, Settings, Version

pytestmark = pytest.mark.integration

PARALLELISM = 2
SHAPE = Shape(keys=40, steps=300)
LAG_MS = 2 * SHAPE.step_ms
PACE_S = 0.05
"""Between two steps of the flow: 300 of them take 15 s, or three checkpoints."""

DRAIN_STEPS = 30
"""Enough for the budget to compute every key once more."""


class Flow:
    """Sends a workload step by step, on a thread of its own."""

    def __init__(self, job: Job, workload: Workload) -> None:
        inputs = list(workload.inputs())
        self._job = job
        self._delivered = disordered(inputs, random.Random(5), lag_ms=LAG_MS)
        self._steps = len(workload.steps)
        self._end_ms = workload.end_ms
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flow", daemon=True)
        self._failure: BaseException | None = None
        self.sent_steps = 0

    @property
    def progress(self) -> float:
        """How much of it was sent, 0 to 1."""
        return self.sent_steps / self._steps

    def start(self) -> None:
        """Begins to send."""
        self._thread.start()

    def wait_for(self, progress: float) -> None:
        """Waits until so much was sent."""

        def reached() -> bool:
            assert self._failure is None, self._failure
            return self.progress >= progress

        eventually(reached, f"{progress:.0%} of the flow")

    def stop(self) -> None:
        """Ends it early, if it has not ended."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._send_all()
        except BaseException as e:
            self._failure = e

    def _send_all(self) -> None:
        job = self._job
        share = len(self._delivered) / self._steps
        for i in range(self._steps):
            part = self._delivered[round(i * share) : round((i + 1) * share)]
            job.topics.send_inputs(job.events_topic, job.feedback_topic, part)
            self.sent_steps += 1
            if self._stop.wait(PACE_S):
                return
        # Event time follows from the events themselves; only its end needs a word.
        job.topics.heartbeat(self._end_ms, job.events_topic, job.feedback_topic)


def prepare(stack: Stack, folder: Path, name: str, seed: int) -> tuple[Job, Workload]:
    """A table, and a workload that its budget does not quite cover."""
    file = write_definition(
        folder,
        name,
        policy="'regret-proportional'",
        window="Points(6)",
        budget="EventTimeStep(updates=8.4, step='1m')",
        default_regret="0.25",
        out_of_orderness=f"'{LAG_MS}ms'",
        idle_timeout="None",
        parallelism=str(PARALLELISM),
    )
    job = Job(stack, file)
    job.create_topics(inputs=3, changes=2)
    settings = Settings.from_definition(job.definition)
    return job, generate(settings, PARALLELISM, DigestModel(), SHAPE, seed)


def test_a_killed_task_manager(stack: Stack, tmp_path: Path) -> None:
    fault = Fault(Kind.KILL, Target.TASK_MANAGER, when=0.5)
    job, workload = prepare(stack, tmp_path, "lost_task_manager", seed=11)
    flow = Flow(job, workload)
    with running(job), VersionWatcher(job.store, workload.keys) as watcher:
        try:
            flow.start()
            flow.wait_for(fault.when)
            eventually(lambda: job.checkpoints() >= 1, "a checkpoint to recover from")
            with fired(stack, fault):
                assert flow.progress < 1, "events must flow while the fault is there"
            eventually(lambda: job.restarts >= 1 and job.is_running(), "the job restarts")
            flow.wait_for(1.0)
            drain(job, workload)
            assert_nothing_lost(job, workload, watcher)
        finally:
            flow.stop()


def test_a_killed_and_an_emptied_redis(stack: Stack, tmp_path: Path) -> None:
    killed = Fault(Kind.KILL, Target.REDIS, when=0.3)
    emptied = Fault(Kind.EMPTY, Target.REDIS, when=0.6)
    emptied_at_rest = Fault(Kind.EMPTY, Target.REDIS, when=1.0)
    job, workload = prepare(stack, tmp_path, "lost_redis", seed=12)
    flow = Flow(job, workload)
    with running(job), VersionWatcher(job.store, workload.keys) as watcher:
        try:
            flow.start()
            for fault in (killed, emptied):
                flow.wait_for(fault.when)
                with fired(stack, fault):
                    outage(fault, flow, watcher)
            flow.wait_for(1.0)
            drain(job, workload)
            late_events(job, workload)
            assert_nothing_lost(job, workload, watcher)
            with fired(stack, emptied_at_rest):
                outage(emptied_at_rest, flow, watcher)
            assert_refilled(job, workload)
            assert watcher.violations == []
        finally:
            flow.stop()


def assert_refilled(job: Job, workload: Workload) -> None:
    """All keys come back with nothing to cause it: no event, feedback or heartbeat."""
    told = {seen(change) for change in job.changes()}
    eventually(lambda: job.store.keys() == set(workload.model.stored()), "every key is back")
    changes = job.changes()
    assert_same_store(job, workload.model, changes)
    assert {seen(change) for change in changes} == told, "a refill makes no new update"


def outage(fault: Fault, flow: Flow, watcher: VersionWatcher) -> None:
    """Lasts until readers have met it, while the flow goes on."""
    failed, sent = watcher.failed_samples, flow.sent_steps
    eventually(lambda: watcher.failed_samples > failed, "readers notice")
    eventually(lambda: flow.sent_steps > sent or flow.progress == 1, "events flow meanwhile")
    if fault.kind is Kind.EMPTY:
        watcher.forget()


def drain(job: Job, workload: Workload) -> None:
    """Lets event time go on without events, until nothing is pending."""
    for _ in range(DRAIN_STEPS):
        decide(workload, Step(workload.end_ms + SHAPE.step_ms))
    assert not workload.model.pending_keys()
    job.topics.heartbeat(workload.end_ms, job.events_topic, job.feedback_topic)
    job.wait_until_stored(workload.end_ms)


def late_events(job: Job, workload: Workload) -> None:
    """Events of decided steps, inside their keys' windows: each key is computed once more."""
    stored = workload.model.stored()
    late: list[Input] = [
        Event(key, choice.window[-2][0] + 1, 7.0)
        for key, choice in list(stored.items())[::3]
        if choice.window[-2][0] + 1 < choice.window[-1][0]
    ]
    assert len(late) > 5
    for event in late:
        assert isinstance(event, Event)
        workload.model.event(event)
    before = len(workload.model.choices)
    for _ in range(DRAIN_STEPS):
        decide(workload, Step(workload.end_ms + SHAPE.step_ms))
    assert len(workload.model.choices) == before + len(late)
    job.topics.send_inputs(job.events_topic, job.feedback_topic, late)
    job.topics.heartbeat(workload.end_ms, job.events_topic, job.feedback_topic)
    job.wait_until_stored(workload.end_ms)


def assert_nothing_lost(job: Job, workload: Workload, watcher: VersionWatcher) -> None:
    """What the module's docstring says."""
    changes = job.changes()
    told = {seen(change) for change in changes}
    expected = {predicted(choice) for choice in workload.model.choices}
    assert told - expected == set(), "change events of updates that the model does not make"
    # A write that is repeated after a failure and finds a newer version has no change event.
    newest: dict[str, Version] = {}
    for update in told:
        newest[update.key] = max(update.version, newest.get(update.key, update.version))
    lost = {u for u in expected - told if u.version >= newest.get(u.key, u.version)}
    assert lost == set(), "updates without a change event"
    assert_same_store(job, workload.model, changes)

    assert watcher.violations == []
    assert watcher.samples > 100
    versions = {(update.key, update.version) for update in told}
    assert watcher.seen - versions == set(), "versions in the store without a change event"
    assert len(watcher.seen) > 5 * len(workload.keys), "the watcher saw too little to judge"
