"""What the tests of feature functions share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet.functions import stl_linear


@pytest.fixture(autouse=True)
def cache_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A cache of the test's own, in memory and on disk."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("FRESHET_CACHE_DIR", str(folder))
    for remembered in (stl_linear._remembered, stl_linear._built, stl_linear._error_of_trial):
        remembered.cache_clear()
    yield folder
