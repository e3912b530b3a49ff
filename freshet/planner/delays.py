"""How long a chunk of a stream travels along a tree.

A region has all of a chunk before it forwards it (store and forward), so that delays of hops add
up. A hop from u to v takes

    latency_uv + chunk / speed_uv * (1 + load / (2 * (1 - load)))

where the speed is what one VM gives a chunk: the link's bandwidth, at most the sender's egress
limit and the receiver's ingress limit. The last factor is the mean wait behind other chunks in a
queue with Poisson arrivals and equal sizes (M/D/1, Pollaczek and Khinchine) at the largest load
that is allowed; regions with several VMs, and links with less load, wait for less. A chunk's own
copies to other regions count as load like any other; that they leave together is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from freshet.planner.problem import Floats, Network
from freshet.planner.trees import Edge, from_root


@dataclass(frozen=True, eq=False)
class Delays:
    """Delays of one size of chunk in one network.

    Args:
        network: as profiled.
        chunk_bits: bits of a chunk.
        latency_s: that each hop takes beside the transmission, seconds [n, n].
        load: largest share of a link, and of a VM's limits, that is in use; from 0, below 1.
    """

    network: Network
    chunk_bits: float
    latency_s: Floats
    load: float

    @cached_property
    def hops(self) -> Floats:
        """Seconds of a hop [n, n]; infinite where there is no link."""
        network = self.network
        of_ends = np.minimum(network.egress_bps[:, None], network.ingress_bps[None, :])
        speeds = np.where(network.links, np.minimum(network.bandwidth_bps, of_ends), 1.0)
        waiting = 1.0 + self.load / (2.0 * (1.0 - self.load))
        seconds = self.latency_s + waiting * self.chunk_bits / speeds
        return np.where(network.links, seconds, np.inf)

    def arrivals(self, tree: Iterable[Edge], root: int) -> dict[int, float]:
        """Seconds from the root's having a chunk to each region's having it."""
        arrivals = {root: 0.0}
        for u, v in from_root(tree, root):
            arrivals[v] = arrivals[u] + float(self.hops[u, v])
        return arrivals
