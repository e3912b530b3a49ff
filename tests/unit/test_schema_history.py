"""Goal: Python reads what any release wrote, and each release's schemas and state are kept.

That changes of a schema are compatible is tested in Java, with Avro's own rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet import __version__, avro
from freshet.avro import AvroError
from freshet.resources import earlier_schema_paths, schema_path
from freshet.stack.layout import CHECKOUT
from tests.releases.freeze_schemas import HISTORY, freeze


@pytest.fixture
def earlier_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A release that had no ``writes`` in Progress, and one more field."""
    schema = json.loads(schema_path("Progress").read_text(encoding="utf-8"))
    schema["fields"] = [f for f in schema["fields"] if f["name"] != "writes"]
    schema["fields"].insert(0, {"name": "gone", "type": "string", "default": ""})
    file = tmp_path / "Progress.avsc"
    file.write_text(json.dumps(schema), encoding="utf-8")
    monkeypatch.setattr(
        avro, "earlier_schema_paths", lambda name: [file] if name == "Progress" else []
    )
    avro._writers.cache_clear()
    yield
    avro._writers.cache_clear()


# ("x", home, "t", 3 of 4 subtasks, and two times), as the schema above writes it.
_FIELDS = {
    "region": "local:home",
    "table": "t",
    "subtask": 3,
    "parallelism": 4,
    "watermark": 5,
    "reported_at": 6,
}


@pytest.mark.usefixtures("earlier_release")
def test_what_an_earlier_release_wrote_is_read_as_the_present_has_it() -> None:
    (earlier,) = (f for f, writer in avro._writers().items() if not writer.is_present)
    body = b"\x02x" + b"\x14local:home" + b"\x02t" + bytes([6, 8, 10, 12])
    assert avro.decode(avro.MAGIC + earlier + body) == ("Progress", {**_FIELDS, "writes": 0})
    with pytest.raises(AvroError, match="a Progress of 28 bytes is damaged"):
        avro.decode((avro.MAGIC + earlier + body)[:-1])
    present = avro.encode("Progress", {**_FIELDS, "writes": 9})
    assert avro.decode(present) == ("Progress", {**_FIELDS, "writes": 9})


def test_a_schema_of_no_release_is_refused() -> None:
    with pytest.raises(AvroError, match="no schema has the fingerprint 00112233"):
        avro.decode(avro.MAGIC + bytes.fromhex("0011223344556677"))


def test_every_release_has_its_schemas_kept() -> None:
    assert (HISTORY / __version__).is_dir(), "run: python -m tests.releases.freeze_schemas"
    for name in avro.SCHEMA_NAMES:
        assert HISTORY / __version__ / f"{name}.avsc" in {
            path.resolve() for path in earlier_schema_paths(name)
        }


@pytest.mark.parametrize("kind", ["savepoints", "operator-states"])
def test_every_release_has_its_state_kept(kind: str) -> None:
    folder = CHECKOUT / "tests" / "data" / kind / __version__
    assert folder.is_dir(), "see docs/upgrading.md on how it is made"


def test_freezing_copies_every_schema_and_never_changes_a_released_one(tmp_path: Path) -> None:
    freeze(tmp_path, "9.9.9")
    names = {file.stem for file in (tmp_path / "9.9.9").iterdir()}
    assert names == set(avro.SCHEMA_NAMES)
    changed = tmp_path / "9.9.9" / "Progress.avsc"
    changed.write_text("{}", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"9\.9\.9 has another Progress"):
        freeze(tmp_path, "9.9.9")
    freeze(tmp_path, "9.9.9", is_unreleased=True)
    assert changed.read_bytes() == schema_path("Progress").read_bytes()
