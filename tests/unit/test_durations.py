"""Goal: durations mean what people write, and nothing else is taken."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.durations import MAX_DURATION_MS, format_duration, parse_duration_ms


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("250ms", 250),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("3d", 259_200_000),
        ("1.5s", 1_500),
        (" 1 h ", 3_600_000),
        ("2w", 1_209_600_000),
        ("0", 0),
        (0, 0),
        (timedelta(hours=1), 3_600_000),
    ],
)
def test_durations(value: object, milliseconds: int) -> None:
    assert parse_duration_ms(value) == milliseconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "5",
        "m",
        "5 minutes",
        "-5m",
        "1e3s",
        "0.5ms",
        5,
        1.0,
        None,
        True,
        timedelta(-1),
        "9" * 20,
    ],
)
def test_no_durations(value: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ms(value)


@given(st.integers(0, MAX_DURATION_MS))
def test_formatting_round_trips(milliseconds: int) -> None:
    assert parse_duration_ms(format_duration(milliseconds)) == milliseconds
