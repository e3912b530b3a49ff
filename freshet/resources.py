"""Finds the files that ship with the package.

Those that Python shares with the Java side, Avro schemas and the Redis script, are links in
``freshet/_data`` to their only copies in the checkout; a built package has their contents there.
"""

from __future__ import annotations

from pathlib import Path

_DATA_DIR = Path(__file__).resolve().parent / "_data"


def schema_path(name: str) -> Path:
    """Path of an Avro schema, such as ``FeatureChange``."""
    return _existing(_DATA_DIR / "schemas" / f"{name}.avsc")


def earlier_schema_paths(name: str) -> list[Path]:
    """Paths of an Avro schema as the releases had it."""
    return sorted((_DATA_DIR / "schemas" / "history").glob(f"*/{name}.avsc"))


def script_path(name: str) -> Path:
    """Path of a script that runs inside Redis, such as ``write_if_newer.lua``."""
    return _existing(_DATA_DIR / name)


def table_path(name: str) -> Path:
    """Path of a table, such as ``regions.csv``."""
    return _existing(_DATA_DIR / name)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing from this installation; reinstall freshet")
    return path
