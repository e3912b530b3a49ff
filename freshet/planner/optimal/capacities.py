"""What one VM carries in a unit of time, as fractions of the volume, as tight as is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from freshet.planner.problem import Floats, Ints, Problem

_ROUNDING = 1e-9
"""A capacity that misses a whole stripe by so little, relatively, carries it."""


@dataclass(frozen=True, eq=False)
class Capacities:
    """Fractions of the volume that a VM carries in a unit of time."""

    links: Floats
    """Along each link, 0 where there is none [n, n]."""

    egress: Floats
    """Out of each region [n], infinite for no limit."""

    ingress: Floats
    """Into each region [n], never infinite."""

    root: int

    all_may_bind: bool = False

    @cached_property
    def may_bind(self) -> npt.NDArray[np.bool_]:
        """Whether a link's capacity says more than those of its sender [n, n].

        What a link carries has come into its sender, and leaves it.
        """
        if self.all_may_bind:
            return self.links >= 0
        into = self.ingress.copy()
        into[self.root] = np.inf
        tighter: npt.NDArray[np.bool_] = self.links < np.minimum(self.egress, into)[:, None]
        return tighter


def whole_capacities(problem: Problem, unit_s: float, least_time: float) -> Capacities:
    """Capacities for stripes of any size.

    Args:
        problem: that is solved.
        unit_s: seconds in the unit of time.
        least_time: units that every plan takes at least. Nothing carries more than all data, so
            that a VM is needed for each fraction of the data that passes: at most
            1 / least_time of it for each of its units of time.
    """
    network, scale, most = problem.network, unit_s / problem.bits, 1.0 / least_time
    copies = len(network.regions)
    egress = np.where(
        np.isfinite(network.egress_bps),
        np.minimum(network.egress_bps * scale, copies * most),
        np.inf,
    )
    return Capacities(
        links=np.minimum(np.where(network.links, network.bandwidth_bps, 0.0) * scale, most),
        egress=egress,
        ingress=np.minimum(network.ingress_bps * scale, most),
        root=problem.root,
    )


def striped_capacities(whole: Capacities, stripes: int, low: Ints, high: Ints) -> Capacities:
    """Capacities for equal stripes until a fixed deadline (t = 1).

    N VMs carry only whole stripes, floor(N * c) of them. The most for one of them over the
    possible N is a capacity that no plan exceeds, tighter than c, and exact once N is known.

    Args:
        whole: for stripes of any size.
        stripes: number of stripes.
        low: fewest VMs of each region [n].
        high: most VMs of each region [n].
    """
    return Capacities(
        links=_tightened(whole.links, stripes, low[:, None], high[:, None]),
        egress=_tightened(whole.egress, stripes, low, high),
        ingress=_tightened(whole.ingress, stripes, low, high),
        root=whole.root,
        all_may_bind=True,
    )


def _tightened(whole: Floats, stripes: int, low: Ints, high: Ints) -> Floats:
    counts = np.where(np.isfinite(whole), whole, 0.0) * stripes * (1 + _ROUNDING)
    best = np.zeros_like(counts)
    for vms in range(1, int(high.max(initial=0)) + 1):
        possible = (vms >= low) & (vms <= high)
        best = np.maximum(best, np.where(possible, np.floor(counts * vms) / vms, 0.0))
    return np.where(np.isfinite(whole), np.minimum(best / stripes, whole), np.inf)
