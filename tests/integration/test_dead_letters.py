"""Whatever cannot be used is one dead letter that says why, and harms nobody else.

Goal: malformed records and misbehaving feature functions cost exactly themselves.

Method: one table. Between good events of good keys come every kind of bad event and feedback, and
single events of keys on which the feature function raises, hangs, kills its own process, or returns
what cannot be stored, and of one on which it is rate limited once. Each bad record's place is taken
from its delivery report.

Fails when: a bad input has no dead letter, or more than one, or one without its reason, place and
bytes; the rate-limited key has one, or no value; a good key's value is not that of its window; the
job restarts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from freshet.stack.stack import Stack
from tests.integration.agreement import packed
from tests.integration.job import Job, running
from tests.integration.polling import eventually
from tests.integration.topics import HEARTBEAT

pytestmark = pytest.mark.integration

EVENT_BYTES_MAX = 4_096
VALUE_BYTES_MAX = 1_024
LIMITED = "rate-limited"
GOOD_KEYS = tuple(f"good-{i}" for i in range(10))
NOW_MS = int(time.time() * 1_000)
TWO_DAYS_MS = 2 * 86_400_000

DEFINITION = f'''
import os
import time

from freshet import *


class Moody(FeatureFunction):
    """Behaves as the name of the key says."""

    def __init__(self):
        self.calls_refused = 0

    def compute(self, window):
        newest = float(window.values[-1])
        if window.key == "{LIMITED}" and self.calls_refused == 0:
            self.calls_refused += 1
            raise RateLimited(retry_after_s=0.3)
        if newest == 13.0:
            if window.key == "raises":
                raise ArithmeticError("thirteen brings bad luck")
            if window.key == "hangs":
                while True:
                    time.sleep(60)
            if window.key == "crashes":
                os._exit(3)
            if window.key == "exits":
                raise SystemExit(4)
            if window.key == "returns-nan":
                return [1.0, float("nan")]
            if window.key == "returns-nothing":
                return None
            if window.key == "returns-too-much":
                return [0.0] * {VALUE_BYTES_MAX}
        return [newest, float(len(window))]


table = FeatureTable(
    name="dead_letters",
    function=Moody(),
    window=Points(3),
    source=Source(max_event_bytes={EVENT_BYTES_MAX}),
    budget=TimeShare(1.0),
    function_timeout="1s",
    max_value_bytes={VALUE_BYTES_MAX},
    parallelism=2,
)
'''


@dataclass(frozen=True)
class Bad:
    """A bad record, and a part of the reason that it must be given."""

    value: bytes | None
    reason: str
    more: dict[str, Any] = field(default_factory=dict)


def event(**fields: Any) -> bytes:
    """An event with some fields replaced; a field that is ``...`` is left out."""
    values = {"key": "bad", "ts": NOW_MS, "value": 1.0} | fields
    return json.dumps({k: v for k, v in values.items() if v is not ...}).encode()


def feedback(**fields: Any) -> bytes:
    """Feedback, likewise."""
    values = {"key": "bad", "version": "1.1", "error": 1.0} | fields
    return json.dumps({k: v for k, v in values.items() if v is not ...}).encode()


BAD_EVENTS = (
    Bad(b"not json", "not JSON"),
    Bad(b'{"key": "bad", "ts": 1', "start marker at [line: 1, column: 1]"),
    Bad(b"", "empty"),
    Bad(b"[1, 2]", "an array"),
    Bad(b'"text"', "a string"),
    Bad(event() + b"}", "not JSON"),
    Bad(event() + event(), "follows"),
    Bad(b'{"key": "\xff", "ts": 1, "value": 1}', "UTF-8"),
    Bad(None, "no value"),
    Bad(event(key=...), "'key' is missing"),
    Bad(event(ts=...), "'ts' is missing"),
    Bad(event(value=...), "'value' is missing"),
    Bad(event(key=None), "'key' is null"),
    Bad(event(key={"a": 1}), "'key' is an object"),
    Bad(event(key=""), "'key' is empty"),
    Bad(event(key="k" * 1_025), "1024 bytes"),
    Bad(event(ts="yesterday"), "'ts' is a string"),
    Bad(event(ts=1.5), "'ts'"),
    Bad(event(ts=-1), "'ts'"),
    Bad(event(ts=NOW_MS + TWO_DAYS_MS), "'ts'"),
    Bad(event(value="12"), "'value' is a string"),
    Bad(event(value=True), "'value' is a boolean"),
    Bad(event(value=None), "'value' is null"),
    Bad(event(value=[1.0]), "'value' is an array"),
    Bad(event(value=float("nan")), "'value' is NaN"),
    Bad(event(value=float("-inf")), "'value' is -Infinity"),
    Bad(event().replace(b"1.0", b"1e999"), "1e999"),
    Bad(b'{"key": "bad", "ts": 1, "value": 1, "value": 2}', "comes twice"),
    Bad(event(note="x" * EVENT_BYTES_MAX), "max_event_bytes"),
    Bad(None, "timestamp", {"headers": HEARTBEAT, "timestamp": NOW_MS + TWO_DAYS_MS}),
)

BAD_FEEDBACK = (
    Bad(b"{", "not JSON"),
    Bad(feedback(key=...), "'key' is missing"),
    Bad(feedback(version=...), "'version' is missing"),
    Bad(feedback(version=12), "'version' is a number"),
    Bad(feedback(version="newest"), "'newest'"),
    Bad(feedback(errors=[0.5, -1]), "'errors[1]' is -1.0"),
    Bad(feedback(demand=True), "a record of its own"),
    Bad(feedback(version="1.99999"), "'1.99999'"),
    Bad(feedback(error=-0.5), "-0.5"),
    Bad(feedback(error=float("nan")), "'error' is NaN"),
    Bad(feedback(error="large"), "'error' is a string"),
)

MOODS = {
    "raises": "ArithmeticError: thirteen brings bad luck",
    "hangs": "timeout of 1000 ms",
    "crashes": "3",
    "exits": "SystemExit",
    "returns-nan": "nan",
    "returns-nothing": "None",
    "returns-too-much": "max_value_bytes",
}
"""Key to a part of the reason."""


class Sender:
    """Sends records in turn to the partitions of the table's topics, and knows where they went."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._turn = 0
        self.bad: dict[tuple[str, int, int], Bad] = {}

    def good_round(self, value: float) -> None:
        """One event of each good key."""
        for key in GOOD_KEYS:
            self._turn += 1
            record = event(key=key, ts=NOW_MS + self._turn, value=value)
            self._job.topics.send(self._job.events_topic, record, key.encode())

    def mood(self, key: str, value: float) -> None:
        """One event of a key on which the function misbehaves."""
        self._turn += 1
        record = event(key=key, ts=NOW_MS + self._turn, value=value)
        self._job.topics.send(self._job.events_topic, record, key.encode())

    def send_bad(self, topic: str, bad: Bad) -> None:
        """A bad record, with a Kafka key that must be told."""

        def delivered(error: object, message: Any) -> None:
            assert error is None, error
            self.bad[message.topic(), message.partition(), message.offset()] = bad

        self._turn += 1
        self._job.topics.send(
            topic, bad.value, b"kafka key", self._turn % 2, on_delivery=delivered, **bad.more
        )


def test_bad_input_costs_itself_only(stack: Stack, tmp_path: Path) -> None:
    file = tmp_path / "dead_letters.py"
    file.write_text(DEFINITION, encoding="utf-8")
    job = Job(stack, file)
    job.create_topics(inputs=2)
    sender = Sender(job)
    with running(job):
        send_all(job, sender)
        expected = len(BAD_EVENTS) + len(BAD_FEEDBACK) + len(MOODS)
        eventually(lambda: len(job.dead_letters()) >= expected, f"{expected} dead letters")
        sender.good_round(7.0)
        sender.mood("raises", 8.0)
        sender.mood(LIMITED, 9.0)
        job.topics.flush()
        eventually(lambda: assert_values(job), "good keys have the values of their windows")

        letters = job.dead_letters()
        assert_bad_records(sender, [x for x in letters if x["stage"] in ("EVENT", "FEEDBACK")])
        assert_moods([x for x in letters if x["stage"] in ("FUNCTION", "STORE")])
        assert len(letters) == expected
        assert job.store.keys() == {*GOOD_KEYS, "raises", LIMITED}
        assert job.restarts == 0
        assert job.is_running()
        eventually(lambda: job.metric("deadLetters") == expected, "the metric", deadline_s=30)
        # Once, or once more if one of the others ended the process in between.
        assert job.metric("updatesRateLimited") >= 1


def send_all(job: Job, sender: Sender) -> None:
    """Bad input, with good input before, between and after."""
    sender.good_round(1.0)
    for bad in BAD_EVENTS:
        sender.send_bad(job.events_topic, bad)
    sender.good_round(2.0)
    for bad in BAD_FEEDBACK:
        sender.send_bad(job.feedback_topic, bad)
    for key in MOODS:
        sender.mood(key, 13.0)
        sender.good_round(3.0)
    job.topics.flush()


def assert_values(job: Job) -> bool:
    """Each good key holds the newest value and a full window; the others have recovered."""
    stored = job.store.get_many([*GOOD_KEYS, "raises", LIMITED])
    values = {key: value.payload for key, value in stored.items()}
    good = packed([7.0, 3.0])[1]
    recovered = {"raises": packed([8.0, 2.0])[1], LIMITED: packed([9.0, 1.0])[1]}
    assert values == dict.fromkeys(GOOD_KEYS, good) | recovered
    return True


def assert_bad_records(sender: Sender, letters: list[dict[str, Any]]) -> None:
    """One letter for each, with its reason, place and bytes."""
    places = [(x["topic"], x["partition"], x["offset"]) for x in letters]
    assert sorted(places) == sorted(sender.bad), "one letter for each bad record"
    for place, letter in zip(places, letters, strict=True):
        bad = sender.bad[place]
        assert bad.reason in letter["reason"], letter["reason"]
        for part in (f"topic {place[0]}", f"partition {place[1]}", f"offset {place[2]}"):
            assert part in letter["reason"]
        assert letter["key"] == b"kafka key"
        assert letter["value"] == bad.value
        assert letter["table"] == "dead_letters"
        assert letter["stage"] == ("EVENT" if place[0].startswith("events") else "FEEDBACK")


def assert_moods(letters: list[dict[str, Any]]) -> None:
    """One letter for each key on which the function failed, and what the function said."""
    assert sorted(x["key"].decode() for x in letters) == sorted(MOODS)
    for letter in letters:
        key = letter["key"].decode()
        assert MOODS[key] in letter["reason"], letter["reason"]
        assert f"'{key}'" in letter["reason"]
        assert letter["event_time"] > NOW_MS
        assert letter["stage"] == ("STORE" if key == "returns-too-much" else "FUNCTION")
    raised = next(x for x in letters if x["key"] == b"raises")
    assert "thirteen brings bad luck" in raised["stack"]
    assert "in compute" in raised["stack"]


def test_the_reasons_tell_the_cases_apart() -> None:
    """The table of bad records has no two that are the same."""

    def shapes() -> Iterator[object]:
        for bad in (*BAD_EVENTS, *BAD_FEEDBACK):
            yield bad.value, tuple(bad.more)

    assert len(set(shapes())) == len(BAD_EVENTS) + len(BAD_FEEDBACK)
