"""Options and output of the commands that submit jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from freshet.cli.output import emit
from freshet.submission import Submission

TablesArgument = Annotated[
    list[Path], typer.Argument(help="Table definitions, .py or .yaml.", show_default=False)
]
ParallelismOption = Annotated[int, typer.Option(min=1, help="Subtasks.")]
SavepointOption = Annotated[
    str | None, typer.Option("--from-savepoint", "-s", help="Savepoint to start from.")
]
TimeoutOption = Annotated[float, typer.Option(min=1, help="Seconds until the job must run.")]


def emit_submission(submission: Submission, more: dict[str, Any], *, as_json: bool) -> None:
    """Prints what runs now.

    Args:
        submission: of one job.
        more: fields that the command's JSON has beside those of every submission.
        as_json: instead of a line to read.
    """
    job = submission.job
    emit(
        {
            **more,
            "job": job._asdict(),
            "topics_created": submission.topics_created,
            "log": str(submission.log),
        },
        f"Job {job.name} is {job.state} with {job.parallelism} subtask(s): {job.id}",
        as_json=as_json,
    )
