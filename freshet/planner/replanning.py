"""Plans anew after a change, close to the running plan where that costs almost nothing.

For batches; ``stream_replanning`` does the same for streams. The running plan's trees are
repaired: what still exists of them is free, and the lightest tree to all destinations is found.
They are where the search begins. Among the plans of old and new trees that cost at most a tolerance
more than the best one, the closest is a small integer program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import numpy as np

from freshet.errors import ConfigError, FreshetError
from freshet.planner.closest import closest_choice
from freshet.planner.errors import NoPlanError
from freshet.planner.mixes import mix_of
from freshet.planner.model import (
    TIME_TOLERANCE,
    describe_plan,
    predicted_time_s,
    shares_of,
)
from freshet.planner.optimal.column_generation import Pricing
from freshet.planner.optimal.planner import NAME, solve
from freshet.planner.optimal.pricing import pricing_for
from freshet.planner.plan import Plan, Stripe
from freshet.planner.problem import Floats, Ints, Problem
from freshet.planner.trees import Tree

DEFAULT_TOLERANCE = 0.01


class Outcome(StrEnum):
    """What became of the running plan."""

    KEPT = "kept"
    """It does what is asked now, at a cost within the tolerance: same stripes, same VMs."""

    CLOSE = "close"
    """A plan close to it costs at most the tolerance more than the best one found."""

    NEW = "new"
    """The best plan found replaces it: no closer one costs almost as little."""

    LAST_GOOD = "last good"
    """No plan was found; the running one stays, whether or not it does what is asked now."""


class Running(Protocol):
    """What is kept of a running plan: a ``Plan`` or a ``StreamPlan``."""

    @property
    def source(self) -> str: ...

    @property
    def destinations(self) -> tuple[str, ...]: ...

    @property
    def stripes(self) -> tuple[Stripe, ...]: ...

    @property
    def vms(self) -> Mapping[str, int]: ...


AnyPlan = TypeVar("AnyPlan", bound=Running)


@dataclass(frozen=True)
class Replanned(Generic[AnyPlan]):
    """The plan to run from now on."""

    plan: AnyPlan
    outcome: Outcome
    trees_kept: float
    """Share of the data that stays on its tree."""

    vms_kept: float
    """VMs that stay where they are, over the larger of old and new number of VMs."""

    reason: str
    """Why the last good plan stays; empty otherwise."""

    is_possible: bool = True
    """False where no plan at all does what is asked, so that more time would not help."""


class OutOfTimeError(FreshetError):
    """No plan was found within the time limit."""


@dataclass(frozen=True)
class Task:
    """What is asked now."""

    problem: Problem
    pricing: Pricing
    """Finds light trees; its first tree must be allowed."""

    allows: Callable[[Tree], bool]
    """Whether a tree may be used."""

    tolerance: float
    """Cost that being closer is worth, over the best plan's."""

    time_limit_s: float | None

    def __post_init__(self) -> None:
        """Rejects a wrong tolerance.

        Raises:
            ConfigError: it is negative.
        """
        if not self.tolerance >= 0:
            raise ConfigError(
                [f"tolerance must not be negative, not {self.tolerance!r}"], "replanning"
            )


def replan(
    running: Plan,
    problem: Problem,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    time_limit_s: float | None = None,
) -> Replanned[Plan]:
    """Finds the plan for a problem that has changed.

    The same input gives the same plan, unless the time limit ends the search.

    Args:
        running: the plan until now.
        problem: as it is now, with the same or another network, volume, deadline, destinations.
        tolerance: cost that being closer is worth, over the best plan's; 0.01 for 1 %.
        time_limit_s: seconds after which the running plan stays; looked at between steps, so that
            the search takes a little longer.

    Raises:
        ConfigError: the tolerance is negative.
    """
    task = Task(problem, pricing_for(problem), lambda _: True, tolerance, time_limit_s)
    started = time.perf_counter()
    try:
        plan, outcome = replanned(running, task, started)
    except FreshetError as error:
        return last_good(running, error)
    return Replanned(plan, outcome, *closeness(running, plan), "")


def last_good(running: AnyPlan, error: FreshetError) -> Replanned[AnyPlan]:
    """The running plan stays, for this reason."""
    is_possible = not isinstance(error, NoPlanError)
    return Replanned(running, Outcome.LAST_GOOD, 1.0, 1.0, str(error), is_possible)


def replanned(running: Running, task: Task, started: float) -> tuple[Plan, Outcome]:
    """Keeps the running plan, or finds one that is close to it, or a new one.

    Args:
        running: the plan until now.
        task: what is asked now.
        started: ``time.perf_counter()`` when the search began.

    Raises:
        NoPlanError: nothing does what is asked.
        OutOfTimeError: no plan was found within the time limit.
    """
    problem, limit = task.problem, task.time_limit_s

    def pricing(weights: Floats) -> tuple[list[Tree], float]:
        if limit is not None and time.perf_counter() - started > limit:
            raise OutOfTimeError(f"no plan was found within {limit:g} s; allow more time")
        return task.pricing(weights)

    repaired = _repaired(running, problem, pricing)
    best = solve(problem, pricing=pricing, trees=repaired)
    most_usd = best.cost.total_usd * (1 + task.tolerance)
    kept = _unchanged(running, task, started, best.cost.lower_bound_usd)
    if kept is not None and kept.cost.total_usd <= most_usd * (1 + 1e-9):
        return kept, Outcome.KEPT
    close = _closest(running, problem, repaired, best, most_usd, started)
    candidates = [(best, Outcome.NEW)] + ([(close, Outcome.CLOSE)] if close else [])
    return max(candidates, key=lambda item: sum(closeness(running, item[0])))


def closeness(before: Running, after: Running) -> tuple[float, float]:
    """Share of the data that stays on its tree, and share of VMs that stay."""
    old, new = _by_edges(before.stripes), _by_edges(after.stripes)
    trees = sum(min(fraction, new.get(edges, 0.0)) for edges, fraction in old.items())
    stay = sum(min(count, after.vms.get(region, 0)) for region, count in before.vms.items())
    return min(1.0, trees), stay / max(sum(before.vms.values()), sum(after.vms.values()))


def _by_edges(stripes: tuple[Stripe, ...]) -> dict[frozenset[tuple[str, str]], float]:
    fractions: dict[frozenset[tuple[str, str]], float] = {}
    for stripe in stripes:
        edges = frozenset(stripe.edges)
        fractions[edges] = fractions.get(edges, 0.0) + stripe.fraction
    return fractions


def _repaired(running: Running, problem: Problem, pricing: Pricing) -> dict[Tree, float]:
    """The running plan's trees, on what there is now, with their fractions."""
    network = problem.network
    usual = np.where(network.links, network.price_usd_per_gb + 1e-6, np.inf)
    repaired: dict[Tree, float] = {}
    for stripe in running.stripes:
        weights = usual.copy()
        for u, v in stripe.edges:
            if u in network.index and v in network.index:
                i, j = network.index[u], network.index[v]
                weights[i, j] = 0.0 if network.links[i, j] else np.inf
        trees, _ = pricing(weights)
        for tree in trees[:1]:
            repaired[tree] = repaired.get(tree, 0.0) + stripe.fraction
    return repaired


def _unchanged(running: Running, task: Task, started: float, bound: float) -> Plan | None:
    """The running plan's stripes and VMs for the problem; None if they can't do it."""
    problem, network = task.problem, task.problem.network
    asked = (running.source, set(running.destinations))
    if asked != (problem.source, set(problem.destinations)):
        return None
    if any(region not in network.index for region in running.vms):
        return None
    if problem.stripes is not None and len(running.stripes) != problem.stripes:
        return None
    vms, mix = _vms(running, problem), mix_of(running.stripes, network)
    if (vms > network.max_vms).any() or (vms[vms > 0] < network.min_vms[vms > 0]).any():
        return None
    if not all(network.links[edge] for tree in mix for edge in tree):
        return None
    if not all(task.allows(tree) for tree in mix):
        return None
    seconds = predicted_time_s(problem, shares_of(problem, mix), vms)
    if problem.deadline_s is not None and seconds > problem.deadline_s * (1 + TIME_TOLERANCE):
        return None
    return _described(problem, mix, vms, started, bound)


def _closest(
    running: Running,
    problem: Problem,
    repaired: dict[Tree, float],
    best: Plan,
    most_usd: float,
    started: float,
) -> Plan | None:
    """The closest plan of old and new trees for at most a cost; None if none is found."""
    choice = closest_choice(
        problem,
        list({**repaired, **mix_of(best.stripes, problem.network)}),
        repaired,
        _vms(running, problem),
        seconds=problem.billed_s or best.predicted_time_s,
        most_usd=most_usd,
    )
    if choice is None:
        return None
    return _described(problem, choice.mix, choice.vms, started, best.cost.lower_bound_usd)


def _described(
    problem: Problem, mix: dict[Tree, float], vms: Ints, started: float, bound: float
) -> Plan:
    ordered = sorted(mix.items(), key=lambda item: (-item[1], item[0]))
    if problem.stripes is not None:
        one = 1.0 / problem.stripes
        ordered = [(t, one) for t, x in ordered for _ in range(round(x * problem.stripes))]
    return describe_plan(
        problem, ordered, vms, algorithm=NAME, started=started, lower_bound_usd=bound
    )


def _vms(plan: Running, problem: Problem) -> Ints:
    return np.array([plan.vms.get(region, 0) for region in problem.network.regions], np.int64)
