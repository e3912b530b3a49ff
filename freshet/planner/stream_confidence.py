"""Plans for streams over uncertain bandwidths: fresh, and within the load, with a probability.

As in ``confidence``, a link's bandwidth is normally distributed around its profile, independent of
the others. The stream is planned on links that are z standard deviations slower. The plan holds if
all links that it uses are at least that fast, which gives its probability; z is raised until that
suffices. The true probability is higher: where one link is slower, another may make up for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from freshet.errors import ConfigError
from freshet.planner.errors import NoPlanError
from freshet.planner.problem import Floats
from freshet.planner.stream import Stream, StreamPlan, plan_stream

_ROUNDING = 1e-9
_STEPS = 6
"""Plans that are tried; a limit of work and not of time, so that the same input gives the same."""


@dataclass(frozen=True)
class ConfidentStreamPlan:
    """A plan, and how sure it is."""

    plan: StreamPlan
    """Its delays and its capacity are those of the slower links; its bound is for links as
    profiled, as plans that hold with more than one half must hold there (their set is convex)."""

    confidence: float
    """The probability that was asked for."""

    probability: float
    """That chunks are fresh and loads allowed, at least."""


def plan_stream_with_confidence(
    stream: Stream, spread: float | Floats, confidence: float
) -> ConfidentStreamPlan:
    """Finds a cheap plan that keeps the freshness bound and the load with a probability.

    Args:
        stream: to plan for.
        spread: standard deviations of bandwidths over their means: of all links, or of each [n, n].
        confidence: probability; more than 0.5, below 1.

    Raises:
        ConfigError: a number is out of range; holds every problem.
        NoPlanError: no plan that is certain enough was found.
    """
    spreads = _checked(stream, spread, confidence)
    bound = plan_stream(stream).cost.lower_bound_usd_per_h
    links = 1
    for _ in range(_STEPS):
        margin = float(norm.ppf(confidence ** (1.0 / links))) + _ROUNDING
        found = _planned(stream, spreads, margin, confidence)
        uncertain = _uncertain_links(stream, found, spreads)
        if uncertain <= links:
            probability = float(norm.cdf(margin) ** uncertain)
            return ConfidentStreamPlan(_bounded(found, bound), confidence, probability)
        links = uncertain
    raise NoPlanError(f"no plan that holds with probability {confidence:g} was found; be less sure")


def _planned(stream: Stream, spreads: Floats, margin: float, confidence: float) -> StreamPlan:
    network = stream.network
    bandwidth = network.bandwidth_bps * np.maximum(0.0, 1.0 - margin * spreads)
    try:
        return plan_stream(replace(stream, network=replace(network, bandwidth_bps=bandwidth)))
    except NoPlanError as error:
        raise NoPlanError(
            f"on links {margin:.3g} standard deviations slower, for a probability of "
            f"{confidence:g}, {error}",
            fastest_s=error.fastest_s,
            binding=error.binding,
        ) from error


def _uncertain_links(stream: Stream, plan: StreamPlan, spreads: Floats) -> int:
    index = stream.network.index
    used = {(index[u], index[v]) for stripe in plan.stripes for u, v in stripe.edges}
    return sum(1 for edge in used if spreads[edge] > 0)


def _bounded(plan: StreamPlan, bound: float) -> StreamPlan:
    cost, total = plan.cost, plan.cost.total_usd_per_h
    gap = (total - bound) / total if total > 0 else 0.0
    return replace(plan, cost=replace(cost, lower_bound_usd_per_h=bound, gap=gap))


def _checked(stream: Stream, spread: float | Floats, confidence: float) -> Floats:
    shape, spreads = stream.network.bandwidth_bps.shape, np.asarray(spread, np.float64)
    problems = []
    if not 0.5 < confidence < 1.0:
        problems.append(f"confidence must be more than 0.5 and below 1, not {confidence!r}")
    if spreads.shape not in ((), shape):
        problems.append(f"spread has the shape {spreads.shape}; give one number, or {shape}")
    elif not (np.isfinite(spreads) & (spreads >= 0)).all():
        problems.append("spread must be finite and not negative everywhere")
    if problems:
        raise ConfigError(problems, "confidence")
    return np.broadcast_to(spreads, shape)
