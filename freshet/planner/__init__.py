"""Multicast plans: how all data gets from one region to others in time, as cheaply as possible.

network = load_network("examples/data/cloudcast")
problem = Problem(network, "aws:us-east-1", ("gcp:europe-west4-a",), volume_gb=100)
plan = make_plan(problem)
"""

from __future__ import annotations

from freshet.planner.algorithms import ALGORITHMS, Algorithm, make_plan
from freshet.planner.cache import PlanCache
from freshet.planner.confidence import ConfidentPlan, plan_with_confidence, price_of_certainty
from freshet.planner.errors import NoPlanError
from freshet.planner.plan import Cost, Plan, Stripe
from freshet.planner.problem import Billing, Network, Problem, RegionLimits
from freshet.planner.profiles import load_network
from freshet.planner.replanning import Outcome, Replanned, replan
from freshet.planner.stream import Stream, StreamPlan, plan_stream
from freshet.planner.stream_replanning import replan_stream

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Billing",
    "ConfidentPlan",
    "Cost",
    "Network",
    "NoPlanError",
    "Outcome",
    "Plan",
    "PlanCache",
    "Problem",
    "RegionLimits",
    "Replanned",
    "Stream",
    "StreamPlan",
    "Stripe",
    "load_network",
    "make_plan",
    "plan_stream",
    "plan_with_confidence",
    "price_of_certainty",
    "replan",
    "replan_stream",
]
