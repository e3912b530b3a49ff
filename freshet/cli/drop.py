"""``freshet drop``: remove a table everywhere."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, emit, note
from freshet.config import Config
from freshet.removal import drop_table


def command(
    table: Annotated[str, typer.Argument(help="Name of the feature table.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    job_has_ended: Annotated[
        bool,
        typer.Option(
            "--job-has-ended",
            help="Do not ask Flink whether the table's feature job has ended; you know that it has."
            " For where each job has a Flink of its own, as on Kubernetes.",
        ),
    ] = False,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete every key of a table, in all regions; its feature job must have ended.

    Regions get the deletes from the multicast job, those that are away when they are back. The
    table's topics stay.
    """
    if not yes:
        typer.confirm(f"Delete every key of table {table} in all regions?", abort=True, err=True)
    config = Config.load(config_file, overrides=overrides or ())
    note(f"Dropping {table} ...")
    removal = drop_table(config, table, job_has_ended=job_has_ended)
    emit(
        asdict(removal),
        f"Deleted {removal.keys:,} keys of {table}; {removal.deleted_before:,} were deleted before",
        as_json=as_json,
    )
