"""What the jobs are told, and everything that is wrong with it, from real profiles and tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from freshet import Aggregate, FeatureTable, Points
from freshet.config import Config
from freshet.errors import ConfigError
from freshet.multicast.building import multicast_settings, planner_settings, region_settings
from freshet.multicast.settings import PlannerSettings
from freshet.topics import Log

HOME, EAST, WEST, SOUTH = "aws:eu-west-1", "aws:us-east-1", "gcp:us-west1-a", "azure:brazilsouth"
REGIONS: dict[str, Any] = {
    EAST: {"kafka_bootstrap": "broker.us:9092", "inbox_partitions": 8},
    WEST: {"kafka_bootstrap": "broker.gcp:9092", "inbox_partitions": 3},
    SOUTH: {"kafka_bootstrap": "broker.azure:9092", "role": "waypoint"},
}
LOGS = {"t": Log("Ri5MPPwnTGaWIVTa4Bh7zg", 6)}


def config(**fields: Any) -> Config:
    return Config.from_dict(
        {
            "kafka_bootstrap": "broker:9092",
            "home_region": HOME,
            "redis": {HOME: "redis://cache:6379/0"},
            "regions": REGIONS,
            **fields,
        }
    )


def table(*regions: str, name: str = "t", **fields: Any) -> FeatureTable:
    return FeatureTable(
        name=name, function=Aggregate(), window=Points(3), regions=(HOME, *regions), **fields
    )


def problems(*tables: FeatureTable, **fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        multicast_settings(tables, config(**fields), LOGS)
    return caught.value.problems


def test_the_operator_is_told_what_it_sends_and_into_how_many_partitions() -> None:
    settings = multicast_settings(
        [table(EAST, freshness_slo="2s", priority_weight=0)], config(topic_prefix="x."), LOGS
    )
    assert settings["home"] == HOME
    assert settings["lanes"] == 3, "the smallest inbox"
    (sent,) = settings["tables"]
    assert sent["topic"] == "x.changes.t"
    assert (sent["log"], sent["shards"], sent["slo_ms"]) == (LOGS["t"].id, 6, 2_000)
    assert 0 < sent["weight"] < 1e-6


def test_home_and_relays_are_told_how_many_changes_may_go_out_of_turn() -> None:
    none = config(priority_share=0)
    assert multicast_settings([table(EAST)], none, LOGS)["early_share"] == 0
    assert region_settings([table(EAST)], none)["early_share"] == 0
    assert multicast_settings([table(EAST)], config(), LOGS)["early_share"] == 0.02


def test_the_planner_knows_the_configured_regions_and_no_others() -> None:
    settings = planner_settings([table(EAST, WEST)], config(), LOGS)
    assert set(settings.network.regions) == {HOME, EAST, WEST, SOUTH}
    assert settings.tables[0].destinations == (EAST, WEST)
    assert settings.tables[0].shards == 6
    assert {limits["usd_per_s"] for limits in settings.network.limits} == {0.0}
    links = settings.network.links()
    assert len(links) == 12
    assert links[HOME, EAST] > 1e8
    assert PlannerSettings.from_json(settings.to_json()) == settings


def test_what_is_wrong_with_tables_is_told_at_once() -> None:
    found = problems(table(name="a"), table("aws:nowhere", SOUTH, name="b"), table(name="a"))
    assert any("table a is given twice" in problem for problem in found)
    assert any("table a is for aws:eu-west-1 alone" in problem for problem in found)
    assert any("aws:nowhere, which is not in the configuration's regions" in p for p in found)
    assert any("azure:brazilsouth, which is a waypoint" in problem for problem in found)


def test_another_region_s_configuration_sends_nothing() -> None:
    away = {
        "region": EAST,
        "redis": {EAST: "redis://cache:6379/0"},
        "regions": {HOME: {"kafka_bootstrap": "broker.eu:9092"}},
    }
    assert any("use the home region's, aws:eu-west-1" in p for p in problems(table(EAST), **away))


def test_regions_without_a_price_are_told() -> None:
    regions = {**REGIONS, "own:cellar": {"kafka_bootstrap": "cellar:9092"}}
    with pytest.raises(ConfigError, match=r"region own:cellar is not there; add its prices"):
        planner_settings([table(EAST)], config(regions=regions), LOGS)


def test_a_region_s_job_keeps_its_tables_and_a_waypoint_s_none() -> None:
    away: dict[str, Any] = {"regions": {HOME: {"kafka_bootstrap": "broker.eu:9092"}}}
    east = config(region=EAST, redis={EAST: "redis://cache:6379/0"}, **away)
    settings = region_settings([table(EAST, keep_versions=3, ttl="1h")], east)
    assert settings["applies"] is True
    assert settings["clock_ahead_ms"] == 0
    (kept,) = settings["tables"]
    assert kept["keep_versions"] == 3
    assert json.loads(kept["definition"])["ttl_ms"] == 3_600_000

    with pytest.raises(ConfigError, match=f"table t is not for {EAST}"):
        region_settings([table(WEST)], east)

    role = {**away["regions"], SOUTH: {"role": "waypoint"}}
    way = config(region=SOUTH, redis={}, regions=role)
    settings = region_settings([table(EAST)], way, clock_ahead_ms=-5)
    assert settings["applies"] is False
    assert settings["clock_ahead_ms"] == -5
    assert [each["table"] for each in settings["tables"]] == ["t"]
