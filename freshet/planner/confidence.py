"""Plans for uncertain bandwidth: the deadline is met with a given probability.

As in lambda-Replica §5.3, a link's bandwidth is normally distributed around its profile, and a plan
must be in time with probability p. A link is one random variable for all VMs that use it, and links
are independent; limits of VMs are certain. A plan is in time if each of its links is, so that its
probability is a product over links, known exactly.

The search plans for bandwidths of z standard deviations below the mean, and looks for the smallest
z whose plan is certain enough. No plan can be certain enough if one of its links alone is not; so
the planner's bound for z = quantile(p), which asks for just this, is a bound here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from freshet.errors import ConfigError
from freshet.planner.errors import NoPlanError
from freshet.planner.mixes import mix_of, trees_of
from freshet.planner.model import TIME_TOLERANCE, describe_plan, requirements, shares_of
from freshet.planner.optimal.planner import NAME, fastest_possible, solve
from freshet.planner.plan import Plan
from freshet.planner.problem import Floats, Ints, Problem

_STEPS = 5
"""Plans that are tried; a limit of work and not of time, so that the same input gives the same."""

_MANY_LINKS = 40
"""A margin that suffices for each of so many links is the largest that is tried."""

_DOUBLINGS = 40


@dataclass(frozen=True)
class ConfidentPlan:
    """A plan, and how sure it is."""

    plan: Plan
    """Its predicted time is for bandwidths as profiled; its bound is for plans so confident."""

    confidence: float
    """The probability that was asked for."""

    probability: float
    """That the plan meets the deadline."""

    time_at_confidence_s: float
    """The plan takes at most so long with the probability that was asked for."""


@dataclass(frozen=True)
class Certainty:
    """What one confidence costs."""

    confidence: float
    total_usd: float | None
    """None if no plan is so certain."""

    times_usual: float | None
    """The cost over that of the plan for bandwidths as profiled."""

    probability: float | None
    """That the plan meets the deadline."""


def plan_with_confidence(
    problem: Problem, spread: float | Floats, confidence: float
) -> ConfidentPlan:
    """Finds a cheap plan that meets the deadline with a probability.

    Args:
        problem: with a deadline.
        spread: standard deviations of bandwidths over their means: of all links, or of each [n, n].
        confidence: probability of being in time; from 0.5, below 1.

    Raises:
        ConfigError: there is no deadline, or a number is out of range; holds every problem.
        NoPlanError: no plan that is certain enough was found; ``fastest_s`` is the time in which
            the fastest plan is done with this probability.
    """
    started = time.perf_counter()
    spreads = _checked(problem, spread, confidence)
    lowest = float(norm.ppf(confidence))
    try:
        relaxed = solve(_slower(problem, spreads, lowest))
        # Billed as used, plans cost what they cost at full bandwidth.
        bound = (relaxed if problem.billed_s is not None else solve(problem)).cost.lower_bound_usd
    except NoPlanError as error:
        raise _not_certain(problem, spreads, confidence) from error
    best = None
    for found in _candidates(problem, spreads, confidence, relaxed):
        plan = _at_full_bandwidth(problem, found, bound, started)
        if best is None or plan.cost.total_usd < best.cost.total_usd:
            best = plan
    if best is None:
        raise _not_certain(problem, spreads, confidence)
    return ConfidentPlan(
        plan=replace(best, solve_time_s=time.perf_counter() - started),
        confidence=confidence,
        probability=probability_in_time(problem, best, spreads),
        time_at_confidence_s=time_at_confidence(problem, best, spreads, confidence),
    )


def price_of_certainty(
    problem: Problem,
    spread: float | Floats,
    confidences: Sequence[float] = (0.5, 0.9, 0.95, 0.99, 0.999),
) -> list[Certainty]:
    """What plans cost at several confidences; more certain ones never cost less.

    Args:
        problem: with a deadline.
        spread: as for ``plan_with_confidence``.
        confidences: to plan for.

    Raises:
        ConfigError: there is no deadline, or a number is out of range.
        NoPlanError: no plan meets the deadline even at full bandwidth.
    """
    usual = solve(problem).cost.total_usd
    rows, best = list[Certainty](), None
    for confidence in sorted(confidences, reverse=True):
        try:
            found = plan_with_confidence(problem, spread, confidence)
        except NoPlanError:
            rows.append(Certainty(confidence, None, None, None))
            continue
        if best is None or found.plan.cost.total_usd < best.plan.cost.total_usd:
            best = found
        usd = best.plan.cost.total_usd
        ratio = usd / usual if usual > 0 else 1.0
        rows.append(Certainty(confidence, usd, ratio, best.probability))
    return rows[::-1]


def probability_in_time(
    problem: Problem, plan: Plan, spread: float | Floats, seconds: float | None = None
) -> float:
    """The probability that a plan is done in time.

    Args:
        problem: that it is for.
        plan: to judge.
        spread: as for ``plan_with_confidence``.
        seconds: the time; the deadline when None.

    Raises:
        ConfigError: there is neither, or the network lacks a region of the plan.
    """
    limit = problem.deadline_s if seconds is None else seconds
    if limit is None:
        raise ConfigError(["there is no deadline; give one, or seconds"], "confidence")
    shares, vms = shares_of(problem, mix_of(plan.stripes, problem.network)), _vms(problem, plan)
    needed, limit = requirements(problem, shares), limit * (1 + TIME_TOLERANCE)
    allowed = vms * limit
    if (needed.egress > allowed).any() or (needed.ingress > allowed).any():
        return 0.0
    used = shares > 0
    # Means over what is needed of them, in standard deviations.
    ratio = needed.links[used] / np.broadcast_to(allowed[:, None], shares.shape)[used]
    spreads = np.broadcast_to(np.asarray(spread, np.float64), shares.shape)[used]
    certain = spreads == 0
    if (ratio[certain] > 1).any():
        return 0.0
    margins = (1 - ratio[~certain]) / spreads[~certain]
    return float(np.prod(norm.cdf(margins)))


def time_at_confidence(
    problem: Problem, plan: Plan, spread: float | Floats, confidence: float
) -> float:
    """Seconds in which a plan is done with a probability; infinite where it may never be."""
    low = high = plan.predicted_time_s
    for _ in range(_DOUBLINGS):
        if probability_in_time(problem, plan, spread, high) >= confidence:
            break
        low, high = high, 2 * high
    else:
        return math.inf
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if probability_in_time(problem, plan, spread, middle) >= confidence:
            high = middle
        else:
            low = middle
    return high


def _candidates(
    problem: Problem, spreads: Floats, confidence: float, relaxed: Plan
) -> Iterator[Plan]:
    """Plans that are certain enough, for ever fewer standard deviations."""
    if probability_in_time(problem, relaxed, spreads) >= confidence:
        yield relaxed
        return
    low = float(norm.ppf(confidence))
    high = float(norm.ppf(confidence ** (1.0 / _MANY_LINKS)))
    margin = high
    for _ in range(_STEPS):
        try:
            found = solve(_slower(problem, spreads, margin))
        except NoPlanError:
            found = None
        enough = found is not None and probability_in_time(problem, found, spreads) >= confidence
        if enough and found is not None:
            yield found
        # Where nothing is fast enough, a plan that is certain enough must have less margin.
        if found is None or enough:
            high = margin
        else:
            low = margin
        margin = (low + high) / 2


def _slower(problem: Problem, spreads: Floats, margin: float) -> Problem:
    """The problem with bandwidths so many standard deviations below their means."""
    network = problem.network
    bandwidth = network.bandwidth_bps * np.maximum(0.0, 1.0 - margin * spreads)
    return replace(problem, network=replace(network, bandwidth_bps=bandwidth))


def _at_full_bandwidth(problem: Problem, found: Plan, bound: float, started: float) -> Plan:
    return describe_plan(
        problem,
        trees_of(found.stripes, problem.network),
        _vms(problem, found),
        algorithm=NAME,
        started=started,
        lower_bound_usd=bound,
    )


def _vms(problem: Problem, plan: Plan) -> Ints:
    return np.array([plan.vms.get(region, 0) for region in problem.network.regions], np.int64)


def number_problems(spread: float | Floats, confidence: float) -> list[str]:
    """What is wrong with a spread and a confidence, one sentence each."""
    problems = []
    if not 0.5 <= confidence < 1.0:
        problems.append(f"confidence must be from 0.5 and below 1, not {confidence!r}")
    spreads = np.asarray(spread, np.float64)
    if not (np.isfinite(spreads) & (spreads >= 0)).all():
        problems.append("spread must be finite and not negative everywhere")
    return problems


def _checked(problem: Problem, spread: float | Floats, confidence: float) -> Floats:
    shape, spreads = problem.network.bandwidth_bps.shape, np.asarray(spread, np.float64)
    problems = []
    if problem.deadline_s is None:
        problems.append("there is no deadline to be sure of; give deadline_s")
    if spreads.shape not in ((), shape):
        problems.append(f"spread has the shape {spreads.shape}; give one number, or {shape}")
    problems.extend(number_problems(spreads, confidence))
    if problems:
        raise ConfigError(problems, "confidence")
    return np.broadcast_to(spreads, shape)


def _not_certain(problem: Problem, spreads: Floats, confidence: float) -> NoPlanError:
    """The error, with the time of the plan that is fastest when links are slow."""
    fastest = fastest_possible(problem)
    found = describe_plan(
        problem,
        list(fastest.mix.items()),
        problem.network.max_vms,
        algorithm=NAME,
        started=time.perf_counter(),
    )
    seconds = time_at_confidence(problem, found, spreads, confidence)
    wanted = (
        f"no plan was found that brings {problem.volume_gb:g} GB from {problem.source} within "
        f"{problem.deadline_s:g} s with probability {confidence:g}; the fastest plan"
    )
    if math.isinf(seconds):
        # Far from the mean, a normal bandwidth is negative.
        return NoPlanError(
            f"{wanted} is not done with it in any time, since its links may have no bandwidth at "
            "all; be less sure, or give a smaller spread",
            binding=fastest.binding,
        )
    return NoPlanError(
        f"{wanted} is done in {seconds:.6g} s with it, and {fastest.binding} binds; allow more "
        "time, or be less sure",
        fastest_s=seconds,
        binding=fastest.binding,
    )
