"""A server that is slow, fails or talks nonsense spoils nothing but its own figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from freshet.errors import FreshetError
from freshet.status.source import Source

DEADLINE_S = 30.0


def read(source: Source[int], patience_s: float = DEADLINE_S) -> None:
    source.start()
    source.finish(time.monotonic() + patience_s)


def failing(error: Exception) -> Callable[[], int]:
    def fail() -> int:
        raise error

    return fail


def test_what_was_told_last_stays_when_a_server_fails() -> None:
    answers: list[Callable[[], int]] = [
        lambda: 1,
        failing(FreshetError("gone away")),
        failing(KeyError("jobs")),
        lambda: 2,
    ]
    source: Source[int] = Source("Kafka", lambda: answers.pop(0)())
    assert (source.last, source.status().read_ago_s, source.status().error) == (None, None, None)
    read(source)
    assert (source.last, source.status().error) == (1, None)
    read(source)
    assert (source.last, source.status().error) == (1, "gone away")
    assert source.status().read_ago_s is not None
    read(source)
    assert source.last == 1
    assert "KeyError: 'jobs'" in (source.status().error or "")
    read(source)
    assert (source.last, source.status().error) == (2, None)


def test_a_slow_server_is_not_asked_twice_and_its_answer_is_taken_when_it_comes() -> None:
    may_answer, asked = threading.Event(), []

    def slow() -> int:
        asked.append(1)
        may_answer.wait(DEADLINE_S)
        return len(asked)

    source = Source("Flink", slow)
    read(source, 0.01)
    read(source, 0.01)
    assert asked == [1]
    assert "no answer for" in (source.status().error or "")
    assert not source.is_idle(0)
    may_answer.set()
    source.finish(time.monotonic() + DEADLINE_S)
    assert (source.last, source.status().error) == (1, None)
    assert source.is_idle(0)


def test_an_answer_that_came_late_does_not_stand_for_a_new_one() -> None:
    may_answer, answers = threading.Event(), [1, 2]

    def slow_at_first() -> int:
        may_answer.wait(DEADLINE_S)
        return answers.pop(0)

    source = Source("Kafka", slow_at_first)
    read(source, 0.01)
    may_answer.set()
    assert source.is_idle(DEADLINE_S)
    read(source)
    assert (source.last, source.status().error) == (2, None)
