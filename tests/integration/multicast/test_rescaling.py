"""Jobs are stopped with a savepoint while changes flow, and go on with another parallelism.

Goal: what is on its way at that time, in backlogs, under way or being applied, is in the savepoint,
and every subtask finds its part of it again.

Method: a thread writes changes and deletes all the time. The multicast job is stopped with a
savepoint, and resumed from it with two subtasks.

Fails when: a job does not start from its savepoint, a destination does not become equal, or a
version goes back at a reader.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.integration.multicast.changes import Changes, wait_until_equal
from tests.integration.multicast.conftest import watching
from tests.integration.multicast.flow import flowing
from tests.integration.polling import eventually
from tests.integration.wide_area import DESTINATIONS, HOME, WideArea

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def rescale(area: WideArea, regions: Iterable[str], parallelism: int) -> None:
    """Stops jobs, and resumes them with so many subtasks."""
    savepoints = area.stop(regions)
    area.resume(savepoints, parallelism)
    for region, savepoint in savepoints.items():
        restored = area.restored(region)
        assert restored["is_savepoint"], restored
        assert Path(restored["external_path"]).name == Path(savepoint).name, restored
        assert area.flink.flink.rest.job(area.jobs[region]).parallelism == parallelism


def test_the_multicast_job_resumes_with_twice_the_subtasks(
    area: WideArea, changes: Changes
) -> None:
    with watching(area):
        with flowing(changes) as flow:
            rescale(area, [HOME], 2)
            before = flow.written
            eventually(lambda: flow.written > before + 100 and flow.deleted, "changes flow")
        for region in DESTINATIONS:
            wait_until_equal(area, changes, region)
