"""The deployment's configuration: where it comes from, and all that can be wrong with it."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from freshet.config import Config, stack_config_file
from freshet.errors import ConfigError

GOOD: dict[str, Any] = {
    "kafka_bootstrap": "broker:9092",
    "redis": {"aws:eu-west-1": "redis://cache:6379/0"},
    "home_region": "aws:eu-west-1",
}


def write(path: Path, values: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(values))
    return path


def problems(values: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        Config.from_dict(values)
    return caught.value.problems


def test_every_problem_is_told_at_once() -> None:
    found = problems(
        {
            "kafka_bootstrap": "broker",
            "redis": {"nowhere": "http://cache"},
            "home_region": "aws:eu-west-1",
            "start_offsets": "yesterday",
            "topic_prefix": "a b",
            "tombstone_retention_ms": "soon",
            "priority_share": 2,
            "redis_cluster": "maybe",
            "flink_rest": "flink:8081",
            "kafka_bootstraps": "typo",
        }
    )
    expected = [
        "kafka_bootstraps",
        "redis_cluster",
        "tombstone_retention_ms",
        "priority_share",
        "kafka_bootstrap: 'broker' is not host:port",
        "topic_prefix",
        "region 'nowhere'",
        "'http://cache' of nowhere",
        "home_region",
        "start_offsets",
        "flink_rest",
    ]
    for part in expected:
        assert any(part in problem for problem in found), f"{part} is missing in {found}"
    assert len(found) == len(expected)


def test_missing_fields_are_told_by_name() -> None:
    assert problems({}) == ["kafka_bootstrap is missing", "redis is missing"]


def test_a_password_in_a_url_is_not_repeated() -> None:
    found = problems(GOOD | {"redis": {"aws:eu-west-1": "http://me:secret@cache"}})
    assert "secret" not in " ".join(found)
    config = Config.from_dict(GOOD | {"kafka_properties": {"sasl.password": "secret"}})
    assert "secret" not in repr(config)


@pytest.mark.parametrize("address", ["broker", "broker:0", "broker:65536", "a:1,b", "", "a b:1"])
def test_bootstrap_servers_must_be_host_and_port(address: str) -> None:
    assert any("kafka_bootstrap" in p for p in problems(GOOD | {"kafka_bootstrap": address}))


def test_the_explicit_file_comes_before_the_named_one(tmp_path: Path) -> None:
    explicit = write(tmp_path / "a.yaml", GOOD | {"kafka_bootstrap": "explicit:1"})
    named = write(tmp_path / "b.yaml", GOOD | {"kafka_bootstrap": "named:1"})
    write(stack_config_file(tmp_path), GOOD | {"kafka_bootstrap": "embedded:1"})
    env = {"FRESHET_HOME": str(tmp_path)}

    assert Config.load(environment=env).kafka_bootstrap == "embedded:1"
    env["FRESHET_CONFIG"] = str(named)
    assert Config.load(environment=env).kafka_bootstrap == "named:1"
    assert Config.load(explicit, environment=env).kafka_bootstrap == "explicit:1"
    env["FRESHET_KAFKA_BOOTSTRAP"] = "override:1"
    assert Config.load(explicit, environment=env).kafka_bootstrap == "override:1"


def test_the_environment_alone_is_enough() -> None:
    config = Config.load(
        environment={
            "FRESHET_HOME": "/nonexistent",
            "FRESHET_KAFKA_BOOTSTRAP": "a:1,b:2",
            "FRESHET_REDIS": "x:one=redis://one:1,x:two=rediss://two:2",
            "FRESHET_HOME_REGION": "x:two",
            "FRESHET_REDIS_CLUSTER": "true",
            "FRESHET_TOMBSTONE_RETENTION_MS": "2d",
            "FRESHET_PRIORITY_SHARE": "0",
            "FRESHET_KAFKA_PROPERTIES": "security.protocol=SSL",
        }
    )
    assert config.redis == {"x:one": "redis://one:1", "x:two": "rediss://two:2"}
    assert config.home_redis == "rediss://two:2"
    assert config.redis_cluster is True
    assert config.tombstone_retention_ms == 172_800_000
    assert config.priority_share == 0
    assert config.kafka_client_properties() == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SSL",
    }


def test_one_redis_url_in_the_environment_is_the_home_regions(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", GOOD)
    env = {"FRESHET_REDIS": "redis://other:1"}
    assert Config.load(file, environment=env).redis == {"aws:eu-west-1": "redis://other:1"}


def test_without_any_configuration_the_way_out_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="freshet up"):
        Config.load(environment={"FRESHET_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [", "no YAML"), ("- 1", "no mapping"), ("\udcff", "cannot be read")],
)
def test_an_unreadable_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "broken.yaml"
    file.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    with pytest.raises(ConfigError, match=message) as caught:
        Config.load(file, environment={})
    assert "broken.yaml" in str(caught.value)


def test_a_written_configuration_reads_back_and_is_private(tmp_path: Path) -> None:
    config = Config.from_dict(GOOD | {"kafka_properties": {"a": "b"}, "topic_prefix": "p."})
    file = tmp_path / "deep" / "config.yaml"

    config.write(file)

    assert Config.load(file, environment={}) == config
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert pickle.loads(pickle.dumps(config)) == config


def test_what_java_is_told_of_the_deployment() -> None:
    config = Config.from_dict(GOOD | {"topic_prefix": "p.", "store_prefix": "s:"})
    table: Any = SimpleNamespace(name="cpu")
    assert config.deployment_dict(table) == {
        "kafka": {"bootstrap.servers": "broker:9092"},
        "redis": {
            "url": "redis://cache:6379/0",
            "cluster": False,
            "prefix": "s:",
            "tombstone_retention_ms": 86_400_000,
        },
        "region": "aws:eu-west-1",
        "start_offsets": "committed-or-earliest",
        "group": "p.freshet-cpu",
        "uid_prefix": "",
    }


def test_a_login_is_translated_for_java() -> None:
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'a"b',
        "ssl.ca.location": "/ca.pem",
    }
    config = Config.from_dict(GOOD | {"kafka_properties": login})
    assert config.kafka_client_properties() == {"bootstrap.servers": "broker:9092", **login}
    assert config.kafka_java_properties() == {
        "bootstrap.servers": "broker:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            ' username="me" password="a\\"b";'
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
    }


REGION: dict[str, Any] = {
    "kafka_bootstrap": "us:9092",
    "kafka_properties": {"sasl.password": "secret"},
    "redis": {"gcp:us-east1-b": "redis://cache:6379/0"},
    "home_region": "aws:eu-west-1",
    "region": "gcp:us-east1-b",
    "regions": {
        "aws:eu-west-1": {"kafka_bootstrap": "eu:9092", "kafka_properties": {"client.id": "me"}},
        "aws:us-east-1": {"kafka_bootstrap": "us-1:9092", "role": "waypoint"},
        "gcp:us-east1-b": {"inbox_partitions": 8},
    },
}


def test_a_regions_file_reads_back_and_shows_no_password(tmp_path: Path) -> None:
    config = Config.from_dict(REGION | {"profiles": "profiles/"})
    file = tmp_path / "config.yaml"

    config.write(file)

    assert Config.load(file, environment={}) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert config.inbox_partitions == 8
    secret = {"kafka_bootstrap": "a:1", "kafka_properties": {"sasl.password": "secret"}}
    assert "secret" not in repr(Config.from_dict(GOOD | {"regions": {"a:b": secret}}))


def test_without_a_region_the_file_is_the_home_regions() -> None:
    config = Config.from_dict(GOOD)
    assert (config.region, config.role) == ("aws:eu-west-1", "destination")
    with pytest.raises(ConfigError, match="use the home region's configuration"):
        _ = Config.from_dict(REGION).home_redis


def test_every_problem_of_the_regions_is_told_at_once() -> None:
    found = problems(
        REGION
        | {
            "redis": {"aws:eu-west-1": "redis://cache"},
            "regions": {
                "nowhere": {"kafka_bootstrap": "a:1"},
                "aws:us_east": {"kafka_bootstrap": "broker", "role": "satellite"},
                "aws:us.east": {"inbox_partitions": 0},
                "gcp:us-east1-b": {"kafka_bootstrap": "other:9092"},
            },
        }
    )
    expected = [
        "'nowhere' is not provider:region",
        "regions.aws:us_east.kafka_bootstrap: 'broker' is not host:port",
        "regions.aws:us_east.role: 'satellite' is none of destination, waypoint",
        "regions.aws:us.east.inbox_partitions: 0",
        "regions.aws:us.east.kafka_bootstrap is missing",
        "aws:us_east and aws:us.east have the same topic",
        "regions.gcp:us-east1-b.kafka_bootstrap: this file is for gcp:us-east1-b",
        "region: 'gcp:us-east1-b' has no URL in redis",
        "home_region: 'aws:eu-west-1' is not in regions",
    ]
    for part in expected:
        assert any(part in problem for problem in found), f"{part} is missing in {found}"
    assert len(found) == len(expected)


def test_fields_of_a_region_that_cannot_be_read_are_told_with_all_others() -> None:
    broken = {"a:b": {"kafka": "a:1", "inbox_partitions": "4"}, "c:d": "c:1"}
    found = problems(REGION | {"regions": broken, "start_offsets": "yesterday"})
    expected = ["a:b: unknown field 'kafka'", "a:b.inbox_partitions: '4'", "c:d: 'c:1'", "start_of"]
    for part in expected:
        assert any(part in problem for problem in found), f"{part} is missing in {found}"
    assert len(found) == len(expected)


def test_a_waypoint_needs_no_redis_and_home_is_none() -> None:
    own = REGION["regions"] | {"gcp:us-east1-b": {"role": "waypoint"}}
    waypoint = {name: value for name, value in REGION.items() if name != "redis"}
    assert (
        Config.from_dict(waypoint | {"regions": own}).dissemination_dict("region")["redis"] is None
    )
    assert problems(waypoint) == ["redis is missing"]
    home = {"aws:eu-west-1": {"role": "waypoint"}}
    assert any("is no waypoint" in p for p in problems(GOOD | {"regions": home}))


def test_regions_come_from_the_environment() -> None:
    env = {
        "FRESHET_HOME": "/nonexistent",
        "FRESHET_KAFKA_BOOTSTRAP": "us:9092",
        "FRESHET_REDIS": "redis://own:1",
        "FRESHET_REGION": "gcp:us-east1-b",
        "FRESHET_HOME_REGION": "aws:eu-west-1",
        "FRESHET_REGIONS": "{aws:eu-west-1: {kafka_bootstrap: 'eu:1,eu:2'}}",
    }
    config = Config.load(environment=env)
    assert config.redis == {"gcp:us-east1-b": "redis://own:1"}
    assert config.regions["aws:eu-west-1"].kafka_bootstrap == "eu:1,eu:2"
    with pytest.raises(ConfigError, match="FRESHET_REGIONS: is no YAML"):
        Config.load(environment=env | {"FRESHET_REGIONS": "{a"})


def test_what_java_is_told_of_the_regions() -> None:
    # RegionsConfigTest reads the same.
    config = Config.from_dict(REGION | {"topic_prefix": "p."})
    own = {"bootstrap.servers": "us:9092"}  # a password alone is no login
    assert config.dissemination_dict("region") == {
        "region": "gcp:us-east1-b",
        "home_region": "aws:eu-west-1",
        "role": "destination",
        "inbox_topic": "p.inbox.gcp.us-east1-b",
        "dead_letters_topic": "p.dead-letters.inbox.gcp.us-east1-b",
        "progress_topic": "p.progress",
        "kafka": own,
        "home_kafka": {"bootstrap.servers": "eu:9092", "client.id": "me"},
        "regions": {
            "aws:eu-west-1": {
                "kafka": {"bootstrap.servers": "eu:9092", "client.id": "me"},
                "role": "destination",
                "inbox_topic": "p.inbox.aws.eu-west-1",
            },
            "aws:us-east-1": {
                "kafka": own | {"bootstrap.servers": "us-1:9092"},
                "role": "waypoint",
                "inbox_topic": "p.inbox.aws.us-east-1",
            },
        },
        "redis": {
            "url": "redis://cache:6379/0",
            "cluster": False,
            "prefix": "",
            "tombstone_retention_ms": 86_400_000,
        },
        "start_offsets": "committed-or-earliest",
        "group": "p.freshet-region-gcp:us-east1-b",
        "uid_prefix": "",
    }
