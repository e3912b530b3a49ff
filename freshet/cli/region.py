"""``freshet region``: keep tables in a region, or pass them on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshet.cli.output import JsonOption, emit, note
from freshet.cli.status import embedded_stack
from freshet.config import Config
from freshet.submission import RUNNING_DEADLINE_S, submit_region


def command(
    files: Annotated[
        list[Path], typer.Argument(help="Table definitions, .py or .yaml.", show_default=False)
    ],
    parallelism: Annotated[int, typer.Option(min=1, help="Subtasks.")] = 1,
    from_savepoint: Annotated[
        str | None, typer.Option("--from-savepoint", "-s", help="Savepoint to start from.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds until the job must run.")
    ] = RUNNING_DEADLINE_S,
    as_json: JsonOption = False,
) -> None:
    """Run the job of the configuration's region: keep tables there, or pass them on."""
    config = Config.load()
    note(f"Serving {', '.join(map(str, files))} in {config.region} ...")
    submission = submit_region(
        files,
        config,
        stack=embedded_stack(config),
        parallelism=parallelism,
        savepoint=from_savepoint,
        running_deadline_s=timeout,
    )
    job = submission.job
    emit(
        {
            "tables": submission.table.split("+"),
            "job": job._asdict(),
            "topics_created": submission.topics_created,
            "log": str(submission.log),
        },
        f"Job {job.name} is {job.state} with {job.parallelism} subtask(s): {job.id}",
        as_json=as_json,
    )
