"""What a running deployment looks like at one moment: a value, and its JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from freshet.multicast.standing import LinkStanding, Standing
from freshet.stack.flink_rest import JobStatus


@dataclass(frozen=True)
class SourceStatus:
    """A server that a snapshot is read from."""

    name: str
    """Such as ``Flink`` or ``Redis of aws:eu-west-1``."""

    read_ago_s: float | None
    """Since it was last read, seconds; None if it never was."""

    error: str | None
    """Why it cannot be read now; what it said last is shown on."""


@dataclass(frozen=True)
class TableStatus:
    """One table at home. What no source tells is None."""

    table: str
    policy: str | None = None
    slo_ms: int | None = None
    """Freshness SLO of its definition: from computing to readable in every region."""

    keys: int | None = None
    pending_keys: int | None = None
    """Keys with data that their feature does not have yet."""

    regret: float | None = None
    """Estimated, summed over keys; in the unit of the fed-back error."""

    changes: int | None = None
    """Change events that were ever written to the table's topic."""

    updates_per_s: float | None = None
    """Change events a second, over the last seconds."""

    events_per_s: float | None = None
    """Events a second that arrived, over the last seconds."""

    updates_failed: int | None = None
    """Computations that failed since the job's last start."""

    staleness_p50_ms: float | None = None
    """From event time to written in home's store: the worst of the job's subtasks."""

    staleness_p99_ms: float | None = None
    dead_letters: int | None = None
    """Inputs that were ever sent to the table's dead-letter topic."""


@dataclass(frozen=True)
class Snapshot:
    """Everything that is shown of a deployment."""

    taken_at_ms: int
    """Wall clock of the reader, epoch milliseconds."""

    took_ms: float
    home_region: str
    sources: tuple[SourceStatus, ...]
    jobs: tuple[JobStatus, ...]
    """Newest first."""

    tables: tuple[TableStatus, ...]
    regions: tuple[Standing, ...]
    """One for each table in each region away from home."""

    links: tuple[LinkStanding, ...]
    plans: Mapping[str, Mapping[str, Any]]
    """The plan in force of each table, as the multicast job reports it."""

    usd: float | None
    """Cost of egress since the jobs' first start; None if a price is not known."""

    usd_per_h: float | None
    """Cost of egress at the pace of the last seconds."""

    @property
    def problems(self) -> list[str]:
        """What cannot be read, a line each."""
        return [
            f"{source.name}: {source.error}{_since(source)}"
            for source in self.sources
            if source.error is not None
        ]

    def to_dict(self) -> dict[str, Any]:
        """The snapshot as JSON types."""
        return {
            "taken_at_ms": self.taken_at_ms,
            "took_ms": self.took_ms,
            "home_region": self.home_region,
            "sources": [asdict(source) for source in self.sources],
            "jobs": [job._asdict() for job in self.jobs],
            "tables": [asdict(table) for table in self.tables],
            "regions": [region.to_dict() for region in self.regions],
            "links": [link.to_dict() for link in self.links],
            "plans": dict(self.plans),
            "usd": self.usd,
            "usd_per_h": self.usd_per_h,
        }


def _since(source: SourceStatus) -> str:
    ago_s = source.read_ago_s
    return "" if ago_s is None else f" (what it last told is {ago_s:.0f} s old)"
