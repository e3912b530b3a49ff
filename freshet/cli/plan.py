"""``freshet plan``: the cheapest way to bring data from one region to others in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from freshet.cli.output import JsonOption, emit
from freshet.errors import FreshetError

if TYPE_CHECKING:
    from freshet.cli.plan_runs import Result

EXIT_BAD_INPUT = 2
EXIT_NO_PLAN = 3

_BATCH, _STREAM = "Data of a known size", "A stream"
_SURE, _AGAIN, _OTHER = "Uncertain bandwidths", "After a change", "Comparisons"


def command(
    source: Annotated[
        str, typer.Option(help="Region that has the data: provider:region.", show_default=False)
    ],
    destination: Annotated[
        list[str],
        typer.Option(help="Region that needs all of it; may be repeated.", show_default=False),
    ],
    profiles: Annotated[
        str,
        typer.Option(
            help="Folder of cost.csv and throughput.csv, such as examples/data/cloudcast: a path "
            "or a URL.",
            show_default=False,
        ),
    ],
    stripes: Annotated[
        int | None,
        typer.Option(help="Equal parts to cut the data into; parts of any size if not given."),
    ] = None,
    max_vms: Annotated[
        int | None, typer.Option(min=1, help="VMs in each region at most; 2 if limits say nothing.")
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(help="JSON of VMs' limits; limits.json of the profiles if not given."),
    ] = None,
    volume_gb: Annotated[
        float | None, typer.Option(help="GB to send.", rich_help_panel=_BATCH)
    ] = None,
    deadline_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds until all must have it; the cheapest plan if not given.",
            rich_help_panel=_BATCH,
        ),
    ] = None,
    billing: Annotated[
        str | None,
        typer.Option(
            help="With a deadline, VMs are billed until the deadline (if not given), or as used.",
            rich_help_panel=_BATCH,
        ),
    ] = None,
    gb_per_s: Annotated[
        float | None, typer.Option(help="GB to send each second.", rich_help_panel=_STREAM)
    ] = None,
    freshness_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds until every destination has a chunk, at most; the cheapest plan if not "
            "given.",
            rich_help_panel=_STREAM,
        ),
    ] = None,
    chunk_mb: Annotated[
        float | None,
        typer.Option(help="MB of a chunk; 1 if not given.", rich_help_panel=_STREAM),
    ] = None,
    latency_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds that a hop takes beside the transmission; 0 if not given.",
            rich_help_panel=_STREAM,
        ),
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(
            help="Largest share of a link and of a VM's limits that is used; 0.8 if not given.",
            rich_help_panel=_STREAM,
        ),
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of links' bandwidths, over their means: 0.15 for 15 %. Needs "
            "--deadline-s.",
            rich_help_panel=_SURE,
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Probability of meeting the deadline; 0.99 if not given. Needs --spread.",
            rich_help_panel=_SURE,
        ),
    ] = None,
    running: Annotated[
        str | None,
        typer.Option(
            help="The plan until now, to be changed as little as possible: a file that --output "
            "wrote, a path or a URL.",
            rich_help_panel=_AGAIN,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Cost that keeping the running plan is worth, over the best plan's; 0.01 (1 %) if "
            "not given. Needs --running.",
            rich_help_panel=_AGAIN,
        ),
    ] = None,
    time_limit_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds after which the running plan stays. Needs --running.",
            rich_help_panel=_AGAIN,
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="optimal (if not given), or another to compare with; see docs/planner.md.",
            rich_help_panel=_OTHER,
        ),
    ] = None,
    frontier: Annotated[
        bool,
        typer.Option(
            "--frontier", help="Cost for each of a row of deadlines.", rich_help_panel=_OTHER
        ),
    ] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="All algorithms in one table.", rich_help_panel=_OTHER),
    ] = False,
    output: Annotated[str | None, typer.Option(help="File for the JSON: a path or a URL.")] = None,
    picture: Annotated[
        str | None, typer.Option(help="File for a picture, SVG: a path or a URL.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan the cheapest way to bring data from one region to others in time.

    Give --volume-gb (and --deadline-s), or --gb-per-s (and --freshness-s) for a stream.

    Exit code 2: the input is wrong. 3: no plan meets the deadline; with --running, the running
    plan stays.
    """
    # Imported late: other commands need none of this.
    from freshet.cli.plan_job import Options, read_job
    from freshet.cli.plan_runs import run
    from freshet.planner import NoPlanError

    options = Options(
        source=source,
        destinations=tuple(destination),
        profiles=profiles,
        volume_gb=volume_gb,
        deadline_s=deadline_s,
        billing=billing,
        gb_per_s=gb_per_s,
        freshness_s=freshness_s,
        chunk_mb=chunk_mb,
        latency_s=latency_s,
        load=load,
        stripes=stripes,
        max_vms=max_vms,
        limits=limits,
        algorithm=algorithm,
        frontier=frontier,
        compare=compare,
        spread=spread,
        confidence=confidence,
        running=running,
        tolerance=tolerance,
        time_limit_s=time_limit_s,
    )
    try:
        result = run(options, read_job(options))
        _write_files(result, output, picture)
    except NoPlanError as error:
        if as_json:
            reason = {"error": str(error), "fastest_s": error.fastest_s, "binding": error.binding}
            typer.echo(json.dumps(reason, indent=2))
        _fail(str(error), EXIT_NO_PLAN)
    except FreshetError as error:
        _fail(str(error), EXIT_BAD_INPUT)
    emit(result.data, *result.shown, as_json=as_json)
    if result.failure is not None:
        _fail(result.failure, EXIT_NO_PLAN)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"freshet: {message}", err=True)
    raise typer.Exit(code)


def _write_files(result: Result, output: str | None, picture: str | None) -> None:
    from freshet.report.figures import INK, to_svg

    if output is not None:
        _write(output, (json.dumps(result.data, indent=2) + "\n").encode())
    if picture is not None:
        # Alone in a file there is no page whose colour the text could take.
        _write(picture, to_svg(result.draw()).replace("currentColor", INK).encode())


def _write(file: str, content: bytes) -> None:
    from freshet.files import is_url, write_file

    folder, _, name = file.rpartition("/")
    if not is_url(file):
        folder, name = str(Path(file).parent), Path(file).name
    write_file(folder, name, content)
