"""``freshet get``: read features of a table."""

from __future__ import annotations

import base64
import json
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, emit
from freshet.client import Client, Feature, KeptVersions
from freshet.config import Config
from freshet.durations import format_duration

_SHOWN_NUMBERS = 4
_SHOWN_CHARACTERS = 60


def command(
    table: Annotated[str, typer.Argument(help="Name of the feature table.", show_default=False)],
    keys: Annotated[list[str], typer.Argument(help="Entity keys.", show_default=False)],
    region: Annotated[
        str | None, typer.Option(help="Region whose online store is read; home if not given.")
    ] = None,
    all_versions: Annotated[
        bool,
        typer.Option(
            "--all-versions",
            help="Every version that the store keeps of a key (keep_versions), newest first.",
        ),
    ] = False,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read features from a region's online store."""
    with Client(Config.load(config_file, overrides=overrides or ()), region) as client:
        features = (
            _every_version(client.get_versions(table, keys))
            if all_versions
            else list(client.get_many(table, keys))
        )
        found = {
            "table": table,
            "region": client.region,
            "features": [feature_to_json(feature) for feature in features],
        }
    emit(found, _rendered(features), as_json=as_json)


def _every_version(kept: KeptVersions) -> list[Feature]:
    """Key by key; a key that has none is there once, as missing."""
    newest, *older = kept.versions
    return [
        feature
        for row in zip(newest, *older, strict=True)
        for number, feature in enumerate(row)
        if number == 0 or feature.version is not None
    ]


def feature_to_json(feature: Feature) -> dict[str, Any]:
    """A feature as JSON types; its version in the form that feedback takes."""
    return {
        "key": feature.key,
        "status": str(feature.status),
        "version": None if feature.version is None else str(feature.version),
        "event_time": feature.event_time,
        "computed_at": feature.computed_at,
        "staleness_ms": feature.staleness_ms,
        "value": _value_to_json(feature.value),
    }


def _value_to_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_value_to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: _value_to_json(item) for key, item in value.items()}
    return value


def _rendered(features: list[Feature]) -> Table:
    shown = Table("key", "status", "version", "staleness", "value")
    for feature in features:
        staleness = feature.staleness_ms
        shown.add_row(
            feature.key,
            str(feature.status),
            "-" if feature.version is None else str(feature.version),
            "-" if staleness is None else format_duration(staleness),
            _shortened(feature.value),
        )
    return shown


def _shortened(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, np.ndarray):
        numbers = [f"{number:g}" for number in value[:_SHOWN_NUMBERS]]
        if len(value) > _SHOWN_NUMBERS:
            numbers.append(f"... ({len(value)} numbers)")
        return "[" + ", ".join(numbers) + "]"
    text = json.dumps(_value_to_json(value), ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " ..."
