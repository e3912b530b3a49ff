"""``freshet region``: keep tables in a region, or pass them on."""

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
from freshet.submission import RUNNING_DEADLINE_S, submit_region


def command(
    files: TablesArgument,
    parallelism: ParallelismOption = 1,
    from_savepoint: SavepointOption = None,
    timeout: TimeoutOption = RUNNING_DEADLINE_S,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the job of the configuration's region: keep tables there, or pass them on."""
    config = Config.load(config_file, overrides=overrides or ())
    note(f"Serving {', '.join(map(str, files))} in {config.region} ...")
    submission = submit_region(
        files,
        config,
        stack=embedded_stack(config),
        parallelism=parallelism,
        savepoint=from_savepoint,
        running_deadline_s=timeout,
    )
    emit_submission(submission, {"tables": submission.tables}, as_json=as_json)
