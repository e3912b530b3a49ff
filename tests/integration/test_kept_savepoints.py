"""Savepoints of earlier builds are restored by this one, and nothing is lost.

Goal: state of a feature, a multicast and a region job that another build wrote, with everything in
it that can be (see ``tests/releases/make_savepoints.py``), is found and understood by this build,
at another parallelism.

Method: the topics are filled as they were. The three jobs start from their savepoints with one
subtask instead of two, on stores that are empty: home's must get its values back from the log of
changes, the other region's from home. Half a step that had come before is in the state only. Then
the flow goes on. The reference model has seen all of it.

Fails when: a job does not start from its savepoint, a choice, a version or a value is not the
model's in either region, or what was counted before is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet.stack.redis import RedisServer
from freshet.stack.stack import Stack
from tests.integration import kept
from tests.integration.agreement import assert_same_store, predicted, seen
from tests.integration.kept import Kept
from tests.integration.polling import eventually
from tests.integration.tables import DigestModel
from tests.integration.two_regions import KINDS, TwoRegions
from tests.integration.workload import Shape, Step, Workload, decide, extend
from tests.reference.model import Input, ReferenceModel, Settings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

MORE = Shape(keys=8, steps=6)
PARALLELISM = 1


@pytest.fixture
def roomy(stack: Stack) -> Iterator[Stack]:
    """The session's cluster with a slot for each of the three jobs."""
    more = stack.flink.start_task_manager()
    try:
        yield stack
    finally:
        stack.flink.kill_task_manager(more)
        stack.flink.wait_until_lost(more)


def seen_before(earlier: Kept, settings: Settings) -> Workload:
    """The model as of the savepoint, rescaled, and then with the step that had begun."""
    facts = earlier.facts
    workload = Workload(MORE, ReferenceModel(settings, facts["parallelism"], DigestModel()))
    inputs = earlier.inputs()
    for end_ms in range(
        facts["begin_ms"] + facts["step_ms"], facts["decided_ms"] + 1, facts["step_ms"]
    ):
        decide(workload, Step(end_ms, _of_step(inputs, end_ms, facts["step_ms"])))
    workload.model.rescale(PARALLELISM)
    begun_ms = facts["decided_ms"] + facts["step_ms"]
    begun = _of_step(inputs, begun_ms, facts["step_ms"])
    assert begun, "the savepoint has nothing of a step that had not ended"
    decide(workload, Step(begun_ms, begun))
    return workload


def _of_step(inputs: list[Input], end_ms: int, step_ms: int) -> list[Input]:
    return [
        given
        for given in inputs
        if given.timestamp_ms is not None and end_ms - step_ms < given.timestamp_ms <= end_ms
    ]


@pytest.mark.parametrize("release", kept.releases())
def test_a_release_s_savepoints_are_restored_at_another_parallelism(
    release: str, roomy: Stack, redis_server: RedisServer, tmp_path: Path
) -> None:
    earlier = Kept(kept.FOLDER / release)
    assert earlier.facts["parallelism"] != PARALLELISM
    file = tmp_path / "table.py"
    definition = earlier.definition.replace("parallelism=2", f"parallelism={PARALLELISM}")
    # What may change with a savepoint: the region need not wait for so long.
    file.write_text(definition.replace("'20s'", "'1s'"), "utf-8")
    # The sources' states name their topics.
    prefix = earlier.facts["topic_prefix"]
    regions = TwoRegions(roomy, redis_server.url, tmp_path, file, prefix)
    job, topics = regions.job, regions.topics
    earlier.replay(topics, prefix)
    workload = seen_before(earlier, Settings.from_definition(job.definition))
    try:
        regions.start(
            PARALLELISM, {kind: earlier.savepoint(kind, tmp_path / "savepoints") for kind in KINDS}
        )
        for kind in KINDS:
            assert restores(roomy, regions.jobs[kind]) >= 1, f"{kind} began without its state"
        extend(workload, seed=5)
        later = [given for step in workload.steps[-MORE.steps :] for given in step.inputs]
        topics.send_inputs(job.events_topic, job.feedback_topic, later)
        topics.heartbeat(workload.end_ms, job.events_topic, job.feedback_topic)
        job.wait_until_stored(workload.end_ms)

        changes = job.changes()
        assert {seen(change) for change in changes} == {
            predicted(choice) for choice in workload.model.choices
        }
        assert_same_store(job, workload.model, changes)
        regions.wait_until_equal()
        assert_counters_went_on(regions, earlier, len(changes))
    finally:
        regions.cancel()


def restores(stack: Stack, job: str) -> int:
    """How often a job has started from a state: once, or more where it was restarted."""
    return int(stack.flink.rest.get(f"/jobs/{job}/checkpoints")["counts"]["restored"])


def assert_counters_went_on(regions: TwoRegions, earlier: Kept, changes: int) -> None:
    """What was counted before the savepoint is part of what is counted now."""
    *_, region = regions.reports("REGION")
    assert region["applied"] >= earlier.facts["region_applied"] > 0
    assert region["epoch"] > earlier.facts["region_epoch"], "the store is another one now"

    def all_are_counted() -> bool:
        *_, multicast = regions.reports("MULTICAST")
        # Those before the savepoint from its state, those after it from where it had read up to.
        assert multicast["changes"] == changes
        return True

    eventually(all_are_counted, "the multicast job has counted each change once")
