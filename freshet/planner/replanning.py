"""Plans anew after a change, close to the running plan where that costs almost nothing.

The running plan's trees are repaired: what still exists of them is free, and the lightest tree to
all destinations is found. They are where the search begins. Among the plans of old and new trees
that cost at most a tolerance more than the best one, the closest is a small integer program.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from freshet.errors import ConfigError, FreshetError
from freshet.planner.closest import closest_choice
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


@dataclass(frozen=True)
class Replanned:
    """The plan to run from now on."""

    plan: Plan
    outcome: Outcome
    trees_kept: float
    """Share of the data that stays on its tree."""

    vms_kept: float
    """VMs that stay where they are, over the larger of old and new number of VMs."""

    reason: str
    """Why the last good plan stays; empty otherwise."""


class _OutOfTimeError(Exception):
    pass


def replan(
    running: Plan,
    problem: Problem,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    time_limit_s: float | None = None,
) -> Replanned:
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
    if not tolerance >= 0:
        raise ConfigError([f"tolerance must not be negative, not {tolerance!r}"], "replanning")
    started, usual = time.perf_counter(), pricing_for(problem)

    def pricing(weights: Floats) -> tuple[list[Tree], float]:
        if time_limit_s is not None and time.perf_counter() - started > time_limit_s:
            raise _OutOfTimeError
        return usual(weights)

    try:
        repaired = _repaired(running, problem, pricing)
        best = solve(problem, pricing=pricing, trees=repaired)
    except FreshetError as error:
        return Replanned(running, Outcome.LAST_GOOD, 1.0, 1.0, str(error))
    except _OutOfTimeError:
        reason = f"no plan was found within {time_limit_s:g} s; allow more time"
        return Replanned(running, Outcome.LAST_GOOD, 1.0, 1.0, reason)
    most_usd = best.cost.total_usd * (1 + tolerance)
    bound = best.cost.lower_bound_usd
    kept = _unchanged(running, problem, started, bound)
    if kept is not None and kept.cost.total_usd <= most_usd * (1 + 1e-9):
        return Replanned(kept, Outcome.KEPT, 1.0, 1.0, "")
    close = _closest(running, problem, repaired, best, most_usd, started)
    candidates = [(best, Outcome.NEW)] + ([(close, Outcome.CLOSE)] if close else [])
    plan, outcome = max(candidates, key=lambda item: sum(closeness(running, item[0])))
    trees_kept, vms_kept = closeness(running, plan)
    return Replanned(plan, outcome, trees_kept, vms_kept, "")


def closeness(before: Plan, after: Plan) -> tuple[float, float]:
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


def _repaired(running: Plan, problem: Problem, pricing: Pricing) -> dict[Tree, float]:
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


def _unchanged(running: Plan, problem: Problem, started: float, bound: float) -> Plan | None:
    """The running plan's stripes and VMs for the problem; None if they can't do it."""
    network = problem.network
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
    seconds = predicted_time_s(problem, shares_of(problem, mix), vms)
    if problem.deadline_s is not None and seconds > problem.deadline_s * (1 + TIME_TOLERANCE):
        return None
    return _described(problem, mix, vms, started, bound)


def _closest(
    running: Plan,
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


def _vms(plan: Plan, problem: Problem) -> Ints:
    return np.array([plan.vms.get(region, 0) for region in problem.network.regions], np.int64)
