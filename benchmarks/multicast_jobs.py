"""Multicast jobs to plan: those of Cloudcast's paper and of a public benchmark, and random ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.context import REPOSITORY
from freshet.planner import Network, Problem, load_network

MAX_VMS = 5
"""In each region; the paper tells no number."""

PROFILES = str(REPOSITORY / "examples" / "data" / "cloudcast")


@dataclass(frozen=True)
class Job:
    """What is to be sent where."""

    name: str
    source: str
    destinations: tuple[str, ...]
    volume_gb: float

    def on(self, network: Network, stripes: int | None = None) -> Problem:
        """The job as a problem without a deadline."""
        return Problem(network, self.source, self.destinations, self.volume_gb, stripes=stripes)


def _job(name: str, provider: str, source: str, destinations: str, volume_gb: float = 100.0) -> Job:
    prefix = f"{provider}:" if provider else ""
    names = tuple(prefix + region for region in destinations.split())
    return Job(name, prefix + source, names, volume_gb)


PAPER = (
    _job(
        "simulated, between clouds (1)",
        "",
        "gcp:asia-southeast1-a",
        "azure:eastasia aws:af-south-1 azure:brazilsouth aws:sa-east-1",
    ),
    _job(
        "AWS (2)",
        "aws",
        "ap-east-1",
        "us-west-1 ap-northeast-3 eu-north-1 ap-south-1 ca-central-1 ap-northeast-1",
    ),
    _job(
        "Azure (3)",
        "azure",
        "brazilsouth",
        "westeurope westus koreacentral australiaeast uaenorth centralindia",
    ),
    _job(
        "Google Cloud (4)",
        "gcp",
        "asia-southeast2-a",
        "australia-southeast1-a southamerica-east1-a europe-west4-a europe-west6-a asia-east1-a "
        "europe-west2-a",
    ),
    _job(
        "between clouds (5)",
        "",
        "gcp:asia-southeast1-a",
        "azure:australiaeast azure:eastasia aws:ap-southeast-2 azure:brazilsouth aws:sa-east-1 "
        "gcp:australia-southeast1-a",
    ),
    _job(
        "model of 122 GB in AWS (6)",
        "aws",
        "ap-east-1",
        "ap-southeast-2 ap-south-1 ap-northeast-3 ap-northeast-2 ap-northeast-1",
        122.0,
    ),
)
"""Cloudcast, footnotes 1 to 6 of its section 5."""

PUBLIC = (
    _job(
        "intra_aws",
        "aws",
        "ap-northeast-1",
        "me-south-1 eu-south-1 us-west-2 us-east-1 sa-east-1 ap-southeast-1",
        300.0,
    ),
    Job("inter_agz", PAPER[4].source, PAPER[4].destinations, 300.0),
)
"""Configurations of a public benchmark (examples/adrs/cloudcast of gepa-ai/gepa)."""

PUBLIC_VMS = 2
PUBLIC_STRIPES = 10


def clouds(max_vms: int) -> Network:
    """The 71 regions that ship."""
    return load_network(PROFILES, max_vms=max_vms)


def random_job(network: Network, destinations: int, rng: np.random.Generator) -> Job:
    """A job between regions picked at random."""
    picked = [network.regions[i] for i in rng.permutation(len(network.regions))]
    return Job(f"random, {destinations}", picked[0], tuple(picked[1 : destinations + 1]), 100.0)
