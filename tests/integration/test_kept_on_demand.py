"""A table that keeps several versions and computes on demand, from the job to the client.

Goal: a key is computed when someone reads it and not before, the reader gets the value of the
newest events, and the versions before it stay readable as they were.

Method: events of two keys. One is read again and again by a client whose clock is ahead, so that
every value is stale to it; the other is read at the end. Feedback tells the errors of all versions,
and a chooser serves.

Fails when: a key that nobody reads is computed, a read brings no newer value, a kept version has
another value than when it was the newest, or feedback does not reach the scheduler.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import freshet
from freshet.client import Client
from freshet.stack.stack import Stack
from tests.integration.job import Job, running
from tests.integration.polling import eventually
from tests.integration.topics import event_json
from tests.reference.model import Event

pytestmark = pytest.mark.integration

KEPT = 3
ROUNDS = 5
AHEAD_MS = 60_000

DEFINITION = f"""
from freshet import *


class Sum(FeatureFunction):
    def compute(self, window):
        return [window.values.sum(), len(window)]


table = FeatureTable(
    name="kept_on_demand",
    function=Sum(),
    window=Points(2),
    budget=TimeShare(0.9),
    keep_versions={KEPT},
    on_demand=OnDemand(max_staleness="1s", max_wait="500ms"),
)
"""


def now_ms() -> int:
    return int(time.time() * 1_000)


def test_versions_are_computed_on_demand_and_kept(stack: Stack, tmp_path: Path) -> None:
    file = tmp_path / "kept_on_demand.py"
    file.write_text(DEFINITION, encoding="utf-8")
    job = Job(stack, file)
    job.create_topics()
    chooser = freshet.VersionChooser()
    with (
        running(job),
        Client(stack.config, clock=lambda: now_ms() + AHEAD_MS) as client,
    ):
        sums = [read_round(job, client, number) for number in range(ROUNDS)]
        assert job.store.keys() == {"read"}, "nobody asked for the other"

        eventually(
            lambda: client.get(job.table.name, "unread").version, "the other, once it is asked for"
        )
        kept = client.get_versions(job.table.name, ["read", "unread"])
        assert [batch.values[0, 0] for batch in kept.versions] == sums[: -KEPT - 1 : -1]
        assert kept.newest.values[1, 0] == sums[-1]
        assert [batch.statuses[1] for batch in kept.versions[1:]] == ["MISSING"] * (KEPT - 1)
        read = {("read", batch.versions[0]) for batch in kept.versions}

        def all_are_told() -> bool:
            told = {(change.key, change.version) for change in job.changes()}
            return read <= told and len(told) == ROUNDS + 1

        eventually(all_are_told, "one change event for each read, and for each kept version")

        errors = [[3.0, 0.5], [1.0, float("nan")], [2.0, float("nan")]]
        chooser.observe(kept, errors)
        served = chooser.choose(kept)
        assert served.versions == [kept.versions[1].versions[0], kept.newest.versions[1]]
        client.feedback_many(
            job.table.name, kept.keys, kept.newest.versions, [1.0, 0.5], kept_errors=errors
        )
        eventually(lambda: job.metric("feedbackUsed") == 2, "feedback on the newest versions")
        assert job.dead_letters() == []


def read_round(job: Job, client: Client, number: int) -> float:
    """New events, and a read that brings what they make; gives it."""
    before = client.get(job.table.name, "read")
    for key in ("read", "unread"):
        event = Event(key, now_ms(), float(number + 1))
        job.topics.send(job.events_topic, event_json(event), key.encode())
    job.topics.flush()
    expected = float(2 * number + 1)

    # A demand that comes before its key's event is ignored, so reading may take a second try.
    def read() -> bool:
        after = client.get(job.table.name, "read")
        assert after.version != before.version
        assert after.value.tolist() == [expected, min(number + 1, 2.0)]
        return True

    eventually(read, f"the value of round {number}")
    return expected
