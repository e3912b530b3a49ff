"""Cost by the number of equal stripes (Cloudcast, Figure 16)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.multicast_jobs import PAPER
from benchmarks.timed_solves import ALL, Solve, solve_in
from freshet.planner import Network, NoPlanError, Plan, Problem, make_plan
from freshet.planner.optimal.planner import fastest_possible
from freshet.report.figures import INK, PALETTE, finish, new_figure

STRIPES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 32)
CLOUDCAST_MOST = 16
TIGHTNESS = 1.5
"""Deadline, over the fastest possible time with parts of any size."""

LIMIT_S = 30.0


def run(context: Context, network: Network) -> Iterable[Exhibit]:
    """Ours and the paper's program, on the paper's six destinations in AWS."""
    context.say("number of stripes")
    job = PAPER[1]
    problem = job.on(network)
    problem = problem.with_deadline(fastest_possible(problem).seconds * TIGHTNESS)
    any_size = make_plan(problem)
    own: dict[int, Plan | None] = {}
    theirs: dict[int, Solve] = {}
    for count in STRIPES[:6] if context.quick else STRIPES:
        striped = replace(problem, stripes=count)
        own[count] = _plan(striped)
        if count <= CLOUDCAST_MOST and not context.quick:
            theirs[count] = solve_in(LIMIT_S, striped, ALL)
    yield _exhibit(job.name, any_size, own, theirs)


def _plan(problem: Problem) -> Plan | None:
    try:
        return make_plan(problem)
    except NoPlanError:
        return None


def _exhibit(
    job: str, any_size: Plan, own: dict[int, Plan | None], theirs: dict[int, Solve]
) -> Exhibit:
    least = any_size.cost.total_usd
    rows = [
        (
            str(count),
            "none in time" if plan is None else f"${plan.cost.total_usd:.3f}",
            "" if plan is None else f"{plan.cost.total_usd / least - 1:.2%}",
            "" if plan is None else f"{plan.cost.gap:.2%}",
            _theirs(theirs.get(count)),
        )
        for count, plan in own.items()
    ]
    rows.append(("any size", f"${least:.3f}", "0.00%", f"{any_size.cost.gap:.2%}", ""))
    figure, axes = new_figure("cost ($)")
    axes.set_xlabel("stripes")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    curves = {
        "ours": [(n, plan.cost.total_usd) for n, plan in own.items() if plan is not None],
        "cloudcast": [
            (n, each.plan.cost.total_usd) for n, each in theirs.items() if each.plan is not None
        ],
    }
    for colour, (name, points) in zip(PALETTE, curves.items(), strict=False):
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker="o", label=name)
    axes.axhline(least, color=INK, alpha=0.5, linestyle=":", label="ours, parts of any size")
    return Exhibit(
        "planner-stripes",
        f"Figure 16: cost by number of stripes, {job}, {any_size.time_budget_s:.3g} s",
        ("stripes", "ours", "over parts of any size", "proven gap", "cloudcast"),
        tuple(rows),
        picture=finish(figure, axes),
    )


def _theirs(solve: Solve | None) -> str:
    if solve is None:
        return ""
    cut_off = f" (cut off at {LIMIT_S:g} s)" if solve.cut_off else ""
    if solve.plan is None:
        return f"none found{cut_off}"
    return f"${solve.plan.cost.total_usd:.3f}{cut_off}"
