"""What the planner of the multicast job knows before the first report, as it travels in the job."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Link = tuple[str, str]
"""From a region to another."""


@dataclass(frozen=True)
class PlannedTable:
    """A table that is planned for."""

    table: str
    destinations: tuple[str, ...]
    """Regions that serve it, home left out."""

    shards: int
    """Partitions of its changes topic; each takes one tree."""

    slo_ms: int
    """From ``computed_at`` to readable in every region."""


@dataclass(frozen=True)
class Thresholds:
    """When a plan is made anew, and what counts as gone, down or slow."""

    volume_factor: float = 1.5
    """A change of a table's volume by more than this."""

    speed_factor: float = 2.0
    """A change of a link's usable speed by more than this."""

    min_interval_ms: int = 2_000
    """Between two plans of a table, at least."""

    silent_region_ms: int = 5_000
    """Without a report a region that was heard counts as gone after this."""

    unheard_region_ms: int = 15_000
    """A region that never reported counts as gone after this."""

    back_region_ms: int = 2_000
    """A region that was gone counts as back when it has reported for so long."""

    silent_link_ms: int = 2_000
    """A link counts as down when something was under way on it for so long without an answer."""

    hold_ms: int = 10_000
    """A link that went down is tried again after this; after twice as long each further time."""

    hold_ms_max: int = 300_000

    slow_hold_ms: int = 120_000
    """What was measured of a link that could not carry more holds for so long."""

    volume_window_ms: int = 10_000
    """Volumes and loads are means over so long."""

    bytes_per_s_min: float = 10_000.0
    """A table's volume before it is measured, and the least that is planned for."""

    latency_ms: float = 50.0
    """Of a link on which nothing was measured, one way."""

    time_limit_ms: int = 5_000
    """What planning may take; then the last good plan stays."""

    retry_ms: int = 30_000
    """Planning that failed is tried again after this, if nothing changes before."""

    tolerance: float = 0.01
    """Cost that staying close to the running plan is worth, over the best plan's."""

    max_parts: int = 8
    """Most equal parts that a table is cut into, each with one tree."""


@dataclass(frozen=True)
class PlainNetwork:
    """Prices and bandwidths between the regions of the deployment, without numpy.

    The fields are those of ``freshet.planner.Network``, which takes seconds to import.
    """

    regions: tuple[str, ...]
    price_usd_per_gb: tuple[tuple[float, ...], ...]
    bandwidth_bps: tuple[tuple[float, ...], ...]
    limits: tuple[Mapping[str, float | None], ...]
    """Fields of ``RegionLimits`` by name; None for no limit."""

    def links(self) -> dict[Link, float]:
        """Bandwidth of every link that there is, bit/s."""
        return {
            (u, v): self.bandwidth_bps[i][j]
            for i, u in enumerate(self.regions)
            for j, v in enumerate(self.regions)
            if i != j and self.bandwidth_bps[i][j] > 0
        }

    def prices(self) -> dict[Link, float]:
        """Price of every link that there is, USD/GB."""
        index = {region: i for i, region in enumerate(self.regions)}
        return {(u, v): self.price_usd_per_gb[index[u]][index[v]] for u, v in self.links()}


@dataclass(frozen=True)
class PlannerSettings:
    """Everything that plans follow from, beside what is reported."""

    home: str
    tables: tuple[PlannedTable, ...]
    network: PlainNetwork
    """Of home and the configured regions, no others."""

    thresholds: Thresholds = field(default_factory=Thresholds)

    def to_json(self) -> str:
        """The settings as JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PlannerSettings:
        """The inverse of :meth:`to_json`.

        Raises:
            KeyError, TypeError, ValueError: it is no such JSON.
        """
        data: dict[str, Any] = json.loads(text)
        network = data["network"]
        return cls(
            home=data["home"],
            tables=tuple(
                PlannedTable(**{**table, "destinations": tuple(table["destinations"])})
                for table in data["tables"]
            ),
            network=PlainNetwork(
                tuple(network["regions"]),
                tuple(tuple(row) for row in network["price_usd_per_gb"]),
                tuple(tuple(row) for row in network["bandwidth_bps"]),
                tuple(network["limits"]),
            ),
            thresholds=Thresholds(**data["thresholds"]),
        )
