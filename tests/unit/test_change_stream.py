"""The benchmarks' load is change events as a feature job writes them, and its costs add up."""

from __future__ import annotations

import struct

import numpy as np

from benchmarks.change_stream import FLOATS, ChangeEncoder, Changes
from benchmarks.every_arrival import Observed
from benchmarks.wide_area import Traffic
from freshet import avro


def test_an_event_is_encoded_as_the_schema_says() -> None:
    encoder = ChangeEncoder("fleet_load")
    for key, rest in Changes(keys=300).block()[:50]:
        change = {
            "table": "fleet_load",
            "key": key.decode(),
            "version_timestamp": 1_795_285_000_000_123,
            "version_origin": 7,
            "event_time": 1_795_285_000_001,
            "computed_at": 1_795_285_000_001,
            "operation": "UPSERT",
            "encoding": "FLOAT32_VECTOR",
            "is_first": False,
            "value": rest[: 4 * FLOATS],
            "regret_removed": struct.unpack("<d", rest[4 * FLOATS :])[0],
        }
        encoded = encoder.encode(key, 1_795_285_000_000_123, 1_795_285_000_001, rest)
        assert encoded == avro.encode("FeatureChange", change)


def test_each_key_comes_once_and_few_changes_remove_most_of_the_regret() -> None:
    changes = list(Changes(keys=10_000, regret_sigma=2.0).each_once())
    assert len({key for key, _ in changes}) == len(changes) == 10_000
    regrets = sorted(struct.unpack("<d", rest[4 * FLOATS :])[0] for _, rest in changes)
    # Of a lognormal with this deviation, a hundredth has 37 % of the sum on average.
    assert 0.25 < sum(regrets[-100:]) / sum(regrets) < 0.6


def test_a_change_has_arrived_when_its_version_or_a_newer_one_is_there() -> None:
    observed = Observed()
    observed.take([b"t:a", b"t:b"], np.array([10, 7]), 1.0)
    observed.take([b"t:a"], np.array([30]), 2.0)
    changes = [(b"a", 10), (b"a", 20), (b"b", 8), (b"a", 30), (b"a", 31), (b"b", 5)]
    expected = [1.0, 2.0, np.inf, 2.0, np.inf]
    assert observed.arrived_s("t", changes[:5]).tolist() == expected
    assert observed.arrived_s("t", changes[5:]).tolist() == [1.0]


def test_few_keys_change_often() -> None:
    changes = Changes(keys=1_000).block()
    counts: dict[bytes, int] = {}
    for key, _ in changes:
        counts[key] = counts.get(key, 0) + 1
    often = sorted(counts.values(), reverse=True)[:10]
    # By Zipf's law the first ten of a thousand have 39 % of the changes.
    assert 0.36 < sum(often) / len(changes) < 0.42


def test_a_byte_costs_what_leaving_its_region_costs() -> None:
    prices = {("a", "b"): 0.09, ("b", "a"): 0.02}
    before = Traffic({("a", "b"): 1_000, ("b", "a"): 500})
    after = Traffic({("a", "b"): 2_000_001_000, ("b", "a"): 1_000_000_500})
    went = after.since(before)
    assert went.total_bytes == 3_000_000_000
    assert abs(went.usd(prices) - (2 * 0.09 + 0.02)) < 1e-9
