"""Networks and problems for tests: those that ship, and random ones."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from freshet.planner import Network, Problem, RegionLimits, load_network

CLOUDS = Path(__file__).resolve().parents[3] / "examples" / "data" / "cloudcast"


@cache
def clouds(max_vms: int = 2) -> Network:
    """The 71 regions that ship."""
    return load_network(str(CLOUDS), max_vms=max_vms)


INTER_CLOUD = (
    "gcp:asia-southeast1-a",
    (
        "azure:australiaeast",
        "azure:eastasia",
        "aws:ap-southeast-2",
        "azure:brazilsouth",
        "aws:sa-east-1",
        "gcp:australia-southeast1-a",
    ),
)
"""Cloudcast, footnote 5; also a configuration of a public benchmark."""

INTRA_AWS = (
    "aws:ap-northeast-1",
    (
        "aws:me-south-1",
        "aws:eu-south-1",
        "aws:us-west-2",
        "aws:us-east-1",
        "aws:sa-east-1",
        "aws:ap-southeast-1",
    ),
)
"""A configuration of the same benchmark."""


def random_network(
    seed: int,
    regions: int,
    *,
    missing: float = 0.0,
    free_links: float = 0.0,
    free_vms: bool = False,
    max_vms: int = 3,
    slower: float = 0.0,
) -> Network:
    """A network with prices and bandwidths of the size that clouds have.

    Args:
        seed: of everything.
        regions: number of them.
        missing: share of links that there are not.
        free_links: share of links that cost nothing.
        free_vms: whether VMs cost nothing.
        max_vms: most VMs in a region.
        slower: powers of ten by which links may be slower.
    """
    rng = np.random.default_rng(seed)
    shape = (regions, regions)
    price = np.round(rng.uniform(0.01, 0.2, shape), 3)
    price[rng.random(shape) < free_links] = 0.0
    bandwidth = rng.uniform(0.2e9, 12e9, shape)
    bandwidth *= 10.0 ** -rng.uniform(0, slower, shape)
    bandwidth[rng.random(shape) < missing] = 0.0
    np.fill_diagonal(price, 0.0)
    np.fill_diagonal(bandwidth, 0.0)
    limits = tuple(
        RegionLimits(
            egress_bps=float(rng.choice([5e9, 7e9, 16e9, math.inf])),
            ingress_bps=float(rng.choice([10e9, 16e9, math.inf])),
            usd_per_s=0.0 if free_vms else float(rng.choice([0.54, 2.0, 40.0])) / 3600,
            max_vms=int(rng.integers(1, max_vms + 1)),
        )
        for _ in range(regions)
    )
    names = tuple(f"cloud:r{i}" for i in range(regions))
    return Network(names, price, bandwidth, limits)


@st.composite
def problems(draw: st.DrawFn, most_destinations: int = 5) -> Problem:
    """Random problems without a deadline; some can't be solved, for missing links."""
    destinations = draw(st.integers(1, most_destinations))
    regions = destinations + 1 + draw(st.integers(0, 4))
    network = random_network(
        draw(st.integers(0, 10_000)),
        regions,
        missing=draw(st.sampled_from([0.0, 0.3, 0.7])),
        free_links=draw(st.sampled_from([0.0, 0.5, 1.0])),
        free_vms=draw(st.booleans()),
        max_vms=draw(st.sampled_from([1, 3, 40])),
        slower=draw(st.sampled_from([0.0, 4.0])),
    )
    return Problem(
        network,
        network.regions[0],
        network.regions[1 : destinations + 1],
        volume_gb=draw(st.sampled_from([0.001, 100.0, 1e6])),
        stripes=draw(st.sampled_from([None, None, 1, 4])),
    )
