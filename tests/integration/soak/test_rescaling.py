"""All jobs are stopped with a savepoint on RocksDB while changes flow, and rescaled, twice.

Goal: as in ``multicast/test_rescaling.py``, for the destinations' jobs and several tables, too, and
with state that is not on the heap.

Method: threads write changes and deletes of two tables all the time. The multicast job and the
destinations' jobs are resumed with one subtask, and then with two again. The deployment has the
machine for itself: two at a time are too much for two cores.

Fails when: a job does not start from its savepoint, a destination does not become equal, a version
goes back at a reader, or the state is on the heap after all.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.integration.multicast.changes import NEARBY, Changes, wait_until_equal
from tests.integration.multicast.conftest import deployed, watching
from tests.integration.multicast.flow import flowing
from tests.integration.multicast.test_rescaling import rescale
from tests.integration.polling import eventually
from tests.integration.wide_area import DESTINATIONS, FLINK, HOME, NEAR

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(900)]


def test_all_jobs_are_rescaled_twice_on_rocksdb(tmp_path: Path) -> None:
    flink = dataclasses.replace(FLINK, state_backend="rocksdb")
    with deployed(tmp_path, flink, parallelism=2) as area, watching(area):
        changes, nearby = Changes(area), Changes(area, NEARBY)
        for parallelism in (1, 2):
            with flowing(changes) as flow, flowing(nearby):
                rescale(area, (HOME, *DESTINATIONS), parallelism)
                before = flow.written
                eventually(lambda b=before: flow.written > b + 100, "changes flow")  # type: ignore[misc]
            assert flow.deleted
            wait_until_equal(area, nearby, NEAR)
            for region in DESTINATIONS:
                wait_until_equal(area, changes, region)
        for job in area.jobs.values():
            settings = area.flink.flink.rest.get(f"/jobs/{job}/checkpoints/config")
            assert "RocksDB" in settings["state_backend"], settings
