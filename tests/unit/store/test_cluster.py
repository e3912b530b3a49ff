"""Goal: the client reads a Redis Cluster as it reads one Redis.

Method: a real cluster of two nodes, the hash slots split between them.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from redis import Redis, RedisCluster
from redis.exceptions import RedisError

from freshet import Aggregate, Client, Config, FeatureTable, Points, Version
from freshet.client import FeatureStatus
from freshet.stack.layout import redis_server
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.store.layout import key_name, pack_value
from freshet.store.registry import register_table

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0
SLOTS = 16_384


def start_node(directory: Path, port: int, bus_port: int) -> subprocess.Popen[bytes]:
    directory.mkdir()
    options = {
        "bind": LOOPBACK,
        "port": port,
        "cluster-enabled": "yes",
        "cluster-port": bus_port,
        "dir": directory,
        "save": "",
    }
    command = [str(redis_server())]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def wait_for(node: Redis, **expected: str) -> None:
    deadline, info = time.monotonic() + DEADLINE_S, dict[str, str]()
    while time.monotonic() < deadline:
        with contextlib.suppress(RedisError):
            info = node.execute_command("CLUSTER INFO")
            if expected.items() <= info.items():
                return
        time.sleep(0.02)
    raise AssertionError(f"{node} did not come to {expected}: {info}")


@pytest.fixture(scope="module")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory, ports = tmp_path_factory.mktemp("cluster"), PortPicker()
    places = [(ports.pick(), ports.pick()) for _ in range(2)]
    processes = [start_node(directory / str(p), p, bus) for p, bus in places]
    try:
        nodes = [Redis(LOOPBACK, port) for port, _ in places]
        for i, node in enumerate(nodes):
            wait_for(node)
            first = i * SLOTS // 2
            node.execute_command("CLUSTER ADDSLOTSRANGE", first, first + SLOTS // 2 - 1)
        nodes[0].execute_command("CLUSTER MEET", LOOPBACK, *places[1])
        for node in nodes:
            wait_for(node, cluster_state="ok", cluster_slots_ok=str(SLOTS))
        yield f"redis://{LOOPBACK}:{places[0][0]}"
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_many_keys_of_a_cluster(cluster_url: str) -> None:
    table = FeatureTable(name="t", function=Aggregate(), window=Points(3), ttl="1m")
    keys = [f"k{i}" for i in range(300)]
    cluster = RedisCluster.from_url(cluster_url)
    register_table(cluster, table)
    for i, key in enumerate(keys):
        cluster.set(key_name("", "t", key), pack_value([float(i)], Version(i, 1), 1_000, 1_000))
    config = Config(
        kafka_bootstrap="127.0.0.1:1", redis={"local:home": cluster_url}, redis_cluster=True
    )
    with Client(config, clock=lambda: 2_000.0) as client:
        features = client.get_many("t", ["none", *keys])
        assert features.statuses == [FeatureStatus.MISSING] + [FeatureStatus.PRESENT] * 300
        assert features.values[1:, 0].tolist() == np.arange(300.0).tolist()
        assert client.get("t", "k7").version == Version(7, 1)
