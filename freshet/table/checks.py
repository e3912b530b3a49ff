"""Small checks of single fields; each adds at most one problem, in one sentence, to a list."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from freshet.durations import parse_duration_ms

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
MAX_TOPIC_LENGTH = 249
"""Kafka's limit."""


class Problems(list[str]):
    """The problems found so far."""

    def integer(self, field: str, value: object, low: int, high: int) -> None:
        """The value must be an integer in [low, high]."""
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.append(f"{field} must be an integer from {low} to {high}, not {value!r}")

    def number(
        self, field: str, value: object, holds: Callable[[float], bool], meaning: str
    ) -> None:
        """The value must be a finite number of which holds is true."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.append(f"{field} must be a number {meaning}, not {value!r}")
        elif not math.isfinite(value) or not holds(value):
            self.append(f"{field} must be {meaning}, not {value!r}")

    def duration(self, field: str, value: object, least_ms: int) -> None:
        """The value must be a duration of at least least_ms milliseconds."""
        try:
            if parse_duration_ms(value) < least_ms:
                self.append(f"{field} must be at least {least_ms} ms, not {value!r}")
        except ValueError as e:
            self.append(f"{field}: {e}")

    def one_of(self, field: str, value: object, known: Iterable[str]) -> None:
        """The value must be one of the known names."""
        names = list(known)
        if value not in names:
            self.append(f"{field} {value!r} is unknown{suggestion(value, names)}")

    def topic(self, field: str, value: object) -> None:
        """The value must be a legal name of a Kafka topic."""
        if (
            not isinstance(value, str)
            or not _TOPIC.fullmatch(value)
            or value in (".", "..")
            or len(value) > MAX_TOPIC_LENGTH
        ):
            self.append(
                f"{field} must be a topic name of letters, digits, '.', '_' and '-', at most "
                f"{MAX_TOPIC_LENGTH} long, not {value!r}"
            )

    def unknown_fields(self, where: str, given: Iterable[Any], known: Iterable[str]) -> None:
        """Names of fields must be known."""
        names = list(known)
        for field in given:
            if field not in names:
                self.append(f"{where}unknown field {field!r}{suggestion(field, names)}")


def suggestion(value: object, known: list[str]) -> str:
    """'; did you mean ...?' with the nearest known name, else the list of known names."""
    near = difflib.get_close_matches(str(value).lower(), known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; use one of {', '.join(known)}"
