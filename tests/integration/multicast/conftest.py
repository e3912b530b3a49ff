"""One deployment over several regions for all tests here, which leave it whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet.stack import FlinkOptions
from tests.integration.multicast.changes import NEARBY, TABLE, WATCHED, Changes
from tests.integration.store import Store
from tests.integration.tables import write_definition
from tests.integration.watcher import VersionWatcher
from tests.integration.wide_area import DESTINATIONS, FLINK, HOME, NEAR, WideArea, wide_area


def write_definitions(folder: Path) -> list[Path]:
    """Definitions of the two tables that one multicast job sends."""
    regions = {TABLE: (HOME, *DESTINATIONS), NEARBY: (HOME, NEAR)}
    return [
        write_definition(
            folder, table, window="Points(4)", regions=repr(where), freshness_slo="'1s'"
        )
        for table, where in regions.items()
    ]


@contextlib.contextmanager
def deployed(folder: Path, flink: FlinkOptions = FLINK, parallelism: int = 1) -> Iterator[WideArea]:
    """A deployment with its five jobs running."""
    with wide_area(folder, flink) as running:
        running.submit(*write_definitions(folder), parallelism=parallelism)
        yield running


@contextlib.contextmanager
def watching(area: WideArea) -> Iterator[dict[str, VersionWatcher]]:
    """Readers of each destination; what they have seen is checked at the end."""
    with contextlib.ExitStack() as running:
        readers = {
            region: running.enter_context(
                VersionWatcher(Store(area.regions[region].redis.url, TABLE), WATCHED)
            )
            for region in DESTINATIONS
        }
        yield readers
    for region, reader in readers.items():
        assert reader.samples, region
        assert not reader.violations, (region, reader.violations[:3])


@pytest.fixture(scope="package")
def area(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WideArea]:
    """The deployment of all tests here but those that need one of their own."""
    with deployed(tmp_path_factory.mktemp("wide-area")) as running:
        yield running


@pytest.fixture(scope="package")
def changes(area: WideArea) -> Changes:
    """Writes to the changes of the table that every destination has."""
    return Changes(area, TABLE)


@pytest.fixture(scope="package")
def nearby(area: WideArea) -> Changes:
    """Writes to the changes of the table that only the near region has."""
    return Changes(area, NEARBY)


@pytest.fixture
def watchers(area: WideArea) -> Iterator[dict[str, VersionWatcher]]:
    """Readers of each destination while a test runs."""
    with watching(area) as readers:
        yield readers
