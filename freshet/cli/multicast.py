"""``freshet multicast``: send tables to the regions that serve them."""

from __future__ import annotations

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, note
from freshet.cli.status import embedded_stack
from freshet.cli.submitting import (
    ParallelismOption,
    SavepointOption,
    TablesArgument,
    TimeoutOption,
    emit_submission,
)
from freshet.config import Config
from freshet.submission import RUNNING_DEADLINE_S, submit_multicast


def command(
    files: TablesArgument,
    parallelism: ParallelismOption = 1,
    from_savepoint: SavepointOption = None,
    timeout: TimeoutOption = RUNNING_DEADLINE_S,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the job that sends tables from the home region to the regions that serve them."""
    config = Config.load(config_file, overrides=overrides or ())
    note(f"Sending {', '.join(map(str, files))} ...")
    submission = submit_multicast(
        files,
        config,
        stack=embedded_stack(config),
        parallelism=parallelism,
        savepoint=from_savepoint,
        running_deadline_s=timeout,
    )
    for warning in submission.warnings:
        note(f"{warning}; its inbox is made when its region job is submitted")
    more = {"tables": submission.tables, "warnings": list(submission.warnings)}
    emit_submission(submission, more, as_json=as_json)
