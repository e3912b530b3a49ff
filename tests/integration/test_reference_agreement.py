"""The real pipeline makes the model's choices.

Goal: with a budget by event time, the job's updates are a function of its input alone, and it is
the function that the model computes.

Method: for each policy a generated workload of hundreds of steps, with feedback on versions that
the model predicted (some replaced, some invented, some without an error), a fractional budget, a
feature function that fails on some events, and duplicates. All of it is produced before the job
starts, shuffled as far as the table's out-of-orderness allows, on two partitions; the job runs with
two subtasks. A last run gives the same input in another order, scattered over three partitions.

Fails when: an update is missing, too many, out of its key's order, or differs from the model's in
version, event time, regret removed, or any byte of the value; when the store ends with anything
else; when a failed computation is not exactly one dead letter.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from freshet.stack.stack import Stack
from freshet.table import load_table
from tests.integration.agreement import (
    assert_same_failures,
    assert_same_store,
    assert_same_updates,
)
from tests.integration.job import Job, running
from tests.integration.polling import eventually
from tests.integration.tables import DigestModel, write_definition
from tests.integration.workload import Shape, Workload, disordered, generate
from tests.reference.model import Event, Settings

pytestmark = pytest.mark.integration

PARALLELISM = 2
LAG_STEPS = 3
BAD_VALUES = tuple(float(value) for value in range(0, 1_000, 20))


@dataclass(frozen=True)
class Case:
    """One table, its workload, and how the input is delivered."""

    name: str
    seed: int
    policy: str
    window: str
    budget: str
    function: str = "Digest"
    min_points: int = 1
    missing_regret: str = "None"
    policy_seed: int = 0
    on_demand: str = "None"
    partitions: int = 2
    scattered: bool = False
    """Whether inputs go to random partitions, not to their key's."""

    delivery_seed: int = 0
    shape: Shape = field(default_factory=Shape)

    def fields(self) -> dict[str, str]:
        """Of the table, as Python text."""
        return {
            "policy": repr(self.policy),
            "window": self.window,
            "budget": self.budget,
            "min_points": str(self.min_points),
            "default_regret": "0.125",
            "max_regret": "20.0",
            "missing_regret": self.missing_regret,
            "policy_seed": str(self.policy_seed),
            "on_demand": self.on_demand,
            "out_of_orderness": f"'{LAG_STEPS * self.shape.step_ms}ms'",
            "idle_timeout": "None",
            "parallelism": str(PARALLELISM),
        }


REGRET = Case(
    "agree_regret",
    seed=1,
    policy="regret-proportional",
    window="Points(5)",
    budget="EventTimeStep(updates=5.3, step='1m')",
    min_points=2,
)
CASES = (
    REGRET,
    Case(
        "agree_round_robin",
        seed=2,
        policy="round-robin",
        window="Duration('7m')",
        budget="EventTimeStep(updates=7.77, step='1m')",
        function="DigestTree",
    ),
    Case(
        "agree_fifo",
        seed=3,
        policy="fifo",
        window="Points(3)",
        budget="EventTimeStep(updates=30.5, step='1m')",
        min_points=2,
    ),
    Case(
        "agree_over_baseline",
        seed=4,
        policy="regret-over-baseline",
        window="Points(4)",
        budget="EventTimeStep(updates=6.1, step='1m')",
        missing_regret="0.5",
    ),
    Case(
        "agree_on_demand",
        seed=6,
        policy="regret-proportional",
        window="Points(4)",
        budget="EventTimeStep(updates=2.7, step='1m')",
        on_demand="OnDemand(max_staleness='1m')",
    ),
    Case(
        "agree_random",
        seed=5,
        policy="random",
        window="Points(4)",
        budget="EventTimeStep(updates=4.4, step='1m')",
        policy_seed=-17,
    ),
)
REDELIVERED = Case(
    "agree_redelivered",
    seed=REGRET.seed,
    policy=REGRET.policy,
    window=REGRET.window,
    budget=REGRET.budget,
    min_points=REGRET.min_points,
    partitions=3,
    scattered=True,
    delivery_seed=99,
)


def predict(case: Case, settings: Settings) -> Workload:
    """The workload of a case, decided by the model."""
    function = DigestModel(tree=case.function == "DigestTree", bad_values=BAD_VALUES)
    return generate(settings, PARALLELISM, function, case.shape, case.seed)


def produce(job: Job, workload: Workload, case: Case) -> int:
    """Delivers the input; returns how many events came again."""
    rng = random.Random(case.delivery_seed)
    inputs = list(workload.inputs())
    delivered = disordered(inputs, rng, lag_ms=LAG_STEPS * case.shape.step_ms)
    job.create_topics(inputs=case.partitions)
    job.topics.send_inputs(
        job.events_topic,
        job.feedback_topic,
        delivered,
        partition=lambda: rng.randrange(case.partitions) if case.scattered else -1,
    )
    job.topics.heartbeat(workload.end_ms, job.events_topic, job.feedback_topic)
    return len(delivered) - len(inputs)


@pytest.mark.parametrize("case", [*CASES, REDELIVERED], ids=lambda case: case.name)
def test_the_pipeline_agrees_with_the_model(case: Case, stack: Stack, tmp_path: Path) -> None:
    file = write_definition(
        tmp_path, case.name, function=case.function, bad_values=BAD_VALUES, **case.fields()
    )
    job = Job(stack, file)
    workload = predict(case, Settings.from_definition(load_table(file).to_dict()))
    assert_worth_comparing(workload)
    repeated = produce(job, workload, case)
    with running(job):
        job.wait_until_stored(workload.end_ms)
        changes = job.changes()
        assert_same_updates(job, workload.model, changes)
        assert_same_store(job, workload.model, changes)
        assert_same_failures(job, workload.model)
        assert job.restarts == 0
        eventually(lambda: assert_same_counts(job, workload, repeated), "metrics", deadline_s=30)


def assert_worth_comparing(workload: Workload) -> None:
    """Nothing that the comparison is about is missing from the workload."""
    counts = workload.model.counts
    assert min(counts.feedback_used, counts.feedback_dropped) > 500, counts
    assert counts.failures > 15, counts
    assert len({choice.subtask for choice in workload.model.choices}) == PARALLELISM
    assert workload.model.pending_keys(), "the budget is too large to make choices"


def assert_same_counts(job: Job, workload: Workload, repeated: int) -> bool:
    """Drops and uses, as the job's metrics tell them. True, so that it can be polled."""
    counts = workload.model.counts
    failed = counts.failures
    expected: dict[str, Any] = {
        "feedbackUsed": counts.feedback_used,
        "feedbackDropped": counts.feedback_dropped,
        "demands": counts.demands,
        "demandsIgnored": counts.demands_ignored,
        "updates": len(workload.model.choices),
        "updatesFailed": failed,
        "deadLetters": failed,
        "writes": len(workload.model.choices) - failed,
    }
    assert {name: job.metric(name) for name in expected} == expected
    assert job.metric("eventsDuplicate") + job.metric("eventsTooLate") == repeated
    return True


def test_delivery_differs_and_input_does_not() -> None:
    """The redelivered case is the same input in another order, or the comparison means nothing."""
    settings = Settings(
        policy="regret-proportional",
        updates_per_step=5.3,
        step_ms=60_000,
        window_points=5,
        min_points=2,
        default_regret=0.125,
        max_regret=20.0,
    )
    first, second = (list(predict(case, settings).inputs()) for case in (REGRET, REDELIVERED))
    assert first == second
    lag = LAG_STEPS * REGRET.shape.step_ms
    orders = [
        disordered(first, random.Random(case.delivery_seed), lag_ms=lag)
        for case in (REGRET, REDELIVERED)
    ]
    assert orders[0] != orders[1]
    assert any(isinstance(e, Event) for e in orders[0])
    assert {repr(e) for e in orders[0]} == {repr(e) for e in orders[1]} == {repr(e) for e in first}
