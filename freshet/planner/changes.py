"""What changes from one plan to the next, and why the first does not do any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from freshet.planner.mixes import mix_of
from freshet.planner.model import (
    TIME_TOLERANCE,
    Limit,
    egress_usd,
    instance_usd,
    predicted_time_s,
    shares_of,
    slowest_limits,
)
from freshet.planner.plan import Plan, Stripe
from freshet.planner.problem import Problem
from freshet.planner.stream import Stream, StreamPlan

AnyPlan = Plan | StreamPlan

_LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class TreeChange:
    """One tree, and the share of the data that took it and takes it now."""

    edges: tuple[tuple[str, str], ...]
    before: float
    after: float


@dataclass(frozen=True)
class Changes:
    """The differences of two plans."""

    trees: tuple[TreeChange, ...]
    """All trees of both plans."""

    vms: dict[str, tuple[int, int]]
    """Before and after, where they differ."""

    def to_dict(self) -> dict[str, Any]:
        """The changes as JSON types."""
        return {
            "trees": [
                {
                    "edges": [list(edge) for edge in tree.edges],
                    "before": tree.before,
                    "after": tree.after,
                }
                for tree in self.trees
            ],
            "vms": {
                region: {"before": before, "after": after}
                for region, (before, after) in self.vms.items()
            },
        }


def changes(before: AnyPlan, after: AnyPlan) -> Changes:
    """Compares the trees and VMs of two plans; trees are the same if their edges are."""
    known: dict[frozenset[tuple[str, str]], tuple[tuple[str, str], ...]] = {}
    old, new = _shares(before.stripes, known), _shares(after.stripes, known)
    trees = [
        TreeChange(edges, old.get(key, 0.0), new.get(key, 0.0)) for key, edges in known.items()
    ]
    regions = sorted({*before.vms, *after.vms})
    counts = {r: (before.vms.get(r, 0), after.vms.get(r, 0)) for r in regions}
    return Changes(
        trees=tuple(sorted(trees, key=lambda tree: (-tree.after, -tree.before, tree.edges))),
        vms={region: count for region, count in counts.items() if count[0] != count[1]},
    )


def _shares(
    stripes: tuple[Stripe, ...],
    known: dict[frozenset[tuple[str, str]], tuple[tuple[str, str], ...]],
) -> dict[frozenset[tuple[str, str]], float]:
    shares: dict[frozenset[tuple[str, str]], float] = {}
    for stripe in stripes:
        key = frozenset(stripe.edges)
        known.setdefault(key, stripe.edges)
        shares[key] = shares.get(key, 0.0) + stripe.fraction
    return {key: share for key, share in shares.items() if share > _LEAST_SHARE}


def why_unfit(plan: AnyPlan, job: Problem | Stream) -> list[str]:
    """Why a plan does not do what is asked, as far as it can be told; empty if it does.

    Args:
        plan: made for this problem or stream, or for another.
        job: what is asked now.
    """
    problem = job.problem if isinstance(job, Stream) else job
    reasons = [
        *_other_ends(plan, problem),
        *_missing(plan, problem),
        *_vms_not_allowed(plan, problem),
    ]
    if problem.stripes is not None and len(plan.stripes) != problem.stripes:
        reasons.append(f"it has {len(plan.stripes)} parts, and {problem.stripes} are asked for")
    if reasons:
        return reasons
    return _too_late(plan, job) if isinstance(job, Stream) else _too_slow(plan, job)


def _other_ends(plan: AnyPlan, problem: Problem) -> list[str]:
    reasons = []
    if plan.source != problem.source:
        reasons.append(f"its source is {plan.source}, not {problem.source}")
    new = sorted(set(problem.destinations) - set(plan.destinations))
    old = sorted(set(plan.destinations) - set(problem.destinations))
    if new:
        reasons.append(f"{', '.join(new)} is no destination of it")
    if old:
        reasons.append(f"its destination {', '.join(old)} is not asked for any more")
    return reasons


def _missing(plan: AnyPlan, problem: Problem) -> list[str]:
    network = problem.network
    edges = sorted({edge for stripe in plan.stripes for edge in stripe.edges})
    gone = sorted({region for edge in edges for region in edge} - set(network.regions))
    return [f"{region} is not in the profiles any more" for region in gone] + [
        f"there is no link from {u} to {v} any more"
        for u, v in edges
        if u not in gone
        and v not in gone
        and network.bandwidth_bps[network.index[u], network.index[v]] <= 0
    ]


def _vms_not_allowed(plan: AnyPlan, problem: Problem) -> list[str]:
    network, reasons = problem.network, []
    for region, count in sorted(plan.vms.items()):
        if region not in network.index:
            continue
        limits = network.limits[network.index[region]]
        if count > limits.max_vms:
            reasons.append(f"{region} may have {limits.max_vms} VMs, and it needs {count}")
        elif count < limits.min_vms:
            reasons.append(f"{region} must have {limits.min_vms} VMs, and it has {count}")
    return reasons


def _slowest(plan: AnyPlan, problem: Problem) -> Limit:
    counts = [plan.vms.get(region, 0) for region in problem.network.regions]
    shares = shares_of(problem, mix_of(plan.stripes, problem.network))
    return slowest_limits(problem, shares, np.array(counts, np.int64))[0]


def _too_slow(plan: AnyPlan, problem: Problem) -> list[str]:
    slowest, deadline_s = _slowest(plan, problem), problem.deadline_s
    if deadline_s is None or slowest.seconds <= deadline_s * (1 + TIME_TOLERANCE):
        return []
    return [
        f"it would take {slowest.seconds:.4g} s, and {deadline_s:g} s are allowed; "
        f"{slowest.description} binds"
    ]


def _too_late(plan: AnyPlan, stream: Stream) -> list[str]:
    """Whether a stream's rate or delay is beyond what the plan does."""
    reasons, slowest = [], _slowest(plan, stream.problem)
    hour = stream.problem.deadline_s or 0.0
    if slowest.seconds > hour * (1 + TIME_TOLERANCE):
        most = stream.gb_per_s * hour / slowest.seconds
        reasons.append(
            f"it carries {most:.4g} GB/s at a load of {stream.load:g}, and {stream.gb_per_s:g} "
            f"GB/s are asked for; {slowest.description} binds"
        )
    return reasons + _late(plan, stream)


def _late(plan: AnyPlan, stream: Stream) -> list[str]:
    """Whether chunks are late anywhere: by the destination where they are latest for its bound."""
    if stream.bounds_s is None:
        return []
    trees = mix_of(plan.stripes, stream.network)
    arrivals = [stream.delays.arrivals(tree, stream.problem.root) for tree in trees]
    share, limit = max(
        (max(each[terminal] for each in arrivals) / limit, limit)
        for terminal, limit in zip(stream.problem.terminals, stream.bounds_s, strict=True)
    )
    if share <= 1 + TIME_TOLERANCE:
        return []
    return [f"its chunks arrive within {share * limit:.4g} s, and {limit:g} s are allowed"]


def cost_usd(plan: AnyPlan, problem: Problem) -> float:
    """What a plan that does a problem costs for it: $, per hour for a stream's."""
    counts = np.array([plan.vms.get(r, 0) for r in problem.network.regions], np.int64)
    shares = shares_of(problem, mix_of(plan.stripes, problem.network))
    seconds = problem.billed_s or predicted_time_s(problem, shares, counts)
    return egress_usd(problem, shares) + instance_usd(problem, counts, seconds)
