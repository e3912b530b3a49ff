"""A table is stopped with a savepoint and goes on with another parallelism.

Goal: the rescaled job continues as if nothing had been: the same steps, windows, regrets, backoffs
and versions, with its budget divided anew.

Method: a generated workload in three parts. After each the job stops with a savepoint, with half of
the next step's inputs already taken in, and is restored: from two subtasks to one, and back. The
model is rescaled at the same two points of event time.

Fails when: an update is missing, invented or out of its key's order, a version goes
back, or the store ends with anything but the model's values.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from freshet.stack.stack import Stack
from tests.integration.agreement import (
    assert_same_failures,
    assert_same_store,
    assert_same_updates_across_rescaling,
)
from tests.integration.job import Job, running
from tests.integration.tables import DigestModel, write_definition
from tests.integration.watcher import VersionWatcher
from tests.integration.workload import Shape, Step, Workload, disordered, extend, generate
from tests.reference.model import Settings

pytestmark = pytest.mark.integration

PARALLELISMS = (2, 1, 2)
SHAPE = Shape(keys=30, steps=40)
BAD_VALUES = tuple(float(value) for value in range(0, 1_000, 20))
NAME = "rescaled"


def define(folder: Path, parallelism: int) -> Path:
    """The same table, for another number of subtasks."""
    return write_definition(
        folder,
        NAME,
        bad_values=BAD_VALUES,
        policy="'regret-proportional'",
        window="Points(4)",
        budget="EventTimeStep(updates=4.7, step='1m', initial_updates=10)",
        default_regret="0.25",
        out_of_orderness="'1m'",
        idle_timeout="None",
        parallelism=str(parallelism),
    )


def generate_parts(settings: Settings) -> tuple[Workload, list[list[Step]]]:
    """One workload, rescaled on the way, and the steps of each of its parts."""
    function = DigestModel(bad_values=BAD_VALUES)
    workload = generate(settings, PARALLELISMS[0], function, SHAPE, seed=21)
    for part, parallelism in enumerate(PARALLELISMS[1:], 1):
        workload.model.rescale(parallelism)
        extend(workload, seed=21 + part)
    n = SHAPE.steps
    return workload, [workload.steps[i * n : (i + 1) * n] for i in range(len(PARALLELISMS))]


def send_part(job: Job, steps: Sequence[Step], upcoming: Sequence[Step]) -> None:
    """Sends a part and takes half of the step after it along; waits until the part is stored."""
    rng = random.Random(steps[0].end_ms)
    inputs = [given for step in steps for given in step.inputs]
    delivered = disordered(inputs, rng, lag_ms=SHAPE.step_ms)
    if upcoming:
        following = upcoming[0].inputs
        delivered += following[::2]
        del following[::2]
    job.topics.send_inputs(job.events_topic, job.feedback_topic, delivered)
    job.topics.heartbeat(steps[-1].end_ms, job.events_topic, job.feedback_topic)
    job.wait_until_stored(steps[-1].end_ms)


def test_a_rescaled_job_goes_on(stack: Stack, tmp_path: Path) -> None:
    job = Job(stack, define(tmp_path, PARALLELISMS[0]))
    job.create_topics(inputs=3, changes=1)
    workload, parts = generate_parts(Settings.from_definition(job.definition))
    savepoint: str | None = None
    with VersionWatcher(job.store, workload.keys) as watcher:
        for i, parallelism in enumerate(PARALLELISMS):
            job = Job(stack, define(tmp_path, parallelism))
            last = i == len(PARALLELISMS) - 1
            with running(job, savepoint):
                send_part(job, parts[i], [] if last else parts[i + 1])
                if not last:
                    savepoint = job.stop_with_savepoint()

    changes = job.changes()
    assert_same_updates_across_rescaling(job, workload.model, changes)
    assert_same_store(job, workload.model, changes)
    assert_same_failures(job, workload.model)
    assert watcher.violations == []
    assert len(watcher.seen) > len(workload.keys)
