"""The simulation's own consistency; that it agrees with the job is tested on real servers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.evaluation.series import SeriesWorkload
from freshet.evaluation.simulation import Simulation, draw_lots, hash_names
from freshet.evaluation.variants import NONE, UNLIMITED, Arm, Variant
from tests.reference.lots import lot
from tests.unit.evaluation.made_up import grid

BOUNDS = [Arm(Variant(UNLIMITED), float("inf")), Arm(Variant(NONE), 0.0)]


def test_a_full_budget_is_unlimited() -> None:
    workload = SeriesWorkload(grid(readings=120))
    arms = [*BOUNDS, Arm(Variant("regret-proportional"), 1.0), Arm(Variant("round-robin"), 1.0)]
    unlimited, none, regret, robin = Simulation(workload).replay(arms)
    assert regret.loss == robin.loss == unlimited.loss
    assert unlimited.key_updates.tolist() == [workload.steps] * 5
    assert none.key_updates.sum() == 0
    assert none.loss > unlimited.loss


@pytest.mark.parametrize("policy", ["regret-proportional", "round-robin", "max-pending"])
def test_the_budget_is_kept(policy: str) -> None:
    workload = SeriesWorkload(grid(readings=120))
    (record,) = Simulation(workload).replay([Arm(Variant(policy), 0.3)])
    assert record.key_updates.sum() == int(0.3 * 5 * workload.steps + 1e-9)


def test_round_robin_is_even() -> None:
    workload = SeriesWorkload(grid(readings=120))
    (record,) = Simulation(workload).replay([Arm(Variant("round-robin"), 0.2)])
    assert np.ptp(record.key_updates) <= 1


def test_regret_goes_where_the_errors_are() -> None:
    data = grid(keys=4, readings=160, seed=4)
    data.values[40:, 0] += 5 * np.cumsum(np.ones(120))  # its features are wrong again and again
    (record,) = Simulation(SeriesWorkload(data)).replay([Arm(Variant("regret-proportional"), 0.25)])
    assert record.key_updates.argmax() == 0
    assert record.key_updates[0] > 2 * record.key_updates[1:].mean()


def test_keeping_more_versions_changes_nothing_without_updates() -> None:
    workload = SeriesWorkload(grid(readings=120))
    arms = [Arm(Variant("round-robin", keep), 1e-9) for keep in (1, 4)]
    one, four = Simulation(workload).replay(arms)
    assert one.loss == four.loss


def test_a_late_series_is_computed_when_its_window_is_full() -> None:
    workload = SeriesWorkload(grid(readings=120, late=True))
    (record,) = Simulation(workload).replay([Arm(Variant("round-robin"), 1.0)])
    assert 0 < record.key_updates[0] < workload.steps
    assert record.unserved > 0


@given(st.lists(st.text()), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 1 << 45))
def test_lots_are_those_of_the_policy(names: list[str], seed: int, step_end_ms: int) -> None:
    drawn = draw_lots(hash_names(names), seed, step_end_ms)
    assert drawn.tolist() == [lot(seed, name, step_end_ms) for name in names]
