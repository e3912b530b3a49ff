"""Tables of a user's own, from the command line to a plain Redis client.

Goal: someone with a definition file, any Kafka client and any Redis client needs nothing else.

Method: two definitions that the project has never seen, one in Python with vectors of sensor
readings and a function class beside it, one in YAML with JSON documents and a function in a module
next to the file. ``freshet submit`` runs as a process of its own. Events are produced with
kafka-python and with confluent-kafka, the features are read with a plain ``GET`` and taken apart
here, by hand, as ``docs/store-layout.md`` says, and with ``freshet get`` and ``freshet.Client``.
Feedback posted by the client must reach the scheduler.

Fails when: a command fails or prints no JSON, a value differs from what its window makes, the
layout differs from the page, or feedback is not used.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
import redis
from kafka import KafkaProducer

import freshet
from freshet.stack.stack import Stack
from tests.integration.polling import eventually

pytestmark = pytest.mark.integration

_COMMAND_DEADLINE_S = 180.0
NOW_MS = int(time.time() * 1_000)

VIBRATION = '''
"""How hard the machines of a plant shake."""

from dataclasses import dataclass

import numpy as np

from freshet import FeatureFunction, FeatureTable, Points, Source, TimeShare


@dataclass
class Vibration(FeatureFunction):
    gain: float = 1.0

    def compute(self, window):
        energy = np.square(window.values).sum(axis=1)
        return [self.gain * energy.max(), energy.mean(), len(window)]


plant = FeatureTable(
    name="plant.vibration-v2",
    function=Vibration(gain=2.0),
    window=Points(4),
    source=Source(
        topic="plant-a.accelerometer", key="machine", timestamp="measured_at", value="xyz",
        kind="vector",
    ),
    feedback_topic="plant-a.alarms-missed",
    budget=TimeShare(0.9),
)
'''

BASKETS_MODULE = """
from freshet import FeatureFunction


class Basket(FeatureFunction):
    def __init__(self, currency):
        self.currency = currency

    def compute(self, window):
        lines = [line for order in window.values for line in order["lines"]]
        return {
            "currency": self.currency,
            "spent": round(sum(line["price"] for line in lines), 2),
            "items": sorted({line["item"] for line in lines}),
            "orders": len(window),
            "first": None,
        }
"""

BASKETS = """
name: baskets
function: {name: "basket_features:Basket", currency: EUR}
window: {duration: 2h}
source: {topic: shop.orders, key: customer, timestamp: at, value: order, id: number, kind: json}
budget: {kind: rate, updates_per_second: 50}
ttl: 90d
"""


class Cli:
    """The ``freshet`` command against the session's stack, as a user's shell runs it."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._folder = folder
        config = folder / "deployment.yaml"
        stack.config.write(config)
        self._environment = os.environ | {
            "FRESHET_CONFIG": str(config),
            "FRESHET_HOME": str(folder / "home"),
            # Flink's client has the cluster's settings, as docs/running.md says.
            "FLINK_CONF_DIR": str(stack.flink.configuration_directory),
        }

    def __call__(self, *arguments: str) -> Any:
        """Runs a command with ``--json``; returns what it prints."""
        done = subprocess.run(
            [str(Path(sys.executable).parent / "freshet"), *arguments, "--json"],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_COMMAND_DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextlib.contextmanager
def submitted(stack: Stack, cli: Cli, file: Path) -> Iterator[str]:
    """A job from ``freshet submit``, cancelled at the end; gives its id."""
    answer = cli("submit", str(file))
    job = answer["job"]["id"]
    try:
        assert answer["job"]["state"] == "RUNNING"
        yield job
    finally:
        stack.flink.rest.cancel(job)
        eventually(
            lambda: (
                stack.flink.rest.job(job).state == "CANCELED"
                and stack.flink.rest.overview()["slots-available"] > 0
            ),
            f"{file} ends",
        )


def by_hand(value: bytes) -> tuple[dict[str, int], bytes]:
    """Takes a value of the store apart: the layout page in five lines."""
    layout, flags, origin, timestamp, event_time, computed_at = struct.unpack("<BBHqqq", value[:28])
    header = {
        "layout": layout,
        "tombstone": flags & 1,
        "encoding": flags >> 1 & 3,
        "origin": origin,
        "timestamp": timestamp,
        "event_time": event_time,
        "computed_at": computed_at,
    }
    return header, value[28:]


def test_a_python_table(stack: Stack, tmp_path: Path) -> None:
    file = tmp_path / "vibration.py"
    file.write_text(VIBRATION, encoding="utf-8")
    cli = Cli(stack, tmp_path)
    with submitted(stack, cli, file) as job:
        readings = [(1.0, 2.0, 2.0), (0.0, 3.0, 4.0), (6.0, 0.0, 8.0), (2.0, 0.0, 0.0), (1.0, 0, 0)]
        send_with_kafka_python(stack, readings)
        energies = [25.0, 100.0, 4.0, 1.0]  # of the newest four
        expected = (200.0, statistics.fmean(energies), 4.0)

        eventually(
            lambda: vector_of(read_plainly(stack, "plant.vibration-v2:press 7")) == expected,
            "the feature of press 7",
        )
        header, _ = by_hand(read_plainly(stack, "plant.vibration-v2:press 7"))
        assert header["layout"] == 1
        assert header["tombstone"] == 0
        assert header["encoding"] == 1
        assert header["origin"] == 1
        assert header["event_time"] == NOW_MS + 4
        now_ms = time.time() * 1_000
        assert now_ms - 120_000 < header["computed_at"] <= now_ms
        assert header["timestamp"] // 1_000 <= now_ms + 1_000

        assert_client_reads_the_same(stack, expected, header)
        assert_feedback_is_used(stack, cli, job)
        assert_status_tells(cli, job)


def send_with_kafka_python(stack: Stack, readings: Sequence[tuple[float, ...]]) -> None:
    """As a plant that has kafka-python would."""
    producer = KafkaProducer(bootstrap_servers=stack.config.kafka_bootstrap)
    for i, reading in enumerate(readings):
        record = {"machine": "press 7", "measured_at": NOW_MS + i, "xyz": reading, "unit": "g"}
        producer.send("plant-a.accelerometer", key=b"press 7", value=json.dumps(record).encode())
    producer.flush(30)
    producer.close()


def read_plainly(stack: Stack, key: str) -> bytes:
    """One ``GET``; nothing for no value."""
    with redis.Redis.from_url(stack.config.home_redis) as store:
        value: Any = store.get(key)
    return b"" if value is None else bytes(value)


def vector_of(value: bytes) -> tuple[float, ...]:
    """The float32 numbers behind the header."""
    payload = value[28:]
    return struct.unpack(f"<{len(payload) // 4}f", payload)


def assert_client_reads_the_same(
    stack: Stack, expected: tuple[float, ...], header: dict[str, int]
) -> None:
    """Value, version and status, through ``freshet.Client``."""
    with freshet.Client(stack.config) as client:
        feature = client.get("plant.vibration-v2", "press 7")
        assert feature.status == freshet.FeatureStatus.PRESENT
        assert tuple(feature.value) == expected
        assert feature.version == (header["timestamp"], header["origin"])
        assert feature.event_time == header["event_time"]
        missing = client.get("plant.vibration-v2", "press 8")
        assert missing.status == freshet.FeatureStatus.MISSING
        assert missing.value is None


def assert_feedback_is_used(stack: Stack, cli: Cli, job: str) -> None:
    """Posted by the client and by the command; used by the scheduler, or dropped when stale."""
    with freshet.Client(stack.config) as client:
        feature = client.get("plant.vibration-v2", "press 7")
        assert feature.version is not None
        client.feedback("plant.vibration-v2", "press 7", feature.version, error=0.75, model="alarm")
        client.feedback("plant.vibration-v2", "press 7", "17.1", error=9.0)
        client.flush()
    cli(
        "feedback", "plant.vibration-v2", "press 7", "--version", str(feature.version),
        "--error", "0.5",
    )  # fmt: skip
    expected = {"feedbackUsed": 2, "feedbackDropped": 1, "estimatedRegret": 1.25}

    def told() -> bool:
        assert {name: metric(stack, job, name) for name in expected} == expected
        return True

    eventually(told, "feedback in the job's metrics", deadline_s=30)


def assert_status_tells(cli: Cli, job: str) -> None:
    """The table's row of ``freshet status`` has what its job and its topics have."""

    def told() -> bool:
        status = cli("status", "--json")
        (table,) = [t for t in status["tables"] if t["table"] == "plant.vibration-v2"]
        figures = ("keys", "pending_keys", "regret", "dead_letters", "updates_failed")
        assert [table[name] for name in figures] == [1, 0, 1.25, 0, 0], table
        assert table["changes"] >= 1
        assert 0 <= table["staleness_p50_ms"] <= table["staleness_p99_ms"]
        assert {each["id"]: each["state"] for each in status["jobs"]}[job] == "RUNNING"
        assert [source["error"] for source in status["sources"]] == [None] * 3
        return True

    eventually(told, "figures of the table in the status", deadline_s=60)


def metric(stack: Stack, job: str, name: str) -> float:
    """A metric of the table, summed over the job's subtasks."""
    total = 0.0
    for vertex in stack.flink.rest.get(f"/jobs/{job}")["vertices"]:
        path = f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
        for found in stack.flink.rest.get(path):
            # Flink writes an underscore for a dot inside a name.
            if found["id"].endswith(f".freshet.table.plant_vibration-v2.{name}"):
                total += stack.flink.rest.get(f"{path}?get={found['id']}&agg=sum")[0]["sum"]
    return total


def test_a_yaml_table(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "basket_features.py").write_text(BASKETS_MODULE, encoding="utf-8")
    file = tmp_path / "baskets.yaml"
    file.write_text(BASKETS, encoding="utf-8")
    cli = Cli(stack, tmp_path)
    with submitted(stack, cli, file):
        send_with_confluent_kafka(stack)
        expected = {
            "currency": "EUR",
            "spent": 7.5,
            "items": ["café crème", "croissant"],
            "orders": 2,
            "first": None,
        }

        def read() -> bool:
            found = cli("get", "baskets", "customer-1", "nobody")
            one, other = found["features"]
            assert (one["status"], one["value"]) == ("PRESENT", expected)
            assert (other["status"], other["value"]) == ("MISSING", None)
            return True

        eventually(read, "the basket of customer-1")
        header, payload = by_hand(read_plainly(stack, "baskets:customer-1"))
        assert header["encoding"] == 2
        assert header["event_time"] == NOW_MS
        assert payload[:2] == b"\xc3\x01", "Avro's single-object encoding"


def send_with_confluent_kafka(stack: Stack) -> None:
    """As a shop that has confluent-kafka would: two orders in one millisecond, one sent twice."""
    producer = confluent_kafka.Producer({"bootstrap.servers": stack.config.kafka_bootstrap})
    coffee = {"item": "café crème", "price": 3.2}
    croissant = {"item": "croissant", "price": 1.1}
    old = {"customer": "customer-1", "at": NOW_MS - 3 * 3_600_000, "number": "O-1"}
    orders = [
        old | {"order": {"lines": [{"item": "cake", "price": 99.0}]}},  # outside the two hours
        {"customer": "customer-1", "at": NOW_MS, "number": "O-2", "order": {"lines": [coffee]}},
        {
            "customer": "customer-1",
            "at": NOW_MS,
            "number": "O-3",
            "order": {"lines": [coffee, croissant]},
        },
    ]
    for order in [*orders, orders[1]]:
        producer.produce("shop.orders", json.dumps(order).encode(), b"customer-1")
    assert producer.flush(30) == 0
