"""The real job and an independent simulation of the same rules agree.

Goal: what ``freshet evaluate`` reports of the real job follows from the scheduler's rules, and what
it reports of a simulation holds for the real job.

Method: random small data sets (number of keys, length, jumps, late series, gaps, query
distribution, budgets) are replayed through the real job, with a table for each of several policies
and numbers of kept versions, and through the simulation, which shares no code with the operators.

Fails when: an update is missing, too many, of another key or in another step; or a query's loss
differs.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshet.evaluation.job_engine import JobEngine, JobOptions
from freshet.evaluation.queries import Queries
from freshet.evaluation.series import SeriesWorkload
from freshet.evaluation.simulation import POLICIES, Simulation
from freshet.evaluation.variants import NONE, UNLIMITED, Arm, Variant
from freshet.stack.stack import Stack
from tests.unit.evaluation.made_up import grid

pytestmark = pytest.mark.integration

EXAMPLES = 1
"""Another one at every run. Each takes the better part of a minute, and holds many arms."""

BOUNDS = [Arm(Variant(UNLIMITED), float("inf")), Arm(Variant(NONE), 0.0)]


@st.composite
def workloads(draw: st.DrawFn) -> SeriesWorkload:
    """Small workloads of every kind."""
    data = grid(
        keys=draw(st.integers(3, 9)),
        readings=draw(st.integers(80, 120)),
        seed=draw(st.integers(0, 10_000)),
        late=draw(st.booleans()),
        gaps=draw(st.booleans()),
    )
    queries = draw(st.sampled_from(Queries))
    return SeriesWorkload(data, queries=queries, seed=draw(st.integers(0, 100)))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(workload=workloads(), budgets=st.tuples(st.floats(0.05, 0.5), st.floats(0.5, 1.2)))
def test_same_choices_and_same_loss(
    stack: Stack,
    tmp_path_factory: pytest.TempPathFactory,
    workload: SeriesWorkload,
    budgets: tuple[float, float],
) -> None:
    arms = [*BOUNDS, *(Arm(Variant(policy), budgets[0]) for policy in POLICIES)]
    arms += [Arm(Variant("regret-proportional", 3), budgets[0])]
    arms += [Arm(Variant("round-robin", 2), budgets[1])]
    simulation = Simulation(workload, seed=5)
    expected = simulation.replay(arms)
    folder: Path = tmp_path_factory.mktemp("evaluation")
    options = JobOptions(folder, seed=5)
    with JobEngine(options, stack, name=uuid.uuid4().hex[:8]) as engine:
        seen = engine.replay(workload, arms, lambda done, all_: None)
    for real, simulated in zip(seen, expected, strict=True):
        arm = str(real.arm)
        if real.arm.variant.policy != NONE:
            choices = sorted(simulation.choices[real.arm])
            assert sorted(engine.choices[real.arm]) == choices, arm
        assert real.key_updates.tolist() == simulated.key_updates.tolist(), arm
        assert real.loss_sums == pytest.approx(simulated.loss_sums, rel=1e-12), arm
        assert real.key_loss.tolist() == pytest.approx(simulated.key_loss.tolist(), rel=1e-12), arm
