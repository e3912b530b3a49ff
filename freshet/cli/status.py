"""``freshet status``: what runs, where, and how the jobs are."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.table import Column, Table

from freshet.cli.output import JsonOption, emit
from freshet.config import Config
from freshet.errors import StackError
from freshet.stack import Stack
from freshet.stack.flink_rest import FlinkRest


def command(as_json: JsonOption = False) -> None:
    """Show endpoints, process ids and jobs."""
    config = Config.load()
    status = describe(config, embedded_stack(config))
    emit(status, *render(status), as_json=as_json)


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
    """Endpoints, process ids (null for servers that are not ours, or down) and jobs."""
    return {
        "kafka": {
            "bootstrap": config.kafka_bootstrap,
            "pid": None if stack is None else stack.kafka.pid,
        },
        "redis": {
            region: {"url": url, "pid": None if stack is None else stack.redis[region].pid}
            for region, url in config.redis.items()
        },
        "flink": None if config.flink_rest is None else _flink(config.flink_rest, stack),
        "jobs": _jobs(config, stack),
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
    if not status["jobs"]:
        return [servers, "No jobs."]
    jobs = Table(
        Column("job", overflow="fold"),
        Column("id", no_wrap=True),
        Column("state", no_wrap=True),
        Column("subtasks", justify="right", no_wrap=True),
        Column("restarts", justify="right", no_wrap=True),
        box=None,
    )
    for job in status["jobs"]:
        jobs.add_row(
            job["name"], job["id"], job["state"], str(job["parallelism"]), str(job["restarts"])
        )
    return [servers, jobs]


def _flink(rest_url: str, stack: Stack | None) -> dict[str, Any]:
    if stack is None:
        workers = [{"id": name, "pid": None} for name in FlinkRest(rest_url).task_managers()]
        return {"rest": rest_url, "jobmanager": {"pid": None}, "taskmanagers": workers}
    job_manager = stack.flink.job_manager if stack.flink.is_managed() else None
    return {
        "rest": rest_url,
        "jobmanager": {"pid": None if job_manager is None else job_manager.pid},
        "taskmanagers": [
            {"id": name, "pid": process.pid if process.is_alive() else None}
            for name, process in stack.flink.task_managers.items()
        ],
    }


def _jobs(config: Config, stack: Stack | None) -> list[dict[str, Any]]:
    if config.flink_rest is None:
        return []
    # Without its JobManager a session cluster has no jobs; the missing process id says so.
    if stack is not None and not stack.flink.is_managed():
        return []
    return [job._asdict() for job in FlinkRest(config.flink_rest).jobs()]


def _pid(pid: int | None) -> str:
    return "-" if pid is None else str(pid)
