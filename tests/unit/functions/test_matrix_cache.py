"""Goal: a cached matrix is what was stored or missing, never something else and never an error."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshet.functions import matrix_cache
from freshet.functions.matrix_cache import load_matrix, store_matrix

IDENTITY: dict[str, str | int] = {"what": "test", "format": 1}
MATRIX = np.arange(6.0).reshape(2, 3) / 7


def stored_file(folder: Path) -> Path:
    store_matrix("m", IDENTITY, MATRIX)
    (path,) = (folder / "matrices").iterdir()
    return path


def test_what_is_stored_is_loaded(cache_folder: Path) -> None:
    assert load_matrix("m", IDENTITY, (2, 3)) is None
    stored_file(cache_folder)
    loaded = load_matrix("m", IDENTITY, (2, 3))
    assert loaded is not None
    assert loaded.tobytes() == MATRIX.tobytes()
    assert loaded.flags.writeable and loaded.dtype == np.float64
    assert load_matrix("m", {**IDENTITY, "format": 2}, (2, 3)) is None


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_is_loaded(cache_folder: Path, data: st.DataObject) -> None:
    path = stored_file(cache_folder)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    path.write_bytes(content)
    assert load_matrix("m", IDENTITY, (2, 3)) is None
    store_matrix("m", IDENTITY, MATRIX)
    assert load_matrix("m", IDENTITY, (2, 3)) is not None


def test_a_file_of_another_identity_or_shape_is_not_loaded(cache_folder: Path) -> None:
    path = stored_file(cache_folder)
    assert load_matrix("m", IDENTITY, (3, 2)) is None
    path.rename(matrix_cache._path("m", {"what": "other"}))
    assert load_matrix("m", {"what": "other"}, (2, 3)) is None


def test_a_folder_that_can_not_be_used_is_no_error(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = cache_folder / "file"
    in_the_way.touch()
    monkeypatch.setenv("FRESHET_CACHE_DIR", str(in_the_way))
    store_matrix("m", IDENTITY, MATRIX)
    assert "set FRESHET_CACHE_DIR" in caplog.text
    assert load_matrix("m", IDENTITY, (2, 3)) is None


def test_a_write_that_fails_leaves_nothing(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", fail)
    store_matrix("m", IDENTITY, MATRIX)
    assert not list((cache_folder / "matrices").iterdir())


def test_the_files_used_longest_ago_make_room(cache_folder: Path) -> None:
    for place in range(4):
        store_matrix(f"m{place}", IDENTITY, MATRIX)
        os.utime(matrix_cache._path(f"m{place}", IDENTITY), (place, place))
    load_matrix("m0", IDENTITY, (2, 3))  # used just now
    folder = cache_folder / "matrices"
    size = next(folder.iterdir()).stat().st_size
    matrix_cache._remove_oldest(folder, 2 * size)
    assert sorted(path.name[:2] for path in folder.iterdir()) == ["m0", "m3"]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("FRESHET_CACHE_DIR", "/own")
    assert matrix_cache.cache_folder() == Path("/own")
    monkeypatch.delenv("FRESHET_CACHE_DIR")
    assert matrix_cache.cache_folder() == Path("/xdg/freshet")
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert matrix_cache.cache_folder() == tmp_path / ".cache" / "freshet"
