"""Finds the plan that a request asks for, and the best that there is when none does it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from freshet.errors import FreshetError
from freshet.multicast.requests import Answer, Outcome, Request
from freshet.planner import (
    Network,
    NoPlanError,
    RegionLimits,
    Stream,
    StreamPlan,
    Stripe,
    plan_stream,
    replan_stream,
)
from freshet.planner import Outcome as PlanOutcome

_REDUCTIONS = 60
"""Steps until what is asked for is given up: halved so often, no rate is too large."""

_ROOM = 1.01
"""A bound just at the smallest possible delay could be missed by rounding."""


def solve(asked: Request) -> Answer:
    """The plan for a request.

    Raises:
        FreshetError: there is none at all; a destination cannot be reached.
    """
    stream = stream_of(asked)
    running = _running(asked)
    if running is None:
        return _best(stream)
    found = replan_stream(
        running, stream, tolerance=asked.tolerance, time_limit_s=asked.time_limit_s
    )
    if found.outcome is not PlanOutcome.LAST_GOOD:
        outcome = Outcome.KEPT if found.outcome is PlanOutcome.KEPT else Outcome.NEW
        return Answer(merged(found.plan).to_dict(), outcome, "")
    if _leads_everywhere(running, asked):
        return Answer(merged(running).to_dict(), Outcome.LAST_GOOD, found.reason)
    return _best(stream)


def stream_of(asked: Request) -> Stream:
    """The planner's own form of a request.

    Raises:
        ConfigError: it makes no sense.
    """
    network = Network(
        asked.regions,
        np.array(asked.price_usd_per_gb, np.float64),
        np.array(asked.bandwidth_bps, np.float64),
        tuple(limits_of(fields) for fields in asked.limits),
    )
    return Stream(
        network,
        asked.source,
        asked.destinations,
        gb_per_s=asked.gb_per_s,
        freshness_s=asked.freshness_s,
        chunk_mb=asked.chunk_mb,
        latency_s=np.array(asked.latency_s, np.float64),
        stripes=asked.parts,
    )


def limits_of(fields: Mapping[str, Any]) -> RegionLimits:
    """A region's limits from their plain form, where None is no limit."""
    known = {name: math.inf if value is None else value for name, value in fields.items()}
    return RegionLimits(
        egress_bps=known["egress_bps"],
        ingress_bps=known["ingress_bps"],
        usd_per_s=known["usd_per_s"],
        max_vms=int(known["max_vms"]),
        min_vms=int(known["min_vms"]),
    )


def _running(asked: Request) -> StreamPlan | None:
    if asked.running is None:
        return None
    try:
        return split(StreamPlan.from_dict(asked.running), asked.parts)
    except (KeyError, TypeError, ValueError):
        return None  # made without the solver, or by another release


def _leads_everywhere(plan: StreamPlan, asked: Request) -> bool:
    """Whether a plan reaches all destinations on links that there are, if not as well as asked."""
    edges = {edge for stripe in plan.stripes for edge in stripe.edges}
    return set(plan.destinations) == set(asked.destinations) and edges <= asked.links()


def _best(stream: Stream) -> Answer:
    """A plan for the stream, or for as much of it and as fresh as there can be one.

    What is too much for the links is coalesced away in front of them, and what is too late is late;
    neither is a reason to send nothing.
    """
    reason = ""
    for _ in range(_REDUCTIONS):
        try:
            plan = merged(plan_stream(stream)).to_dict()
        except NoPlanError as error:
            reason = reason or str(error)
            stream = _reduced(stream, error)
        else:
            return Answer(plan, Outcome.REDUCED if reason else Outcome.NEW, reason)
    raise FreshetError(reason)


def _reduced(stream: Stream, error: NoPlanError) -> Stream:
    if error.fastest_s is not None and stream.freshness_s is not None:
        return replace(stream, freshness_s=max(error.fastest_s, stream.freshness_s) * _ROOM)
    return replace(stream, gb_per_s=stream.gb_per_s / 2)


def merged(plan: StreamPlan) -> StreamPlan:
    """The same plan with one stripe for each tree."""
    places: dict[frozenset[tuple[str, str]], int] = {}
    stripes: list[Stripe] = []
    kept: dict[int, int] = {}
    for number, stripe in enumerate(plan.stripes):
        key = frozenset(stripe.edges)
        if key not in places:
            kept[number] = places[key] = len(stripes)
            stripes.append(stripe)
        else:
            same = stripes[places[key]]
            stripes[places[key]] = replace(same, fraction=same.fraction + stripe.fraction)
    paths = [replace(path, stripe=kept[path.stripe]) for path in plan.paths if path.stripe in kept]
    return replace(plan, stripes=tuple(stripes), paths=tuple(paths))


def split(plan: StreamPlan, parts: int) -> StreamPlan:
    """The inverse of :func:`merged`, for a plan of so many equal parts.

    A plan of other parts is given as it is: it is a start for another one all the same.
    """
    counts = [round(stripe.fraction * parts) for stripe in plan.stripes]
    if not _are_equal_parts(plan.stripes, counts, parts):
        return plan
    stripes = [
        replace(stripe, fraction=1 / parts)
        for stripe, count in zip(plan.stripes, counts, strict=True)
        for _ in range(count)
    ]
    return replace(plan, stripes=tuple(stripes))


def _are_equal_parts(stripes: Sequence[Stripe], counts: Sequence[int], parts: int) -> bool:
    return sum(counts) == parts and all(
        math.isclose(stripe.fraction * parts, count, abs_tol=1e-6)
        for stripe, count in zip(stripes, counts, strict=True)
    )
