"""The multicast problem: regions with their links and limits, and the job to plan for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from freshet.errors import ConfigError
from freshet.table.checks import suggestion

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BITS_PER_GB = 8e9

MAX_STRIPES = 1000


class Billing(StrEnum):
    """How long VMs are paid for where there is a deadline."""

    DEADLINE = "deadline"
    """Until the deadline (Cloudcast eq. 1)."""

    USED = "used"
    """For the time that the plan takes."""


@dataclass(frozen=True)
class RegionLimits:
    """What one VM of a region can do and costs, and how many there may be."""

    egress_bps: float
    """Bit/s that a VM sends at most, all links together; infinite for no limit."""

    ingress_bps: float
    """Bit/s that a VM receives at most, all links together; infinite for no limit."""

    usd_per_s: float
    """Price of a running VM, $ per second."""

    max_vms: int
    """VMs that the region may have."""

    min_vms: int = 1
    """VMs that the region has at least if a plan uses it."""


@dataclass(frozen=True, eq=False)
class Network:
    """Regions, and what it costs and takes to send from one to another.

    Args:
        regions: names [n], ``provider:region``.
        price_usd_per_gb: $ per GB sent [n, n], from row to column.
        bandwidth_bps: bit/s that a VM of the sender reaches [n, n]; 0 where there is no link.
        limits: of each region [n].
    """

    regions: tuple[str, ...]
    price_usd_per_gb: Floats
    bandwidth_bps: Floats
    limits: tuple[RegionLimits, ...]

    def __post_init__(self) -> None:
        """Rejects what no plan can be made of.

        Raises:
            ConfigError: a shape, a number or a name is wrong; holds every problem.
        """
        problems = [*self._shape_problems()] or [*self._value_problems()]
        if problems:
            raise ConfigError(problems, "network")

    def _shape_problems(self) -> list[str]:
        n, problems = len(self.regions), []
        for name, matrix in (
            ("price_usd_per_gb", self.price_usd_per_gb),
            ("bandwidth_bps", self.bandwidth_bps),
        ):
            if matrix.shape != (n, n):
                problems.append(f"{name} has the shape {matrix.shape}; {n} regions need {(n, n)}")
        if len(self.limits) != n:
            problems.append(f"limits are given for {len(self.limits)} of {n} regions; give all")
        if len(set(self.regions)) != n:
            problems.append("regions has a name twice; give each region once")
        return problems

    def _value_problems(self) -> list[str]:
        problems = []
        for name, matrix in (
            ("price", self.price_usd_per_gb),
            ("bandwidth", self.bandwidth_bps),
        ):
            for i, j in np.argwhere(~(np.isfinite(matrix) & (matrix >= 0))).tolist():
                problems.append(
                    f"{name} from {self.regions[i]} to {self.regions[j]} must be a finite number "
                    f"that is not negative, not {matrix[i, j]:g}"
                )
        for region, limits in zip(self.regions, self.limits, strict=True):
            problems.extend(_limit_problems(region, limits))
        return problems

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each region."""
        return {region: i for i, region in enumerate(self.regions)}

    @cached_property
    def links(self) -> npt.NDArray[np.bool_]:
        """Whether there is a link [n, n]."""
        linked = self.bandwidth_bps > 0
        np.fill_diagonal(linked, False)
        usable = np.array([limits.max_vms > 0 for limits in self.limits])
        links: npt.NDArray[np.bool_] = linked & usable[:, None] & usable[None, :]
        return links

    @cached_property
    def egress_bps(self) -> Floats:
        """Egress limit of a VM [n]."""
        return np.array([limits.egress_bps for limits in self.limits])

    @cached_property
    def ingress_bps(self) -> Floats:
        """Ingress limit of a VM [n]."""
        return np.array([limits.ingress_bps for limits in self.limits])

    @cached_property
    def vm_usd_per_s(self) -> Floats:
        """Price of a VM [n]."""
        return np.array([limits.usd_per_s for limits in self.limits])

    @cached_property
    def max_vms(self) -> Ints:
        """Most VMs [n]."""
        return np.array([limits.max_vms for limits in self.limits], np.int64)

    @cached_property
    def min_vms(self) -> Ints:
        """Fewest VMs of a region that is used [n]."""
        return np.array([limits.min_vms for limits in self.limits], np.int64)

    def with_vms(self, max_vms: int, min_vms: int = 1) -> Network:
        """The same network with other VM limits, the same in all regions."""
        limits = tuple(replace(limit, max_vms=max_vms, min_vms=min_vms) for limit in self.limits)
        return replace(self, limits=limits)


@dataclass(frozen=True, eq=False)
class Problem:
    """A volume that is to get from one region to others, in time and as cheaply as possible.

    Args:
        network: that the data may use.
        source: region that has the data.
        destinations: regions that need all of it.
        volume_gb: GB (10^9 bytes).
        deadline_s: seconds until all destinations must have all data; None for the cheapest plan,
            however long it takes.
        stripes: number of equal parts that the data is cut into, each sent along one tree; None
            for parts of any size.
        billing: how long VMs are paid for; without a deadline always as used.
    """

    network: Network
    source: str
    destinations: tuple[str, ...]
    volume_gb: float
    deadline_s: float | None = None
    stripes: int | None = None
    billing: Billing = Billing.DEADLINE

    def __post_init__(self) -> None:
        """Rejects what can't be planned.

        Raises:
            ConfigError: holds every problem.
        """
        object.__setattr__(self, "destinations", tuple(self.destinations))
        problems = [*self._region_problems(), *self._number_problems()]
        if problems:
            raise ConfigError(problems, "multicast problem")

    def _region_problems(self) -> list[str]:
        known = list(self.network.regions)
        problems = [
            f"{role} {region!r} is unknown{suggestion(region, known)}"
            for role, region in self._endpoints()
            if region not in self.network.index
        ]
        if not self.destinations:
            problems.append("there is no destination; name at least one")
        if self.source in self.destinations:
            problems.append(f"destination {self.source!r} is the source; leave it out")
        repeated = {d for d in self.destinations if self.destinations.count(d) > 1}
        problems.extend(f"destination {region!r} is given twice" for region in sorted(repeated))
        return problems + [
            f"{role} {region!r} may have no VM; raise its max_vms"
            for role, region in self._endpoints()
            if region in self.network.index
            and self.network.limits[self.network.index[region]].max_vms < 1
        ]

    def _endpoints(self) -> list[tuple[str, str]]:
        return [("source", self.source), *(("destination", region) for region in self.destinations)]

    def _number_problems(self) -> list[str]:
        problems = []
        if not (math.isfinite(self.volume_gb) and self.volume_gb > 0):
            problems.append(f"volume_gb must be more than 0, not {self.volume_gb!r}")
        if self.deadline_s is not None and not (
            math.isfinite(self.deadline_s) and self.deadline_s > 0
        ):
            problems.append(f"deadline_s must be more than 0, not {self.deadline_s!r}")
        if self.stripes is not None and not 1 <= self.stripes <= MAX_STRIPES:
            problems.append(f"stripes must be from 1 to {MAX_STRIPES}, not {self.stripes!r}")
        return problems

    @property
    def billed_s(self) -> float | None:
        """Seconds that VMs are paid for if that is fixed; None if it is the plan's own time."""
        return self.deadline_s if self.billing is Billing.DEADLINE else None

    @property
    def bits(self) -> float:
        """The volume in bits."""
        return self.volume_gb * BITS_PER_GB

    @cached_property
    def root(self) -> int:
        """Index of the source."""
        return self.network.index[self.source]

    @cached_property
    def terminals(self) -> tuple[int, ...]:
        """Indexes of the destinations."""
        return tuple(self.network.index[region] for region in self.destinations)

    def with_deadline(self, deadline_s: float | None) -> Problem:
        """The same problem with another deadline."""
        return replace(self, deadline_s=deadline_s)


def edge_names(network: Network, edges: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    """Edges by the names of their regions."""
    return [(network.regions[u], network.regions[v]) for u, v in edges]


def _limit_problems(region: str, limits: RegionLimits) -> list[str]:
    problems = []
    for name in ("egress_bps", "ingress_bps"):
        value = getattr(limits, name)
        if not value > 0:
            problems.append(f"{name} of {region} must be more than 0, not {value:g}")
    if not (math.isfinite(limits.usd_per_s) and limits.usd_per_s >= 0):
        problems.append(f"usd_per_s of {region} must not be negative, not {limits.usd_per_s:g}")
    if limits.max_vms < 0:
        problems.append(f"max_vms of {region} must not be negative, not {limits.max_vms}")
    if limits.min_vms < 1 or (limits.max_vms and limits.min_vms > limits.max_vms):
        problems.append(
            f"min_vms of {region} must be from 1 to its max_vms ({limits.max_vms}), "
            f"not {limits.min_vms}"
        )
    return problems
