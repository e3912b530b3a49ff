"""Where regions are: those of the large clouds, and those that profiles add."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from freshet.errors import ConfigError, FreshetError
from freshet.files import is_url
from freshet.replay import read_bytes
from freshet.resources import table_path

FILE = "locations.csv"
COLUMNS = ("region", "latitude", "longitude")
_ZONE = re.compile(r"-[a-z]$")


class Place(NamedTuple):
    """Where a region is, in degrees."""

    latitude: float
    """North of the equator; negative for south."""

    longitude: float
    """East of Greenwich; negative for west."""


def load_places(folder: str) -> Mapping[str, Place]:
    """Places of regions: those that ship, and those of ``locations.csv`` if the folder has one.

    Args:
        folder: of profiles: a path, or a URL that smart-open reads.

    Raises:
        ConfigError: a place is wrong; holds every problem.
    """
    places = _read(table_path("regions.csv").read_text(), "regions.csv")
    text = _text_of(f"{folder.rstrip('/')}/{FILE}")
    return places if text is None else {**places, **_read(text, f"{folder.rstrip('/')}/{FILE}")}


def _text_of(location: str) -> str | None:
    """Content of an optional file; None if there is none."""
    if not is_url(location) and not Path(location).exists():
        return None
    try:
        return read_bytes(location).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FreshetError(f"{location} is no text: {error}; save it as UTF-8") from error
    except FreshetError:
        if is_url(location):  # stores tell in many ways that there is no such file
            return None
        raise


def _read(text: str, location: str) -> dict[str, Place]:
    reader = csv.DictReader(io.StringIO(text))
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise ConfigError(
            [f"{location} has no column {', '.join(missing)}; it needs {','.join(COLUMNS)}"],
            "locations",
        )
    places, problems = dict[str, Place](), list[str]()
    for number, row in enumerate(reader, start=2):
        place = Place(_degrees(row["latitude"]), _degrees(row["longitude"]))
        if not (abs(place.latitude) <= 90 and abs(place.longitude) <= 180):
            problems.append(
                f"{location}, line {number}: latitude must be from -90 to 90 and longitude from "
                f"-180 to 180, not {row['latitude']!r} and {row['longitude']!r}"
            )
        places[row["region"] or ""] = place
    if problems:
        raise ConfigError(problems, "locations")
    return places


def _degrees(text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        return math.nan


def place_of(region: str, places: Mapping[str, Place]) -> Place | None:
    """Where a region is; a zone, such as ``gcp:us-east1-b``, is where its region is."""
    return places.get(region) or places.get(_ZONE.sub("", region))
