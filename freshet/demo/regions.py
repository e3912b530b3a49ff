"""The demo's regions: which they are, and how the table that is sent to them gets there.

::

    azure:uaenorth (home) ──► aws:us-east-1 (waypoint) ─┬─► aws:af-south-1
                                                        └─► aws:sa-east-1

That is the cheapest plan at the prices that ship: 0.16 $/GB, where sending from home to each costs
0.24. All regions are on this machine, with one broker on which each has an inbox; each destination
has a Redis.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from freshet.config import Config
from freshet.regions import DESTINATION, WAYPOINT, Region
from freshet.stack.layout import CHECKOUT
from freshet.store.connection import connect, fetch
from freshet.store.layout import key_name

HOME = "azure:uaenorth"
ON_THE_WAY = "aws:us-east-1"
DESTINATIONS = ("aws:af-south-1", "aws:sa-east-1")

PROFILES = CHECKOUT / "examples" / "data" / "cloudcast"
"""Prices and bandwidths between regions; what the multicast job plans with if nothing else is
configured."""

FRESHNESS_SLO = "2s"

_POLL_INTERVAL_S = 0.2


def region_configs(config: Config) -> dict[str, Config]:
    """Each region's configuration, by its name; home's is the first.

    Args:
        config: of the stack, with a Redis for home and each destination.
    """
    roles = {HOME: DESTINATION, ON_THE_WAY: WAYPOINT, **dict.fromkeys(DESTINATIONS, DESTINATION)}
    regions = {
        name: Region(kafka_bootstrap=config.kafka_bootstrap, role=role, inbox_partitions=1)
        for name, role in roles.items()
    }
    return {
        name: dataclasses.replace(
            config,
            region=name,
            regions=regions,
            redis={name: config.redis[name]} if name in config.redis else {},
        )
        for name in regions
    }


class StoreState(NamedTuple):
    """What a region's store has of a table, beside home's."""

    keys: int
    """Keys that have a value."""

    equal_to_home: bool
    """Whether all of them have the same bytes, and no key is missing."""


class RegionStores:
    """The online stores of all regions, for comparison.

    Args:
        configs: of the regions, home's first.
        table: name of the table.
        keys: all of its keys.
    """

    def __init__(self, configs: Mapping[str, Config], table: str, keys: Sequence[str]) -> None:
        self._redis = {
            name: connect(config, name) for name, config in configs.items() if config.redis
        }
        prefix = next(iter(configs.values())).store_prefix
        self._names = [key_name(prefix, table, key).encode() for key in keys]

    def close(self) -> None:
        """Closes all connections."""
        for redis in self._redis.values():
            redis.close()

    def compare(self) -> dict[str, StoreState]:
        """Compares every destination's store with home's, byte for byte.

        Raises:
            StoreUnavailableError: a store does not answer.
        """
        home = fetch(self._redis[HOME], self._names)
        states = {}
        for region in DESTINATIONS:
            there = fetch(self._redis[region], self._names)
            count = sum(value is not None for value in there)
            states[region] = StoreState(count, there == home)
        return states

    def settle(
        self, timeout_s: float, waiting: Callable[[], None] = lambda: None
    ) -> dict[str, StoreState]:
        """Waits until all destinations are equal to home, which nothing changes any more.

        Args:
            timeout_s: after which they are taken as they are, seconds.
            waiting: called several times a second meanwhile.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            states = self.compare()
            if all(state.equal_to_home for state in states.values()):
                return states
            if time.monotonic() > deadline:
                return states
            waiting()
            time.sleep(_POLL_INTERVAL_S)
