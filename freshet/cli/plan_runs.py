"""The ways ``freshet plan`` plans: once, for a probability, after a change, or to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from freshet.cli.plan_job import DEFAULT_CONFIDENCE, Job, Options
from freshet.cli.plan_tables import (
    algorithms_table,
    change_lines,
    confidence_lines,
    cost_lines,
    frontier_table,
    shown_trees,
    stream_lines,
)
from freshet.planner import (
    Outcome,
    Plan,
    Problem,
    Replanned,
    Stream,
    StreamPlan,
    make_plan,
    plan_stream,
    plan_with_confidence,
    replan,
    replan_stream,
)
from freshet.planner.changes import changes, cost_usd, why_unfit
from freshet.planner.comparison import compare_algorithms
from freshet.planner.confidence import probability_in_time
from freshet.planner.frontier import frontier
from freshet.planner.replanning import DEFAULT_TOLERANCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT_ALGORITHM = "optimal"


@dataclass(frozen=True)
class Result:
    """What a run found, in all forms."""

    data: dict[str, Any]
    """As JSON types; a plan's can be read back as a plan."""

    shown: list[RenderableType]
    """For people."""

    draw: Callable[[], Figure]
    failure: str | None = None
    """Why the plan is only the last good one."""


def run(options: Options, job: Job) -> Result:
    """Plans as the options say.

    Raises:
        NoPlanError: no plan does what is asked, and there is none from before.
    """
    problem = job.problem
    if job.running is not None:
        return _replanned(options, job, job.running)
    if isinstance(problem, Stream):
        stream_plan = plan_stream(problem)
        return _result(job, stream_plan, {}, stream_lines(stream_plan))
    if options.frontier or options.compare:
        return _tradeoff(problem, compare=options.compare)
    if options.spread is not None:
        return _confident(options, job, problem, options.spread)
    plan = make_plan(problem, options.algorithm or DEFAULT_ALGORITHM)
    return _result(job, plan, {}, cost_lines(plan))


def _result(job: Job, plan: Plan | StreamPlan, more: dict[str, Any], lines: list[Any]) -> Result:
    def draw() -> Figure:
        from freshet.planner.drawing.picture import draw_plan

        return draw_plan(plan, job.network, job.places)

    return Result(plan.to_dict() | more, [*shown_trees(plan, job.network), *lines], draw)


def _confident(options: Options, job: Job, problem: Problem, spread: float) -> Result:
    confidence = DEFAULT_CONFIDENCE if options.confidence is None else options.confidence
    found, usual = plan_with_confidence(problem, spread, confidence), make_plan(problem)
    usual_probability = probability_in_time(problem, usual, spread)
    more = {
        "certainty": {
            "spread": spread,
            "confidence": confidence,
            "probability": found.probability,
            "time_at_confidence_s": found.time_at_confidence_s,
            "usual_total_usd": usual.cost.total_usd,
            "usual_probability": usual_probability,
        }
    }
    lines = [*cost_lines(found.plan), *confidence_lines(found, usual, usual_probability)]
    return _result(job, found.plan, more, lines)


def _replanned(options: Options, job: Job, running: Plan | StreamPlan) -> Result:
    tolerance = DEFAULT_TOLERANCE if options.tolerance is None else options.tolerance
    limit_s = options.time_limit_s
    found: Replanned[Plan] | Replanned[StreamPlan]
    if isinstance(running, Plan) and isinstance(job.problem, Problem):
        found = replan(running, job.problem, tolerance=tolerance, time_limit_s=limit_s)
    elif isinstance(running, StreamPlan) and isinstance(job.problem, Stream):
        found = replan_stream(running, job.problem, tolerance=tolerance, time_limit_s=limit_s)
    else:
        raise TypeError("a plan of a stream is for a stream, and one of a batch for a batch")
    changed, why = changes(running, found.plan), _why(job, running, found, tolerance)
    more = {
        "replanning": {
            "outcome": str(found.outcome),
            "why": why,
            "trees_kept": found.trees_kept,
            "vms_kept": found.vms_kept,
            "changes": changed.to_dict(),
        }
    }
    if found.outcome is Outcome.LAST_GOOD:
        lines = [*_lines(found.plan), "Times and costs are those of when this plan was made."]
        return replace(_result(job, found.plan, more, lines), failure=why)
    kept = change_lines(changed, found.trees_kept, found.vms_kept)
    return _result(job, found.plan, more, [*_lines(found.plan), *kept, why])


def _lines(plan: Plan | StreamPlan) -> list[str]:
    return stream_lines(plan) if isinstance(plan, StreamPlan) else cost_lines(plan)


def _why(
    job: Job,
    running: Plan | StreamPlan,
    found: Replanned[Plan] | Replanned[StreamPlan],
    tolerance: float,
) -> str:
    """Why the running plan stays or goes, in a sentence or two."""
    unfit = "; ".join(why_unfit(running, job.problem))
    if found.outcome is Outcome.LAST_GOOD:
        does_it = f"does not do what is asked ({unfit})" if unfit else "does what is asked"
        return f"{found.reason}. The running plan stays, and {does_it}."
    if found.outcome is Outcome.KEPT:
        return (
            "The running plan stays: it does what is asked, and costs at most "
            f"{tolerance:.2%} more than the best."
        )
    problem = job.problem.problem if isinstance(job.problem, Stream) else job.problem
    per_hour = " per hour" if isinstance(job.problem, Stream) else ""
    reason = unfit or f"it would cost ${cost_usd(running, problem):.4f}{per_hour}"
    if found.outcome is Outcome.CLOSE:
        new = "The new plan is close to it, and costs at most"
    else:
        new = "The new plan is the best: none that is closer costs at most"
    return f"The running plan goes: {reason}. {new} {tolerance:.2%} more than the best."


def _tradeoff(problem: Problem, *, compare: bool) -> Result:
    curve = frontier(problem)
    others = compare_algorithms(problem) if compare else {}
    plans = {name: plan for name, plan in others.items() if not isinstance(plan, str)}
    data: dict[str, Any] = {
        "fastest_s": curve.fastest_s,
        "knee": curve.knee,
        "frontier": [plan.to_dict() for plan in curve.plans],
    }
    shown: list[RenderableType] = [frontier_table(curve.plans, curve.knee)]
    if compare:
        data["algorithms"] = {name: plan.to_dict() for name, plan in plans.items()}
        data["failed"] = {name: why for name, why in others.items() if isinstance(why, str)}
        shown.insert(0, algorithms_table(others))

    def draw() -> Figure:
        from freshet.planner.drawing.tradeoff import draw_tradeoff

        # The default algorithm is the curve.
        points = [(name, plan) for name, plan in plans.items() if name != DEFAULT_ALGORITHM]
        return draw_tradeoff(points, curve.plans, curve.knee)

    return Result(data, shown, draw)
