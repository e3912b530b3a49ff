"""What sending between regions has cost, link by link, for the planner's metrics."""

from __future__ import annotations

from collections.abc import Mapping

from freshet.multicast.links import LinkSample
from freshet.multicast.settings import Link

_BYTES_PER_KB = 1_000
"""A price in USD for a GB is the same number in millionths of a USD for a KB."""


class Egress:
    """Prices what links have delivered since it was first told of them.

    Args:
        usd_per_gb: price of each link.
    """

    def __init__(self, usd_per_gb: Mapping[Link, float]) -> None:
        self._usd_per_gb = usd_per_gb
        self._wire_bytes: dict[Link, int] = {}
        self._below_one: dict[Link, float] = {}

    def added(self, samples: Mapping[Link, LinkSample]) -> dict[Link, int]:
        """Cost since the last time, millionths of a USD; what is below one is told later.

        A link's first sample is what was delivered before, of which an earlier run has told.

        Args:
            samples: each link as it was reported last.
        """
        added = {}
        for link, sample in samples.items():
            before = self._wire_bytes.get(link, sample.wire_bytes)
            self._wire_bytes[link] = sample.wire_bytes
            # Less than before: a subtask's report is missing after a restart.
            kilobytes = max(0, sample.wire_bytes - before) / _BYTES_PER_KB
            cost = kilobytes * self._usd_per_gb.get(link, 0.0) + self._below_one.get(link, 0.0)
            added[link] = int(cost)
            self._below_one[link] = cost - added[link]
        return added
