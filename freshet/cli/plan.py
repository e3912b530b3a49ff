"""``freshet plan``: the cheapest way to bring data from one region to others in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from freshet.cli.output import JsonOption, emit
from freshet.errors import FreshetError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from freshet.planner import Plan, Problem

DEFAULT = "optimal"
EXIT_BAD_INPUT = 2
EXIT_NO_PLAN = 3


def command(
    source: Annotated[
        str, typer.Option(help="Region that has the data: provider:region.", show_default=False)
    ],
    destination: Annotated[
        list[str],
        typer.Option(help="Region that needs all of it; may be repeated.", show_default=False),
    ],
    volume_gb: Annotated[float, typer.Option(help="GB to send.", show_default=False)],
    profiles: Annotated[
        str,
        typer.Option(
            help="Folder of cost.csv and throughput.csv, such as examples/data/cloudcast: a path "
            "or a URL.",
            show_default=False,
        ),
    ],
    deadline_s: Annotated[
        float | None,
        typer.Option(help="Seconds until all must have it; the cheapest plan if not given."),
    ] = None,
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
    billing: Annotated[
        str,
        typer.Option(help="With a deadline, VMs are billed until the deadline, or as used."),
    ] = "deadline",
    algorithm: Annotated[
        str, typer.Option(help="optimal, or another to compare with; see docs/planner.md.")
    ] = DEFAULT,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="Cost for each of a row of deadlines.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="All algorithms in one table.")
    ] = False,
    output: Annotated[str | None, typer.Option(help="File for the JSON: a path or a URL.")] = None,
    picture: Annotated[
        str | None, typer.Option(help="File for a picture, SVG: a path or a URL.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan the cheapest way to bring data from one region to others in time.

    Exit code 2: the input is wrong. 3: no plan meets the deadline.
    """
    from freshet.planner import Billing, NoPlanError, Problem, load_network
    from freshet.table.checks import Problems

    try:
        wrong = Problems()
        wrong.one_of("billing", billing, [str(kind) for kind in Billing])
        if wrong:
            raise FreshetError(wrong[0])
        network = load_network(profiles, limits=limits, max_vms=max_vms)
        problem = Problem(
            network, source, tuple(destination), volume_gb, deadline_s, stripes, Billing(billing)
        )
        if frontier or compare:
            _show_tradeoff(problem, compare, output, picture, as_json)
        else:
            _show_plan(problem, algorithm, output, picture, as_json)
    except NoPlanError as error:
        if as_json:
            reason = {"error": str(error), "fastest_s": error.fastest_s, "binding": error.binding}
            typer.echo(json.dumps(reason, indent=2))
        _fail(error, EXIT_NO_PLAN)
    except FreshetError as error:
        _fail(error, EXIT_BAD_INPUT)


def _fail(error: FreshetError, code: int) -> None:
    typer.echo(f"freshet: {error}", err=True)
    raise typer.Exit(code) from error


def _show_plan(
    problem: Problem, algorithm: str, output: str | None, picture: str | None, as_json: bool
) -> None:
    from freshet.planner import make_plan

    plan = make_plan(problem, algorithm)
    _write(output, plan.to_json().encode())
    if picture is not None:
        from freshet.planner.picture import draw_plan

        _write_picture(picture, draw_plan(plan, problem.network))
    emit(plan.to_dict(), _stripes_table(plan), _vms_line(plan), *_cost_lines(plan), as_json=as_json)


def _show_tradeoff(
    problem: Problem, compare: bool, output: str | None, picture: str | None, as_json: bool
) -> None:
    from freshet.planner.comparison import compare_algorithms
    from freshet.planner.frontier import frontier

    curve = frontier(problem)
    others = compare_algorithms(problem) if compare else {}
    plans = {name: plan for name, plan in others.items() if not isinstance(plan, str)}
    result: dict[str, Any] = {
        "fastest_s": curve.fastest_s,
        "knee": curve.knee,
        "frontier": [plan.to_dict() for plan in curve.plans],
    }
    if compare:
        result["algorithms"] = {name: plan.to_dict() for name, plan in plans.items()}
        result["failed"] = {name: why for name, why in others.items() if isinstance(why, str)}
    _write(output, (json.dumps(result, indent=2) + "\n").encode())
    if picture is not None:
        from freshet.planner.picture import draw_tradeoff

        # The default algorithm is the curve.
        points = [(name, plan) for name, plan in plans.items() if name != DEFAULT]
        _write_picture(picture, draw_tradeoff(points, curve.plans, curve.knee))
    shown = [_frontier_table(curve.plans, curve.knee)]
    if compare:
        shown.insert(0, _algorithms_table(others))
    emit(result, *shown, as_json=as_json)


def _write(file: str | None, content: bytes) -> None:
    from freshet.files import is_url, write_file

    if file is None:
        return
    folder, _, name = file.rpartition("/")
    if not is_url(file):
        folder, name = str(Path(file).parent), Path(file).name
    write_file(folder, name, content)


def _write_picture(file: str, figure: Figure) -> None:
    from freshet.report.figures import INK, to_svg

    # Alone in a file there is no page whose colour the text could take.
    _write(file, to_svg(figure).replace("currentColor", INK).encode())


def _stripes_table(plan: Plan) -> Table:
    shown = Table("share", "tree")
    merged: dict[tuple[tuple[str, str], ...], float] = {}
    for stripe in plan.stripes:
        merged[stripe.edges] = merged.get(stripe.edges, 0.0) + stripe.fraction
    for edges, fraction in merged.items():
        shown.add_row(f"{fraction:.2%}", ", ".join(f"{u} → {v}" for u, v in edges))
    return shown


def _vms_line(plan: Plan) -> str:
    counts = ", ".join(f"{region} {count}" for region, count in plan.vms.items())
    return f"VMs: {counts}."


def _cost_lines(plan: Plan) -> list[str]:
    cost = plan.cost
    lines = [
        f"Predicted time {plan.predicted_time_s:.4g} s; VMs billed for {plan.time_budget_s:.4g} s.",
        f"Cost ${cost.total_usd:.4f}: ${cost.egress_usd:.4f} egress and ${cost.instance_usd:.4f} "
        f"VMs; ${plan.cost_as_used_usd:.4f} were VMs billed as used.",
    ]
    if cost.lower_bound_usd > 0:
        lines.append(
            f"No plan costs less than ${cost.lower_bound_usd:.4f}: this one is within "
            f"{cost.gap:.3%} of the best. Solved in {plan.solve_time_s:.2f} s."
        )
    return lines


def _frontier_table(plans: tuple[Plan, ...], knee: int) -> Table:
    shown = Table("time (s)", "cost ($)", "egress ($)", "VMs ($)", "trees", "gap", "")
    for number, plan in enumerate(plans):
        shown.add_row(
            f"{plan.predicted_time_s:.4g}",
            f"{plan.cost_as_used_usd:.4f}",
            f"{plan.cost.egress_usd:.4f}",
            f"{plan.cost_as_used_usd - plan.cost.egress_usd:.4f}",
            str(len({stripe.edges for stripe in plan.stripes})),
            f"{plan.cost.gap:.3%}",
            "knee" if number == knee else "",
        )
    return shown


def _algorithms_table(plans: dict[str, Plan | str]) -> Table:
    shown = Table(
        "algorithm", "time (s)", "cost as used ($)", "egress ($)", "trees", "solved in (s)"
    )
    for name, plan in plans.items():
        if isinstance(plan, str):
            shown.add_row(name, "-", "-", "-", "-", plan)
            continue
        shown.add_row(
            name,
            f"{plan.predicted_time_s:.4g}",
            f"{plan.cost_as_used_usd:.4f}",
            f"{plan.cost.egress_usd:.4f}",
            str(len({stripe.edges for stripe in plan.stripes})),
            f"{plan.solve_time_s:.2f}",
        )
    return shown
