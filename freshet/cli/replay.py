"""``freshet replay``: produce recorded events into a table's topic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, emit
from freshet.config import Config
from freshet.durations import parse_duration_ms
from freshet.errors import FreshetError
from freshet.replay import EventReplayer, Recording, load_recording, parse_time_ms, replay
from freshet.store.connection import connect
from freshet.store.registry import registered_table
from freshet.table import load_table

FASTEST_STEP_MS = 3_600_000
"""Step of a replay that is as fast as possible, milliseconds of event time."""

PACED_STEP_S = 0.5
"""Step of a paced replay, seconds of wall time."""


def command(
    table: Annotated[str, typer.Argument(help="Name of the feature table.", show_default=False)],
    data: Annotated[
        str,
        typer.Option(
            help=".npz with values, ids and step_seconds, or .csv of series,timestamp,value; a path"
            " or a URL.",
            show_default=False,
        ),
    ],
    speed_up: Annotated[
        float,
        typer.Option(min=0, help="Seconds of event time in a second; 0: as fast as possible."),
    ] = 0.0,
    begin: Annotated[
        str | None,
        typer.Option("--from", help="First event time: epoch milliseconds or ISO 8601."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Event time to stop before: epoch milliseconds or ISO 8601.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Time of an .npz's first step; not given, its last step is now."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            help="Event time between heartbeats; a step's events leave together. Not given: 1h at"
            " full speed, else what takes half a second."
        ),
    ] = None,
    feedback_heartbeats: Annotated[
        bool, typer.Option(help="Heartbeats also in the table's topic of feedback.")
    ] = True,
    definition: Annotated[
        str | None,
        typer.Option(help="Table definition to take the field names from, not the store's."),
    ] = None,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Produce recorded events in order of their times, with heartbeats of event time."""
    config = Config.load(config_file, overrides=overrides or ())
    try:
        step_ms = _default_step_ms(speed_up) if step is None else parse_duration_ms(step)
        begin_ms, until_ms, start_ms = (
            None if text is None else parse_time_ms(text) for text in (begin, until, start)
        )
    except ValueError as e:
        raise FreshetError(str(e)) from e
    if step_ms == 0:
        raise FreshetError("--step must be longer than 0, such as 5m")
    facts = _definition(config, table, definition)
    recording = load_recording(data, kind=facts["source"]["kind"], start_ms=start_ms)
    recording = recording.between(begin_ms, until_ms)
    replayer = EventReplayer(
        config, facts, recording.ids, feedback_topics=None if feedback_heartbeats else ()
    )
    summary = _replay_with_progress(recording, replayer, step_ms, speed_up)
    emit(
        {"table": table, "topic": facts["source"]["topic"], **summary},
        f"{summary['events']} events of {summary['series']} series in {summary['seconds']:.1f} s.",
        as_json=as_json,
    )


def _default_step_ms(speed_up: float) -> int:
    return max(1, round(speed_up * PACED_STEP_S * 1000)) if speed_up > 0 else FASTEST_STEP_MS


def _definition(config: Config, table: str, file: str | None) -> dict[str, Any]:
    if file is not None:
        loaded = load_table(file)
        if loaded.name != table:
            raise FreshetError(f"{file} defines the table {loaded.name!r}, not {table!r}")
        return loaded.to_dict(topic_prefix=config.topic_prefix)
    with connect(config, config.home_region) as redis:
        found = registered_table(redis, table, store_prefix=config.store_prefix)
    if found is None:
        raise FreshetError(
            f"table {table!r} is not known in the store of {config.home_region}; submit it first, "
            "or name its definition with --definition"
        )
    return found


def _replay_with_progress(
    recording: Recording, replayer: EventReplayer, step_ms: int, speed_up: float
) -> dict[str, Any]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("events", total=len(recording))

        def show(events: int, end_ms: int) -> None:
            at = datetime.fromtimestamp(end_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
            progress.update(task, completed=events, description=at)

        summary = replay(recording, replayer, step_ms=step_ms, speed_up=speed_up, on_step=show)
    return summary.to_dict()
