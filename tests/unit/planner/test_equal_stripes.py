"""Goal: with few equal stripes plans are as good as single trees, and VMs are counted right.

Method: the program for one stripe is compared with all trees of a small graph; plans are compared
with single trees that all stripes take.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from freshet.planner import NoPlanError, Problem, make_plan
from freshet.planner.mixes import mix_of
from freshet.planner.model import egress_usd, instance_usd, shares_of
from freshet.planner.optimal.one_stripe import Room, cheapest_edges
from freshet.planner.optimal.planner import fastest_possible
from freshet.planner.optimal.search import cheapest_vms
from freshet.planner.problem import Floats
from freshet.planner.steiner import all_sets
from tests.unit.planner.checker import assert_valid
from tests.unit.planner.networks import INTRA_AWS, clouds, random_network

FOOTNOTE_2 = (
    "aws:ap-east-1",
    (
        "aws:us-west-1",
        "aws:ap-northeast-3",
        "aws:eu-north-1",
        "aws:ap-south-1",
        "aws:ca-central-1",
        "aws:ap-northeast-1",
    ),
)
"""Cloudcast, footnote 2."""

_NODES = 5
_TERMINALS = (1, 2, 3)


def _cheapest_of_all_trees(weights: Floats, room: Room) -> float:
    """Over all parents of all nodes but the root, which is 0."""
    best = np.inf
    for parents in product(range(-1, _NODES), repeat=_NODES - 1):
        parent = {v: u for v, u in enumerate(parents, 1) if u >= 0}
        if all(_leads_to_root(v, parent) for v in {*parent, *_TERMINALS}):
            links = sum(weights[u, v] for v, u in parent.items())
            best = min(best, links + sum(_vm_usd(u, parent, room) for u in {0, *parent}))
    return best


def _leads_to_root(v: int, parent: dict[int, int]) -> bool:
    for _ in range(_NODES):
        v = parent.get(v, -1) if v > 0 else v
    return v == 0


def _vm_usd(u: int, parent: dict[int, int], room: Room) -> float:
    children = [v for v, before in parent.items() if before == u]
    possible = [
        usd[u]
        for usd, most, links in zip(room.vm_usd, room.branches, room.open, strict=True)
        if len(children) <= most[u] and links[u, children].all()
    ]
    return min(possible, default=np.inf)


def _random_room(rng: np.random.Generator) -> Room:
    branches = np.sort(rng.integers(0, 3, (3, _NODES)), axis=0)
    branches[-1, :2] = 2
    return Room(
        vm_usd=np.sort(rng.random((3, _NODES)), axis=0) / 2,
        branches=branches,
        open=np.sort(rng.random((3, _NODES, _NODES)) < 0.5, axis=0),
        complete=True,
    )


@pytest.mark.parametrize("seed", range(8))
def test_one_stripe_is_as_cheap_as_any_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, room = rng.random((_NODES, _NODES)), _random_room(rng)
    np.fill_diagonal(weights, np.inf)
    edges, usd = cheapest_edges(weights, room, 0, _TERMINALS, all_sets(len(_TERMINALS)))
    least = _cheapest_of_all_trees(weights, room)
    ends = [v for _, v in edges]
    if len(set(ends)) == len(ends):  # no region is on two branches
        assert usd == pytest.approx(least)
    else:
        assert usd <= least


@pytest.mark.parametrize("stripes", [1, 2, 3, 8])
@pytest.mark.parametrize("tightness", [1.0, 1.1, 2.0])
def test_not_dearer_than_a_single_tree(stripes: int, tightness: float) -> None:
    for seed in range(3):
        network = random_network(seed, 8, free_vms=seed == 0)
        problem = Problem(network, network.regions[0], network.regions[1:5], 100.0, stripes=stripes)
        problem = problem.with_deadline(fastest_possible(problem).seconds * tightness)
        plan = make_plan(problem)
        assert_valid(json.loads(plan.to_json()), problem)
        for name in ("steiner", "mdst", "direct"):
            assert plan.cost.total_usd <= _repeated_usd(problem, name) * (1 + 5e-4), (seed, name)


def _repeated_usd(problem: Problem, name: str) -> float:
    """Cost if all stripes take an algorithm's tree, with the fewest VMs; infinite if too late."""
    try:
        plan = make_plan(replace(problem, deadline_s=None), name)
    except NoPlanError:
        return np.inf  # it needs a link that is missing
    mix = mix_of(plan.stripes, problem.network)
    assert len(mix) == 1
    shares = shares_of(problem, mix)
    chosen = cheapest_vms(problem, shares)
    if chosen is None:
        return np.inf
    return egress_usd(problem, shares) + instance_usd(problem, *chosen)


@pytest.mark.parametrize(("stripes", "most_usd", "gap"), [(1, 32.8, 1e-3), (2, 20.3, 0.1)])
def test_regions_that_cannot_branch(stripes: int, most_usd: float, gap: float) -> None:
    """Egress limits let a region in AWS send one and a half times the data: one stripe, or three.

    A plan of the trees for parts of any size costs about $100 here.
    """
    problem = Problem(clouds(5), *FOOTNOTE_2, volume_gb=100.0, deadline_s=48.0, stripes=stripes)
    plan = make_plan(problem)
    assert_valid(json.loads(plan.to_json()), problem)
    assert plan.cost.total_usd <= most_usd
    assert plan.cost.gap <= gap


def test_open_time() -> None:
    problem = Problem(clouds(5), *INTRA_AWS, volume_gb=100.0, stripes=1)
    single = _repeated_usd(problem, "steiner")
    assert make_plan(problem).cost.total_usd <= single * (1 + 5e-4)
