"""A table that is dropped is deleted in every region, and stays so.

Goal: `freshet drop` deletes each key of a table by a versioned tombstone, at home and in all
regions that serve it, those included that were cut off meanwhile.

Method: change events stand in the changes topic as a feature job would have written them; one
region is cut off while the table is dropped.

Fails when: a key is left in any region, has another version there than at home, the table is still
known, or a second drop does not say so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from freshet.store.connection import connect
from freshet.store.registry import register_table
from freshet.table import load_table
from freshet.wan.faults import fired
from freshet.wan.scenario import Fault, Kind
from tests.integration.multicast.changes import TABLE, Changes, tombstone, wait_until_equal
from tests.integration.store import Store
from tests.integration.wide_area import DESTINATIONS, FAR, HOME, WideArea

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def drop(area: WideArea) -> subprocess.CompletedProcess[str]:
    """Runs the command as an operator at home does."""
    file = area.folder / "home.yaml"
    area.config(HOME).write(file)
    return subprocess.run(
        [sys.executable, "-m", "freshet.cli.main", "drop", TABLE, "--yes", "--json"],
        env={**os.environ, "FRESHET_CONFIG": str(file)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_dropping_a_table_deletes_it_everywhere(area: WideArea, changes: Changes) -> None:
    changes.write(500)
    redis = connect(area.config(HOME))
    register_table(redis, load_table(area.folder / f"{TABLE}.py"))
    deleted_before = len(changes.deleted)
    with fired(area.regions, Fault(Kind.CUT, region=FAR)) as cut:
        dropped = drop(area)
    assert cut.connections_reset
    assert dropped.returncode == 0, dropped.stderr
    assert json.loads(dropped.stdout) == {
        "table": TABLE,
        "keys": len(changes.newest),
        "deleted_before": deleted_before,
    }

    home = Store(area.regions[HOME].redis.url, TABLE)
    for key, before in dict(changes.newest).items():
        version = tombstone(home, key)
        assert version is not None
        assert version > before.version
        changes.was_deleted(key, version)
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)

    again = drop(area)
    assert again.returncode == 1
    assert f"no table '{TABLE}' is known" in again.stderr
    redis.close()
