"""What a plan sends over each link, for tables and pictures: of batches and of streams alike."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.planner.plan import Plan
from freshet.planner.problem import BITS_PER_GB, Network
from freshet.planner.stream import StreamPlan
from freshet.planner.trees import Edge

Edges = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class LinkUse:
    """One link, with what all trees send over it."""

    amount: float
    """GB of a batch, GB/s of a stream."""

    price_usd_per_gb: float | None
    """None where the network does not have the link."""

    load: float | None
    """Share of the bandwidth of the sender's VMs: over the time that a batch has, or always."""


@dataclass(frozen=True)
class Flow:
    """The trees of a plan without repetition, and the links that they use."""

    trees: tuple[tuple[Edges, float], ...]
    """With the share of the data that each takes; largest first."""

    amount: float
    """GB of a batch, GB/s of a stream."""

    unit: str
    """Of the amounts: GB or GB/s."""

    links: dict[tuple[str, str], LinkUse]

    @property
    def regions(self) -> list[str]:
        """All that data passes, by name."""
        return sorted({region for edge in self.links for region in edge})


def flow_of(plan: Plan | StreamPlan, network: Network) -> Flow:
    """Sums up a plan by trees and by links.

    Args:
        plan: whose regions may be missing in the network.
        network: with prices and bandwidths.
    """
    shares: dict[Edges, float] = {}
    for stripe in plan.stripes:
        shares[stripe.edges] = shares.get(stripe.edges, 0.0) + stripe.fraction
    carried: dict[tuple[str, str], float] = {}
    for edges, share in shares.items():
        for edge in edges:
            carried[edge] = carried.get(edge, 0.0) + share
    if isinstance(plan, StreamPlan):
        amount, unit, gb_per_s = plan.gb_per_s, "GB/s", plan.gb_per_s
    else:
        amount, unit, gb_per_s = plan.volume_gb, "GB", plan.volume_gb / plan.time_budget_s
    links = {}
    for (u, v), share in sorted(carried.items()):
        price = load = None
        link = _link(network, u, v)
        if link is not None:
            price = float(network.price_usd_per_gb[link])
            bandwidth_bps = float(network.bandwidth_bps[link]) * plan.vms[u]
            load = share * gb_per_s * BITS_PER_GB / bandwidth_bps
        links[u, v] = LinkUse(share * amount, price, load)
    trees = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return Flow(tuple(trees), amount, unit, links)


def _link(network: Network, u: str, v: str) -> Edge | None:
    if u not in network.index or v not in network.index:
        return None
    edge = network.index[u], network.index[v]
    return edge if network.links[edge] else None
