"""Multicast plans for streams: how near the best they are, how long they and changes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.context import Context
from benchmarks.figures import Aim, Figure, Point
from benchmarks.multicast_jobs import clouds, random_job
from freshet.planner import Network, NoPlanError, Replanned, Stream, StreamPlan, plan_stream
from freshet.planner.stream_replanning import replan_stream

MAX_VMS = 5
GB_PER_S = 0.2
FRESHNESS = (1.0, 1.05, 1.3, 2.0)
"""Bounds, over the smallest possible delay: all of them bind for most streams."""

DESTINATIONS = (2, 4, 6, 8, 12, 20)
_FEW = 8
_JOBS = 6
_JOBS_IF_MANY = 2
_PERCENT = 100.0
_EARTH_KM = 6371.0
_KM_PER_S = 2.0e5
"""Of light in fibre."""


def run(context: Context) -> list[Figure]:
    """Gaps, solve times, times to plan anew."""
    network = clouds(MAX_VMS)
    return [figure for count in DESTINATIONS for figure in _figures(context, network, count)]


def _figures(context: Context, network: Network, count: int) -> Iterator[Figure]:
    context.say(f"streams, {count} destinations")
    jobs = 1 if context.quick else _JOBS if count <= _FEW else _JOBS_IF_MANY
    streams = list(_streams(network, count, jobs))
    planned = [(stream, plan) for stream in streams if (plan := _plan(stream)) is not None]
    at = Point("solve time", float(count), "destinations")
    gaps = tuple(plan.cost.gap * _PERCENT for _, plan in planned)
    times = tuple(plan.solve_time_s for _, plan in planned)
    note = f"{len(times)} of {len(streams)} streams have a plan; bounds {FRESHNESS} times the least"
    yield Figure(f"gap to the bound, {count} destinations", "%", gaps, note=note)
    yield Figure(f"largest gap, {count} destinations", "%", (max(gaps),), aim=Aim(0.5))
    yield Figure(f"solve time, {count} destinations", "s", times, aim=Aim(0.5), at=at)
    longest = Aim(3.0 if count <= _FEW else 10.0)
    yield Figure(f"longest solve, {count} destinations", "s", (max(times),), aim=longest)
    again = [replan_stream(plan, _changed(stream)) for stream, plan in planned]
    yield Figure(
        f"time to plan anew, {count} destinations",
        "s",
        tuple(found.plan.solve_time_s for found in again),
        note="the rate rises by 10 %, links of the source lose 10 %",
        details={"data_on_its_tree": _mean_kept(again)},
    )


def _streams(network: Network, count: int, jobs: int) -> Iterator[Stream]:
    """Streams between random regions, with latencies of a sphere and arbitrary ones."""
    rng, n = np.random.default_rng(count), len(network.regions)
    places = rng.normal(size=(n, 3))
    places /= np.linalg.norm(places, axis=1)[:, None]
    angles = np.arccos(np.clip(places @ places.T, -1.0, 1.0))
    on_sphere = 0.002 + 1.5 * angles * _EARTH_KM / _KM_PER_S
    arbitrary = rng.uniform(0.02, 0.2, (n, n))
    for _ in range(jobs):
        job = random_job(network, count, rng)
        for latency in (on_sphere, arbitrary):
            stream = Stream(network, job.source, job.destinations, GB_PER_S, latency_s=latency)
            freshest = stream.fresh_trees().freshest
            assert freshest is not None
            delay_s = stream.delays.slowest(freshest, stream.problem.root)
            for factor in FRESHNESS:
                yield replace(stream, freshness_s=delay_s * factor)


def _plan(stream: Stream) -> StreamPlan | None:
    try:
        return plan_stream(stream)
    except NoPlanError:
        return None


def _changed(stream: Stream) -> Stream:
    network = stream.network
    bandwidth = network.bandwidth_bps.copy()
    bandwidth[stream.problem.root] *= 0.9
    slower = replace(network, bandwidth_bps=bandwidth)
    freshness_s = (stream.freshness_s or 1.0) * 1.01  # chunks take longer
    return replace(stream, network=slower, gb_per_s=stream.gb_per_s * 1.1, freshness_s=freshness_s)


def _mean_kept(found: Iterable[Replanned[StreamPlan]]) -> float:
    return float(np.mean([each.trees_kept for each in found]))
