"""The benchmarks' load is change events as a feature job writes them, and its costs add up."""

from __future__ import annotations

import struct

from benchmarks.change_stream import FLOATS, ChangeEncoder, Changes
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
            "value": rest[: 4 * FLOATS],
            "regret_removed": struct.unpack("<d", rest[4 * FLOATS :])[0],
        }
        encoded = encoder.encode(key, 1_795_285_000_000_123, 1_795_285_000_001, rest)
        assert encoded == avro.encode("FeatureChange", change)


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
