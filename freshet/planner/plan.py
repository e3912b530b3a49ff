"""A multicast plan: which part of the data takes which tree, and how many VMs forward it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stripe:
    """A part of the data, and the tree that it takes."""

    fraction: float
    """Of the volume; those of a plan sum to 1."""

    edges: tuple[tuple[str, str], ...]
    """(from, to), each after the edge that leads to its beginning."""

    def to_dict(self) -> dict[str, Any]:
        """The stripe as JSON types."""
        return {"fraction": self.fraction, "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Stripe:
        """Reads what ``to_dict`` gave.

        Raises:
            KeyError, TypeError, ValueError: it is no stripe.
        """
        return cls(float(data["fraction"]), tuple((u, v) for u, v in data["edges"]))


@dataclass(frozen=True)
class Cost:
    """What a plan costs, in $."""

    egress_usd: float
    """For data sent between regions."""

    instance_usd: float
    """For VMs until the time budget is over."""

    total_usd: float
    lower_bound_usd: float
    """No plan for the same job costs less; 0 where the algorithm proves nothing."""

    gap: float
    """(total - lower bound) / total."""


@dataclass(frozen=True)
class Plan:
    """A plan, as design and as result."""

    source: str
    destinations: tuple[str, ...]
    volume_gb: float
    stripes: tuple[Stripe, ...]
    vms: Mapping[str, int]
    """VMs in each region that is used."""

    time_budget_s: float
    """Seconds that VMs are billed for: the deadline, or the predicted time without one."""

    cost: Cost
    predicted_time_s: float
    """Seconds until the last destination has everything, were all bandwidths as profiled."""

    cost_as_used_usd: float
    """The total, were VMs billed only for the predicted time."""

    algorithm: str
    solve_time_s: float

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON types."""
        return {
            "source": self.source,
            "destinations": list(self.destinations),
            "volume_gb": self.volume_gb,
            "stripes": [stripe.to_dict() for stripe in self.stripes],
            "vms": dict(self.vms),
            "time_budget_s": self.time_budget_s,
            "cost": {
                "egress_usd": self.cost.egress_usd,
                "instance_usd": self.cost.instance_usd,
                "total_usd": self.cost.total_usd,
                "lower_bound_usd": self.cost.lower_bound_usd,
                "gap": self.cost.gap,
            },
            "predicted_time_s": self.predicted_time_s,
            "cost_as_used_usd": self.cost_as_used_usd,
            "algorithm": self.algorithm,
            "solve_time_s": self.solve_time_s,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Reads what ``to_dict`` gave.

        Raises:
            KeyError, TypeError, ValueError: it is no plan.
        """
        return cls(
            source=data["source"],
            destinations=tuple(data["destinations"]),
            volume_gb=float(data["volume_gb"]),
            stripes=tuple(Stripe.from_dict(stripe) for stripe in data["stripes"]),
            vms={region: int(count) for region, count in data["vms"].items()},
            time_budget_s=float(data["time_budget_s"]),
            cost=Cost(**{name: float(value) for name, value in data["cost"].items()}),
            predicted_time_s=float(data["predicted_time_s"]),
            cost_as_used_usd=float(data["cost_as_used_usd"]),
            algorithm=data["algorithm"],
            solve_time_s=float(data["solve_time_s"]),
        )

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(self.to_dict(), indent=2) + "\n"
