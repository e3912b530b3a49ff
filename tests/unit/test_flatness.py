"""Goal: the soak's judgement finds leaks, and is not misled by noise, outliers or a saw's teeth."""

from __future__ import annotations

import numpy as np
import pytest

from tests.integration.soak.flatness import SAMPLES_MIN, Tolerance, trend

TIMES = np.arange(0, 1_200, 20.0)
TOLERANCE = Tolerance(share=0.05, least=2.0)
NOISE = np.random.default_rng(3).normal(0, 4, len(TIMES))


@pytest.mark.parametrize(
    "values",
    [
        np.full(len(TIMES), 100.0),
        100 + NOISE,
        # Fills up and is emptied, again and again.
        100 + (TIMES % 90) / 3,
        # Two of sixty samples came at a bad time.
        np.where(np.isin(np.arange(len(TIMES)), (40, 59)), 300.0, 100 + NOISE),
        # It falls.
        130 - TIMES / 60 + NOISE,
        # It grows by less than is tolerated.
        100 + TIMES / 1_200 * 4 + NOISE / 10,
    ],
)
def test_what_does_not_grow_is_flat(values: np.ndarray) -> None:
    assert trend(TIMES, values, TOLERANCE).is_flat


@pytest.mark.parametrize(
    "values",
    [
        100 + TIMES / 1_200 * 15 + NOISE,
        100 + TIMES / 1_200 * 15 + (TIMES % 90) / 9,
        # Handles: one in two minutes.
        100 + TIMES // 120,
        # Only from the middle on.
        100 + np.maximum(0, TIMES - 600) / 10 + NOISE,
    ],
)
def test_what_grows_is_not(values: np.ndarray) -> None:
    assert not trend(TIMES, values, TOLERANCE).is_flat


def test_growth_is_that_of_the_time_that_was_watched() -> None:
    found = trend(TIMES, 50 + TIMES / 1_180 * 10, TOLERANCE)
    assert found.begin == pytest.approx(50)
    assert (found.growth_low, found.growth, found.growth_high) == pytest.approx((10, 10, 10))
    assert found.per_hour == pytest.approx(10 * 3_600 / 1_180)


def test_a_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="soak longer"):
        trend(TIMES[: SAMPLES_MIN - 1], NOISE[: SAMPLES_MIN - 1], TOLERANCE)
