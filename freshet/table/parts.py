"""The parts of a table definition: window extent, compute budget, computing on demand, source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from freshet.durations import DurationLike, parse_duration_ms
from freshet.table.checks import Problems

MAX_WINDOW_POINTS = 10_000_000
MAX_BYTES = (1 << 31) - 1

SourceKind = Literal["scalar", "vector", "json"]


@dataclass(frozen=True)
class Points:
    """A window of the newest points of a key."""

    count: int
    """Number of points, at least 1."""

    def to_dict(self) -> dict[str, Any]:
        """As the Java side reads it."""
        return {"points": self.count}

    def check(self, problems: Problems) -> None:
        """Adds what is wrong."""
        problems.integer("window.points", self.count, 1, MAX_WINDOW_POINTS)


@dataclass(frozen=True)
class Duration:
    """A window of a length in event time, back from a key's newest event."""

    length: DurationLike
    """Such as "3d"."""

    def to_dict(self) -> dict[str, Any]:
        """As the Java side reads it."""
        return {"duration_ms": parse_duration_ms(self.length)}

    def check(self, problems: Problems) -> None:
        """Adds what is wrong."""
        problems.duration("window.duration", self.length, 1)


WindowExtent = Points | Duration
"""How far back a window reaches."""


@dataclass(frozen=True)
class TimeShare:
    """Computes for at most a share of each subtask's time."""

    share: float
    """In (0, 1]; 1 computes whenever something is pending."""

    def to_dict(self) -> dict[str, Any]:
        """As the Java side reads it."""
        return {"kind": "time-share", "share": float(self.share)}

    def check(self, problems: Problems) -> None:
        """Adds what is wrong."""
        problems.number("budget.share", self.share, lambda v: 0 < v <= 1, "above 0 and at most 1")


@dataclass(frozen=True)
class Rate:
    """At most so many updates a second over all subtasks, such as a third party's limit."""

    updates_per_second: float
    """Above 0."""

    burst: float | None = None
    """Most updates at once after a time without any, at least 1; None: one second's worth. It is
    divided among the subtasks, of which each may make at least one."""

    def to_dict(self) -> dict[str, Any]:
        """As the Java side reads it."""
        return {
            "kind": "rate",
            "updates_per_second": float(self.updates_per_second),
            "burst": None if self.burst is None else float(self.burst),
        }

    def check(self, problems: Problems) -> None:
        """Adds what is wrong."""
        problems.number(
            "budget.updates_per_second", self.updates_per_second, lambda v: v > 0, "above 0"
        )
        if self.burst is not None:
            problems.number("budget.burst", self.burst, lambda v: v >= 1, "at least 1")


@dataclass(frozen=True)
class EventTimeStep:
    """Computes so many updates in each step of event time.

    Independent of how fast the events come, so that replaying the same events and feedback
    computes the same keys in the same order with the same versions.
    """

    updates: float
    """Updates in a step, above 0; a fraction carries over to later steps."""

    step: DurationLike
    """Such as "1h"."""

    initial_updates: float = 0
    """Updates granted once at the start, at least 0: for instance one for each key."""

    def to_dict(self) -> dict[str, Any]:
        """As the Java side reads it."""
        return {
            "kind": "event-time-step",
            "updates_per_step": float(self.updates),
            "step_ms": parse_duration_ms(self.step),
            "initial_updates": float(self.initial_updates),
        }

    def check(self, problems: Problems) -> None:
        """Adds what is wrong."""
        problems.number("budget.updates", self.updates, lambda v: v > 0, "above 0")
        problems.duration("budget.step", self.step, 1)
        problems.number(
            "budget.initial_updates", self.initial_updates, lambda v: v >= 0, "at least 0"
        )


Budget = TimeShare | Rate | EventTimeStep
"""How much a table may compute."""

BUDGETS: dict[str, type[Budget]] = {
    "time-share": TimeShare,
    "rate": Rate,
    "event-time-step": EventTimeStep,
}
"""The budgets by their names in YAML."""


@dataclass(frozen=True)
class OnDemand:
    """Computes a key only for those who read it: events wait until someone does.

    A client that finds a value missing or too stale asks for a newer one, and waits a little. Keys
    are computed in the order in which they were first asked for.
    """

    max_staleness: DurationLike
    """Such as "5m": readers ask for a newer value when the event time of theirs is older."""

    max_wait: DurationLike = "500ms"
    """How long a reader waits for it before it takes what there is."""

    def to_dict(self) -> dict[str, Any]:
        """As the Java side and clients read it."""
        return {
            "max_staleness_ms": parse_duration_ms(self.max_staleness),
            "max_wait_ms": parse_duration_ms(self.max_wait),
        }

    def check(self, problems: Problems) -> None:
        """Adds what is wrong."""
        problems.duration("on_demand.max_staleness", self.max_staleness, 0)
        problems.duration("on_demand.max_wait", self.max_wait, 1)


@dataclass(frozen=True)
class Source:
    """The topic of raw events, and the names of the fields in its JSON."""

    topic: str | None = None
    """Topic without the deployment's prefix; None for ``events.<table>``."""

    key: str = "key"
    """Field with the entity key."""

    timestamp: str = "ts"
    """Field with the event time, epoch milliseconds."""

    value: str = "value"
    """Field with the value."""

    id: str | None = None
    """Field that tells apart events of one key in one millisecond; None where there are none."""

    kind: SourceKind = "scalar"
    """What the value is: a number, an array of numbers, or a JSON object."""

    max_event_bytes: int = 1 << 20
    """Larger events go to dead letters, bytes."""

    def check(self, problems: Problems) -> None:
        """Adds what is wrong."""
        if self.topic is not None:
            problems.topic("source.topic", self.topic)
        names = {
            "key": self.key,
            "timestamp": self.timestamp,
            "value": self.value,
            "id": self.id,
        }
        seen: dict[str, str] = {}
        for role, name in names.items():
            if name is None and role == "id":
                continue
            if not isinstance(name, str) or not name:
                problems.append(f"source.{role} must be the name of a field, not {name!r}")
            elif name in seen:
                problems.append(f"source.{role} and source.{seen[name]} name one field, {name!r}")
            else:
                seen[name] = role
        problems.one_of("source.kind", self.kind, get_args(SourceKind))
        problems.integer("source.max_event_bytes", self.max_event_bytes, 1, MAX_BYTES)
