"""Goal: the replay's steps, tables and bad events are what the demo says they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from freshet.demo.feed import malformed_events
from freshet.demo.readings import Readings
from freshet.demo.run import Plan
from freshet.demo.tables import STEP_MS, write_tables
from freshet.errors import FreshetError

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def readings() -> Readings:
    return Readings.load()


def test_readings_are_complete(readings: Readings) -> None:
    assert readings.values.shape == (8_004, 129)
    assert len(set(readings.keys)) == 129
    assert np.isfinite(readings.values).all()
    assert readings.values.min() >= 0
    assert readings.values.max() <= 100
    assert (readings.step_ms, readings.period) == (300_000, 288)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(FreshetError, match=r"nowhere\.npz cannot be read"):
        Readings.load(tmp_path / "nowhere.npz")


def test_every_step_ends_on_the_hour(readings: Readings) -> None:
    plan = Plan.of(readings, 100)
    assert plan.steps == 595
    # The first window's last reading is on the hour, so the first step's decision has all of it.
    assert readings.time_ms(plan.first_row - 1) % STEP_MS == 0
    previous = plan.first_row
    for step in range(plan.steps):
        first, last = plan.rows(step)
        assert first == previous
        assert readings.time_ms(last - 1) % HOUR_MS == 0
        assert readings.time_ms(first) > readings.time_ms(first - 1)
        previous = last
    assert previous <= len(readings)


def test_days_limit_the_steps(readings: Readings) -> None:
    assert Plan.of(readings, 2).steps == 48
    assert Plan.of(readings, 1 / 24).steps == 1
    with pytest.raises(FreshetError, match="less than one hour"):
        Plan.of(readings, 0.01)


def test_tables_differ_in_policy_and_regions_only(readings: Readings, tmp_path: Path) -> None:
    regret, robin = write_tables(tmp_path, readings, 0.01)
    ours, theirs = regret.table.to_dict(), robin.table.to_dict()
    different = {name for name in ours if ours[name] != theirs[name]}
    assert different == {
        "table",
        "policy",
        "regions",
        "feedback_topic",
        "changes_topic",
        "dead_letters_topic",
    }
    assert (ours["policy"], theirs["policy"]) == ("regret-proportional", "round-robin")
    assert ours["source"]["topic"] == "events.cpu_stl"
    assert ours["budget"] == {
        "kind": "event-time-step",
        "updates_per_step": 1.29,
        "step_ms": HOUR_MS,
        "initial_updates": 129.0,
    }
    # The replay waits for the jobs, so the jobs must wait for the replay.
    assert ours["idle_timeout_ms"] is None
    assert (ours["window"], ours["min_points"]) == ({"points": 864}, 864)


def test_malformed_events_are_each_bad_in_another_way() -> None:
    events = malformed_events("vm-1", 1_000)
    assert len({event.what for event in events}) == len(events) == 6
    good = {"key": "vm-1", "ts": 1_000, "value": 1.0}
    for event in events:
        try:
            # Python's parser takes NaN, which JSON has not.
            parsed = json.loads(event.value, parse_constant=str)
        except json.JSONDecodeError:
            continue
        assert parsed != good
        assert event.key == parsed.get("key")
