"""The evaluation of Cloudcast's paper with this planner: all but what is about solve times."""

from __future__ import annotations

from benchmarks import planner_claims, planner_random, planner_stripes, planner_tradeoff
from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.figures import Figure
from benchmarks.multicast_jobs import MAX_VMS, clouds


def run(context: Context) -> list[Figure | Exhibit]:
    """Claims, Figures 8, 13 and 16."""
    network = clouds(MAX_VMS)
    return [
        *planner_claims.run(context, network),
        *planner_tradeoff.run(context, network),
        *planner_random.run(context, network),
        *planner_stripes.run(context, network),
    ]
