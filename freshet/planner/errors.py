"""What the planner raises beside ``ConfigError``."""

from __future__ import annotations

from freshet.errors import FreshetError


class NoPlanError(FreshetError):
    """No plan meets the deadline, or a destination can't be reached at all."""

    def __init__(
        self, message: str, *, fastest_s: float | None = None, binding: str | None = None
    ) -> None:
        """Keeps what a caller may act on.

        Args:
            message: what is wrong, where, and the fix.
            fastest_s: the fastest possible time, seconds; None when there is no plan at all.
            binding: the limit that keeps plans from being faster.
        """
        super().__init__(message)
        self.fastest_s = fastest_s
        self.binding = binding
