"""Finds the plan that a request asks for, and the best that there is when none does it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from freshet.errors import FreshetError
from freshet.multicast.attainable import attainable
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


def solve(asked: Request) -> Answer:
    """The plan for a request.

    Raises:
        FreshetError: there is none at all; a destination cannot be reached.
    """
    running, (stream, reasons) = _running(asked), attainable(stream_of(asked))
    if running is None:
        return _best(stream, reasons)
    return _close(running, stream, reasons, asked)


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


def _close(running: StreamPlan, stream: Stream, reasons: list[str], asked: Request) -> Answer:
    """A plan for the stream, or for as much of it as there can be one, close to the running one."""
    given_up_at = time.monotonic() + asked.time_limit_s
    for _ in range(_REDUCTIONS):
        left_s = given_up_at - time.monotonic()
        found = replan_stream(running, stream, tolerance=asked.tolerance, time_limit_s=left_s)
        if found.outcome is not PlanOutcome.LAST_GOOD:
            outcome = Outcome.KEPT if found.outcome is PlanOutcome.KEPT else Outcome.NEW
            return _answer(found.plan, outcome, reasons)
        if found.is_possible:
            break
        reasons = reasons or [found.reason]
        stream = _halved(stream)
    if _leads_everywhere(running, asked):
        return Answer(merged(running).to_dict(), Outcome.LAST_GOOD, found.reason)
    return _best(stream, reasons)


def _best(stream: Stream, reasons: list[str]) -> Answer:
    """A plan for the stream, or for as much of it as there can be one."""
    for _ in range(_REDUCTIONS):
        try:
            plan = plan_stream(stream)
        except NoPlanError as error:
            reasons = reasons or [str(error)]
            stream = _halved(stream)
        else:
            return _answer(plan, Outcome.NEW, reasons)
    raise FreshetError("; ".join(reasons))


def _answer(plan: StreamPlan, outcome: Outcome, reasons: list[str]) -> Answer:
    outcome = Outcome.REDUCED if reasons else outcome
    return Answer(merged(plan).to_dict(), outcome, "; ".join(reasons))


def _halved(stream: Stream) -> Stream:
    """What is too much for the links is coalesced away in front of them."""
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
