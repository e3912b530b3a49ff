"""One deployment over several regions for all tests here, which leave it whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.multicast.changes import TABLE, Changes
from tests.integration.tables import write_definition
from tests.integration.wide_area import FAR, HOME, NEAR, WideArea, wide_area

REGIONS = f"({HOME!r}, {NEAR!r}, {FAR!r})"


@pytest.fixture(scope="package")
def area(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WideArea]:
    """The deployment, with its four jobs running."""
    folder = tmp_path_factory.mktemp("wide-area")
    with wide_area(folder) as running:
        file = write_definition(
            folder, TABLE, window="Points(4)", regions=REGIONS, freshness_slo="'1s'"
        )
        running.submit(file)
        yield running


@pytest.fixture(scope="package")
def changes(area: WideArea) -> Changes:
    """Writes to the table's changes."""
    return Changes(area)
