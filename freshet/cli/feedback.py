"""``freshet feedback``: tell how well a feature predicted."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, emit
from freshet.client import Client
from freshet.config import Config
from freshet.errors import FreshetError


def command(
    table: Annotated[str, typer.Argument(help="Name of the feature table.", show_default=False)],
    key: Annotated[str, typer.Argument(help="Entity key.", show_default=False)],
    version: Annotated[
        str,
        typer.Option(help="Version of the feature, as `freshet get` shows it.", show_default=False),
    ],
    error: Annotated[
        float | None,
        typer.Option(help="Prediction error, at least 0; leave out while the label is unknown."),
    ] = None,
    kept_error: Annotated[
        list[float] | None,
        typer.Option(
            help="Error with each kept version (keep_versions), newest first; may be repeated, "
            "'nan' where it is not known.",
            show_default=False,
        ),
    ] = None,
    ts: Annotated[int | None, typer.Option(help="Event time, epoch milliseconds.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    region: Annotated[
        str | None, typer.Option(help="Region of the model; home if not given.")
    ] = None,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how well a feature predicted, so that the table knows what its staleness costs."""
    with Client(Config.load(config_file, overrides=overrides or ()), region) as client:
        try:
            client.feedback(
                table, key, version, error, errors=kept_error or None, ts=ts, model=model
            )
        except ValueError as e:
            raise FreshetError(str(e)) from e
        client.flush()
    sent: dict[str, Any] = {
        "table": table,
        "key": key,
        "version": version,
        "error": error,
        "ts": ts,
    }
    if kept_error:
        sent["errors"] = [None if math.isnan(each) else each for each in kept_error]
    emit(sent, f"Feedback for {key} of {table} sent.", as_json=as_json)
