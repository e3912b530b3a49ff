"""Keeps the present schemas as those of a release, so that later ones go on reading what it wrote.

::

    python -m tests.releases.freeze_schemas [--unreleased]

Afterwards the release is named in ``SchemaHistory.java``; a test says so if it is not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from freshet import __version__
from freshet.avro import SCHEMA_NAMES
from freshet.resources import schema_path
from freshet.stack.layout import CHECKOUT

HISTORY = CHECKOUT / "schemas" / "history"


def freeze(history: Path, release: str, *, is_unreleased: bool = False) -> None:
    """Copies the present schemas into a release's folder.

    Args:
        history: the folder of all releases.
        release: its number.
        is_unreleased: whether what stands there may be replaced.

    Raises:
        SystemExit: the release has other schemas.
    """
    folder = history / release
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCHEMA_NAMES:
        source, target = schema_path(name), folder / f"{name}.avsc"
        text = source.read_bytes()
        if not is_unreleased and target.exists() and target.read_bytes() != text:
            raise SystemExit(
                f"release {release} has another {name}; raise the version in pyproject.toml and"
                " freshet/__init__.py, or say --unreleased if nobody has it yet"
            )
        target.write_bytes(text)
        print(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--unreleased", action="store_true", help="replace what stands there: nobody has it yet"
    )
    freeze(HISTORY, __version__, is_unreleased=parser.parse_args().unreleased)
