"""How a feature function says that a third party takes no more calls for now."""

from __future__ import annotations

import math

from freshet.errors import FreshetError

MAX_RETRY_AFTER_S = 300.0
"""Whatever a third party says, it is asked again after so long, seconds."""


class RateLimited(FreshetError):  # noqa: N818 - no error: nothing is wrong with the key
    """Raised by a feature function whose third party takes no more calls for now.

    Not a failure: the key's events are pending again, nothing goes to dead letters, and the subtask
    computes nothing until the time has passed.

    Args:
        retry_after_s: when to try again, seconds from now, at least 0; more than
            ``MAX_RETRY_AFTER_S`` counts as that.

    Raises:
        ValueError: it is no such number.
    """

    def __init__(self, retry_after_s: float) -> None:
        seconds = float(retry_after_s)
        if math.isnan(seconds) or seconds < 0:
            raise ValueError(f"retry_after_s must be at least 0, not {retry_after_s!r}")
        self.retry_after_s = min(seconds, MAX_RETRY_AFTER_S)
        super().__init__(f"rate limited; try again in {self.retry_after_s:g} s")

    def __reduce__(self) -> tuple[type[RateLimited], tuple[float]]:
        return RateLimited, (self.retry_after_s,)
