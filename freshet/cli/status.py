"""``freshet status``: what runs, where, and how the jobs are."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Column, Table

from freshet.cli.output import JsonOption, emit, note
from freshet.config import Config
from freshet.errors import FreshetError, StackError
from freshet.stack import Stack
from freshet.stack.flink_rest import FlinkRest


def command(
    plans: Annotated[
        bool, typer.Option("--plans", help="Show the plan in force of each table, too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show endpoints, process ids, jobs and how regions stand."""
    config = Config.load()
    status = describe(config, embedded_stack(config))
    rendered = render(status)
    if config.regions:
        status |= describe_regions(config)
        rendered += render_regions(status["regions"])
        rendered += render_plans(status["plans"]) if plans else []
    emit(status, *rendered, as_json=as_json)


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


def describe_regions(config: Config) -> dict[str, Any]:
    """How regions stand, and the plans in force; empty, with a note, where they cannot be had."""
    from freshet.multicast.standing import plans_in_force, read_reports, standings

    try:
        heard = read_reports(config)
    except FreshetError as error:
        note(str(error))
        return {"regions": [], "plans": {}}
    known = standings(heard, _usd_per_gb(config), time.time_ns() // 1_000_000)
    return {"regions": [each.to_dict() for each in known], "plans": plans_in_force(heard)}


def _usd_per_gb(config: Config) -> dict[tuple[str, str], float] | None:
    from freshet.multicast.building import deployment_network

    try:
        network = deployment_network(config)
    except FreshetError:
        return None  # the regions have no prices, which only planning needs
    prices = network.price_usd_per_gb
    return {
        (u, v): float(prices[i, j])
        for i, u in enumerate(network.regions)
        for j, v in enumerate(network.regions)
    }


def render_regions(regions: list[dict[str, Any]]) -> list[RenderableType]:
    """How regions stand, for people."""
    if not regions:
        return ["No region has reported."]
    names = ("fresh p50", "p99", "late", "backlog", "sent", "dollars", "heard")
    columns = [Column(name, justify="right", no_wrap=True) for name in names]
    table = Table(Column("region", overflow="fold"), "table", *columns, box=None)
    for region in regions:
        kind = "" if region["keeps"] else " (waypoint)"
        away = ", away" if region["detached"] else ""
        table.add_row(
            f"{region['region']}{kind}",
            region["table"],
            _ms(region["freshness_p50_ms"]),
            _ms(region["freshness_p99_ms"]),
            str(region["late"]),
            f"{region['backlog_keys']} keys{', due' if region['behind'] else ''}",
            f"{region['wire_bytes'] / 1e6:.3f} MB",
            "-" if region["usd"] is None else f"${region['usd']:.4f}",
            f"{region['heard_ago_s']:.0f} s ago{away}",
        )
    return [table]


def render_plans(plans: dict[str, dict[str, Any]]) -> list[RenderableType]:
    """Plans in force, for people: each tree by its links."""
    if not plans:
        return ["No plan is in force."]
    shown: list[RenderableType] = []
    for name, plan in sorted(plans.items()):
        shown.append(f"Plan {plan['number']} of {name}: {plan['note']}")
        for stripe in plan["stripes"]:
            links = ", ".join(f"{u} -> {v}" for u, v in stripe["edges"]) or "nowhere"
            shown.append(f"  {stripe['fraction']:.0%}: {links}")
        if plan["detached"]:
            shown.append(f"  directly: {', '.join(plan['detached'])}")
    return shown


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"


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
