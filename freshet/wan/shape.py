"""What a link does to the bytes that pass it, and the names of its two directions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from freshet.table.checks import Problems

MAX_BANDWIDTH_BPS = 1e12
MAX_DELAY_MS = 60_000.0


class Direction(StrEnum):
    """Of the bytes, not of whoever opened the connection."""

    FORWARD = "forward"
    """From the link's source, which opens the connections, to its target."""

    BACKWARD = "backward"
    """From the target to the source: a broker's answers."""

    BOTH = "both"

    @property
    def each(self) -> tuple[Direction, ...]:
        """The one or two directions that are meant."""
        if self is Direction.BOTH:
            return (Direction.FORWARD, Direction.BACKWARD)
        return (self,)

    @property
    def opposite(self) -> Direction:
        """Of a single direction, the other one."""
        return _OPPOSITES[self]


_OPPOSITES = {
    Direction.FORWARD: Direction.BACKWARD,
    Direction.BACKWARD: Direction.FORWARD,
}


@dataclass(frozen=True)
class Shape:
    """Bandwidth and delay of one direction of a link."""

    bandwidth_bps: float | None = None
    """Bit/s of payload, all connections together; None for no limit."""

    delay_ms: float = 0.0
    """One way."""

    jitter_ms: float = 0.0
    """The delay varies by so much to either side, evenly; the order in a connection stays."""

    def check(self, where: str, problems: Problems) -> None:
        """Adds what is wrong with the values.

        Args:
            where: put before a field's name, such as ``"links[2]."``.
            problems: where to add.
        """
        if self.bandwidth_bps is not None:
            problems.number(
                f"{where}bandwidth_bps",
                self.bandwidth_bps,
                lambda bps: 0 < bps <= MAX_BANDWIDTH_BPS,
                f"above 0 and at most {MAX_BANDWIDTH_BPS:g}; use a stall for a link that is silent",
            )
        for name, value in (("delay_ms", self.delay_ms), ("jitter_ms", self.jitter_ms)):
            problems.number(
                f"{where}{name}",
                value,
                lambda ms: 0 <= ms <= MAX_DELAY_MS,
                f"from 0 to {MAX_DELAY_MS:g}",
            )
