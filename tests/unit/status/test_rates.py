"""Rates of counters over the last seconds."""

from __future__ import annotations

import pytest

from freshet.status.rates import WINDOW_S, Rates


def test_a_rate_needs_two_values() -> None:
    rates = Rates()
    assert rates.rate("a", 100, 1.0) is None
    assert rates.rate("a", 100, 1.0) is None, "the same reading again says nothing"
    assert rates.rate("a", 130, 3.0) == 15
    assert rates.rate("b", 5, 3.0) is None


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rates = Rates()
    for second in range(100):
        rate = rates.rate("a", 10 * min(second, 50), second)
        if 1 <= second <= 50:
            assert rate == 10
    assert rate == 0
    assert rates.rate("a", 500 + 20 * WINDOW_S, 99 + WINDOW_S) == 20


def test_after_a_long_time_without_readings_the_rate_is_over_that() -> None:
    rates = Rates()
    rates.rate("a", 0, 0.0)
    rates.rate("a", 10, 1.0)
    assert rates.rate("a", 1_009, 1_000.0) == pytest.approx(1.0)


def test_a_counter_that_begins_anew_or_is_not_known_has_no_rate() -> None:
    rates = Rates()
    rates.rate("a", 100, 0.0)
    assert rates.rate("a", 3, 1.0) is None
    assert rates.rate("a", 6, 2.0) == 3
    assert rates.rate("a", None, 3.0) is None
    assert rates.rate("a", 1_000, 4.0) is None
