"""Durations as people write them: ``"250ms"``, ``"5m"``, ``"1h30m"``, or a ``timedelta``."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")

MAX_DURATION_MS = 2**53
"""Longest duration, milliseconds: what JSON carries exactly everywhere."""

DurationLike = str | timedelta
"""What a duration in a table definition or on the command line may be."""


def parse_duration_ms(value: object) -> int:
    """Length of a duration in whole milliseconds, 0 or more.

    Args:
        value: a ``timedelta``, or text made of numbers with the units ms, s, m, h, d or w,
            such as ``"1h30m"``. A bare number has no unit and is refused, except 0.

    Raises:
        ValueError: it is no duration, negative, no whole number of milliseconds, or absurdly long.
    """
    if isinstance(value, timedelta):
        return _whole_ms(value / timedelta(milliseconds=1), str(value))
    if isinstance(value, str):
        return _whole_ms(_parse_text_ms(value), value)
    if value == 0 and isinstance(value, int | float):
        return 0
    raise ValueError(f"{value!r} is no duration; write it with a unit, such as '5m' or '250ms'")


def _parse_text_ms(text: str) -> float:
    position, total_ms = 0, 0.0
    body = text.strip()
    if body == "0":
        return 0.0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None:
            break
        total_ms += float(part[1]) * _UNITS_MS[part[2]]
        position = part.end()
    if position == 0 or position != len(body):
        raise ValueError(
            f"{text!r} is no duration; write numbers with the units {', '.join(_UNITS_MS)}, such as"
            " '5m' or '1h30m'"
        )
    return total_ms


def _whole_ms(milliseconds: float, shown: str) -> int:
    whole = round(milliseconds)
    if milliseconds < 0:
        raise ValueError(f"duration {shown} is negative")
    if abs(milliseconds - whole) > 1e-6:
        raise ValueError(f"duration {shown} is no whole number of milliseconds")
    if whole > MAX_DURATION_MS:
        raise ValueError(f"duration {shown} is longer than {MAX_DURATION_MS} ms")
    return whole


def format_duration(milliseconds: float) -> str:
    """The shortest text that :func:`parse_duration_ms` reads back, such as ``"1h30m"``."""
    rest = round(milliseconds)
    if rest <= 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNITS_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
