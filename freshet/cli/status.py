"""``freshet status``: what runs, where, and how tables, regions and jobs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Column, Table

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, emit, width
from freshet.config import Config
from freshet.errors import FreshetError, StackError
from freshet.secrets import mask_url
from freshet.stack import Stack
from freshet.stack.flink_rest import FlinkRest

if TYPE_CHECKING:
    from freshet.status.snapshot import Snapshot

PATIENCE_S = 15.0
"""How long servers have to answer: nobody sees what one has told before."""


def command(
    plans: Annotated[
        bool, typer.Option("--plans", help="Show links and the plan in force of each table, too.")
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            "--serve",
            metavar="[HOST:]PORT",
            help="Serve a web page that shows it instead, until interrupted; on this machine alone"
            " if no host is given. Port 0 is any free one.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two snapshots of --serve.")
    ] = 2.0,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show endpoints, process ids, tables, jobs and how regions stand.

    Exit code 1: a server does not answer; what the others tell is shown.
    """
    if serve is not None:
        from freshet.cli.serving import run_page

        run_page(serve, config_file, overrides or (), interval)
        return
    from freshet.status import terminal

    config = Config.load(config_file, overrides=overrides or ())
    stack = embedded_stack(config)
    snapshot = _snapshot(config)
    status = describe(config, stack) | snapshot.to_dict()
    rendered = [*render(status), *terminal.whole(snapshot, width())]
    if config.regions and not snapshot.regions:
        rendered.append("No region has reported.")
    rendered += terminal.plans(snapshot, width()) if plans else []
    emit(status, *rendered, as_json=as_json)
    for problem in snapshot.problems:
        typer.echo(f"freshet: {problem}", err=True)
    if snapshot.problems:
        raise typer.Exit(1)


def _snapshot(config: Config) -> Snapshot:
    # Imported late: other commands need none of this.
    from freshet.status.reader import StatusReader

    with StatusReader(config) as reader:
        return reader.snapshot(PATIENCE_S)


def embedded_stack(config: Config) -> Stack | None:
    """The embedded stack of this folder, when ``config`` is about it.

    Raises:
        StackError: it was started here but runs no more.
    """
    stack = Stack.attach()
    if stack is None or stack.config.kafka_bootstrap != config.kafka_bootstrap:
        return None
    if not stack.is_running():
        raise StackError(
            "the stack that was started here runs no more (was the machine restarted?); clear up"
            " with 'freshet down', then start it with 'freshet up'"
        )
    return stack


def describe(config: Config, stack: Stack | None) -> dict[str, Any]:
    """Endpoints and process ids, which are null for servers that are not ours, or down."""
    return {
        "kafka": {
            "bootstrap": config.kafka_bootstrap,
            "pid": None if stack is None else stack.kafka.pid,
        },
        "redis": {
            region: {
                "url": mask_url(url),
                "pid": None if stack is None else stack.redis[region].pid,
            }
            for region, url in config.redis.items()
        },
        "flink": None if config.flink_rest is None else _flink(config.flink_rest, stack),
    }


def render(status: dict[str, Any]) -> list[RenderableType]:
    """The same for people."""
    # Folded, not cut: what people copy from here must be whole.
    servers = Table("server", Column("address", overflow="fold"), "process")
    servers.add_row("Kafka", status["kafka"]["bootstrap"], _pid(status["kafka"]["pid"]))
    for region, redis in status["redis"].items():
        servers.add_row(f"Redis of {region}", redis["url"], _pid(redis["pid"]))
    flink = status["flink"]
    if flink is not None:
        servers.add_row("Flink JobManager", flink["rest"], _pid(flink["jobmanager"]["pid"]))
        for worker in flink["taskmanagers"]:
            servers.add_row("Flink TaskManager", worker["id"], _pid(worker["pid"]))
    return [servers]


def _flink(rest_url: str, stack: Stack | None) -> dict[str, Any]:
    if stack is None:
        workers = [{"id": name, "pid": None} for name in _task_managers(rest_url)]
        return {"rest": mask_url(rest_url), "jobmanager": {"pid": None}, "taskmanagers": workers}
    job_manager = stack.flink.job_manager if stack.flink.is_managed() else None
    return {
        "rest": rest_url,
        "jobmanager": {"pid": None if job_manager is None else job_manager.pid},
        "taskmanagers": [
            {"id": name, "pid": process.pid if process.is_alive() else None}
            for name, process in stack.flink.task_managers.items()
        ],
    }


def _task_managers(rest_url: str) -> list[str]:
    try:
        return FlinkRest(rest_url).task_managers()
    except FreshetError:
        return []  # the snapshot tells that Flink does not answer


def _pid(pid: int | None) -> str:
    return "-" if pid is None else str(pid)
