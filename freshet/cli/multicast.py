"""``freshet multicast``: send tables to the regions that serve them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshet.cli.output import JsonOption, emit, note
from freshet.cli.status import embedded_stack
from freshet.config import Config
from freshet.submission import RUNNING_DEADLINE_S, submit_multicast


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
    """Run the job that sends tables from the home region to the regions that serve them."""
    config = Config.load()
    note(f"Sending {', '.join(map(str, files))} ...")
    submission = submit_multicast(
        files,
        config,
        stack=embedded_stack(config),
        parallelism=parallelism,
        savepoint=from_savepoint,
        running_deadline_s=timeout,
    )
    job = submission.job
    for warning in submission.warnings:
        note(f"{warning}; its inbox is made when its region job is submitted")
    emit(
        {
            "tables": submission.table.split("+"),
            "job": job._asdict(),
            "topics_created": submission.topics_created,
            "log": str(submission.log),
            "warnings": list(submission.warnings),
        },
        f"Job {job.name} is {job.state} with {job.parallelism} subtask(s): {job.id}",
        as_json=as_json,
    )
