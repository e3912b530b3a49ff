"""Goal: a destination counts as equal to home only if it has every key's bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from redis import Redis

from freshet.demo.regions import (
    DESTINATIONS,
    HOME,
    ON_THE_WAY,
    RegionStores,
    StoreState,
    region_configs,
)
from freshet.regions import WAYPOINT
from freshet.stack.redis import RedisServer
from tests.unit.demo.sending import FAR, NEAR, make_config, plan_of_the_demo

KEYS = ("a", "b")


def test_the_cheapest_plan_of_the_demo_s_regions_uses_the_waypoint() -> None:
    (stripe,) = json.loads(plan_of_the_demo())["stripes"]
    edges = {(u, v) for u, v in stripe["edges"]}
    assert edges == {(HOME, ON_THE_WAY), (ON_THE_WAY, NEAR), (ON_THE_WAY, FAR)}


def test_each_region_has_a_configuration_of_its_own() -> None:
    configs = region_configs(make_config())
    assert list(configs) == [HOME, ON_THE_WAY, *DESTINATIONS]
    assert all(config.region == name for name, config in configs.items())
    assert configs[ON_THE_WAY].role == WAYPOINT
    assert not configs[ON_THE_WAY].redis
    assert list(configs[FAR].redis) == [FAR]


@pytest.fixture
def stores(redis_server: RedisServer) -> Iterator[tuple[RegionStores, list[Redis]]]:
    """Stores of three regions, each a database of one Redis."""
    urls = tuple(f"{redis_server.url.rsplit('/', 1)[0]}/{number}" for number in range(3))
    clients = [Redis.from_url(url) for url in urls]
    for client in clients:
        client.flushdb()
    stores = RegionStores(region_configs(make_config(urls)), "t", KEYS)
    yield stores, clients
    stores.close()
    for client in clients:
        client.close()


@pytest.mark.integration
def test_equal_means_every_byte_of_every_key(
    stores: tuple[RegionStores, list[Redis]],
) -> None:
    regions, (home, near, far) = stores
    for client in (home, near, far):
        client.mset({"t:a": b"1", "t:b": b"2", "other:a": b"3"})
    near.set("other:a", b"4")
    assert regions.settle(0.0) == {NEAR: StoreState(2, True), FAR: StoreState(2, True)}
    near.set("t:a", b"0")
    far.delete("t:b")
    waited: list[int] = []
    assert regions.settle(0.3, lambda: waited.append(1)) == {
        NEAR: StoreState(2, False),
        FAR: StoreState(1, False),
    }
    assert waited
    near.set("t:a", b"1")
    assert regions.settle(0.0)[NEAR].equal_to_home
