"""``freshet feedback``: tell how well a feature predicted."""

from __future__ import annotations

from typing import Annotated

import typer

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
    ts: Annotated[int | None, typer.Option(help="Event time, epoch milliseconds.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    region: Annotated[
        str | None, typer.Option(help="Region of the model; home if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how well a feature predicted, so that the table knows what its staleness costs."""
    with Client(Config.load(), region) as client:
        try:
            client.feedback(table, key, version, error, ts=ts, model=model)
        except ValueError as e:
            raise FreshetError(str(e)) from e
        client.flush()
    sent = {"table": table, "key": key, "version": version, "error": error, "ts": ts}
    emit(sent, f"Feedback for {key} of {table} sent.", as_json=as_json)
