"""``freshet submit``: run a table's feature job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, note
from freshet.cli.status import embedded_stack
from freshet.cli.submitting import SavepointOption, TimeoutOption, emit_submission
from freshet.config import Config
from freshet.submission import RUNNING_DEADLINE_S, submit_table
from freshet.topics import DEFAULT_PARTITIONS


def command(
    file: Annotated[
        Path, typer.Argument(help="Table definition, .py or .yaml.", show_default=False)
    ],
    parallelism: Annotated[
        int | None, typer.Option(min=1, help="Subtasks; the table's own when not given.")
    ] = None,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of the topics that are missing.")
    ] = DEFAULT_PARTITIONS,
    from_savepoint: SavepointOption = None,
    py_files: Annotated[
        list[Path] | None,
        typer.Option(help="Module or folder that the function imports; may be repeated."),
    ] = None,
    timeout: TimeoutOption = RUNNING_DEADLINE_S,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a table definition, create its topics and run its feature job."""
    config = Config.load(config_file, overrides=overrides or ())
    note(f"Submitting {file} ...")
    submission = submit_table(
        file,
        config,
        stack=embedded_stack(config),
        parallelism=parallelism,
        partitions=partitions,
        savepoint=from_savepoint,
        python_files=py_files or (),
        running_deadline_s=timeout,
    )
    emit_submission(submission, {"table": submission.tables[0]}, as_json=as_json)
