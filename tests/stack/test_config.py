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
from freshet.store.connection import connect

GOOD: dict[str, Any] = {
    "kafka_bootstrap": "broker:9092",
    "redis": {"aws:eu-west-1": "redis://cache:6379/0"},
    "home_region": "aws:eu-west-1",
}

LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
    "sasl.password": "secret",
}


def write(path: Path, values: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(values))
    return path


def problems(values: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        Config.from_dict(values)
    return caught.value.problems


def assert_told(found: list[str], expected: list[str]) -> None:
    """Each expected part is in a problem, and there are no more problems."""
    for part in expected:
        assert any(part in problem for problem in found), f"{part} is missing in {found}"
    assert len(found) == len(expected)


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
            "redis_ca": "/nonexistent/ca.pem",
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
        "redis_ca",
    ]
    assert_told(found, expected)


def test_missing_fields_are_told_by_name() -> None:
    assert problems({}) == ["kafka_bootstrap is missing", "redis is missing"]


def test_a_password_in_a_url_is_not_repeated() -> None:
    found = problems(GOOD | {"redis": {"aws:eu-west-1": "http://me:secret@cache"}})
    assert "secret" not in " ".join(found)
    config = Config.from_dict(GOOD | {"kafka_properties": LOGIN})
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
            "ca": None,
            "certificate": None,
            "key": None,
            "prefix": "s:",
            "tombstone_retention_ms": 86_400_000,
        },
        "region": "aws:eu-west-1",
        "start_offsets": "committed-or-earliest",
        "group": "p.freshet-cpu",
        "uid_prefix": "",
    }


def test_a_login_is_translated_for_java(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'a"b',
        "ssl.ca.location": str(authority),
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
        "ssl.truststore.location": str(authority),
    }


def test_a_login_by_reference_stays_one_for_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SecretsTest resolves what is made here.
    file = tmp_path / "password"
    file.write_text("hidden\n")
    monkeypatch.setenv("KEY_PASSWORD", "hidden, too")
    certificate, key = tmp_path / "me.pem", tmp_path / "me.key"
    certificate.touch()
    key.touch()
    references = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": f"${{file:{file}}}",
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
        "ssl.key.password": "${env:KEY_PASSWORD}",
    }
    redis = {"aws:eu-west-1": f"rediss://me:${{file:{file}}}@cache:6379/0"}
    config = Config.from_dict(GOOD | {"kafka_properties": references, "redis": redis})

    table: Any = SimpleNamespace(name="cpu")
    told = config.deployment_dict(table)

    assert told["redis"]["url"] == redis["aws:eu-west-1"]
    assert told["kafka"] == {
        "bootstrap.servers": "broker:9092",
        "config.providers": "freshet",
        "config.providers.freshet.class": "dev.freshet.connectors.secret.SecretProvider",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required"
            f' username="me" password="${{freshet:jaas-file:{file}}}";'
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": f"${{freshet:file:{certificate}}}",
        "ssl.keystore.key": f"${{freshet:file:{key}}}",
        "ssl.key.password": "${freshet:env:KEY_PASSWORD}",
    }
    assert config.kafka_client_properties()["sasl.password"] == "hidden"
    assert config.kafka_admin_properties()["ssl_password"] == "hidden, too"
    assert config.redis_url("aws:eu-west-1") == "rediss://me:hidden@cache:6379/0"


def test_clients_of_redis_trust_the_given_authorities(tmp_path: Path) -> None:
    authorities = tmp_path / "ca.pem"
    authorities.touch()
    redis = {"aws:eu-west-1": "rediss://one:1", "a:b": "redis://two:2"}
    files = {name: str(authorities) for name in ("redis_ca", "redis_certificate", "redis_key")}
    config = Config.from_dict(GOOD | {"redis": redis} | files)
    table: Any = SimpleNamespace(name="cpu")
    told = config.deployment_dict(table)["redis"]
    assert {name: told[name.removeprefix("redis_")] for name in files} == files
    secured, plain = (connect(config, region).get_connection_kwargs() for region in redis)
    names = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
    assert [secured[name] for name in names] == [str(authorities)] * 3
    assert secured["ssl_check_hostname"] is True
    assert not [name for name in plain if name.startswith("ssl")]


def test_a_certificate_for_redis_needs_its_key(tmp_path: Path) -> None:
    file = tmp_path / "me.pem"
    file.touch()
    assert_told(problems(GOOD | {"redis_certificate": str(file)}), ["redis_key is missing"])
    assert_told(problems(GOOD | {"redis_key": str(file)}), ["redis_certificate is missing"])


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"security.protocol": "TLS"}, ".security.protocol: is none of PLAINTEXT, SSL"),
        ({"sasl.password": "x"}, ".security.protocol: PLAINTEXT uses no login; set it"),
        ({"security.protocol": "SASL_SSL"}, ".sasl.mechanism: is missing"),
        (LOGIN | {"sasl.mechanism": "OAUTHBEARER"}, ".sasl.mechanism: 'OAUTHBEARER' is not supp"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN", "sasl.username": "me"},
            ".sasl.password: is missing",
        ),
        ({"ssl.ca.location": "/nonexistent"}, ".ssl.ca.location: '/nonexistent' is no file"),
        ({"ssl.certificate.location": __file__}, ".ssl.key.location: is missing"),
        ({"ssl.key.pem": "${env:PATH}"}, ".ssl.key.pem: is not understood by every client"),
    ],
)
def test_what_would_keep_a_client_of_kafka_out_is_told(
    properties: dict[str, str], expected: str
) -> None:
    assert_told(problems(GOOD | {"kafka_properties": properties}), [f"kafka_properties{expected}"])
    region = {"a:b": {"kafka_bootstrap": "a:1", "kafka_properties": properties}}
    told = [f"regions.a:b.kafka_properties{expected}"]
    assert_told(problems(GOOD | {"regions": region}), told)


def test_every_client_can_do_without_a_check_of_the_host() -> None:
    name = "ssl.endpoint.identification.algorithm"
    config = Config.from_dict(
        GOOD | {"kafka_properties": {"security.protocol": "SSL", name: "none"}}
    )
    assert config.kafka_client_properties()[name] == "none"
    assert config.kafka_java_properties()[name] == ""
    assert config.kafka_admin_properties()["ssl_check_hostname"] is False


def test_a_job_gets_no_secret_that_is_written_out() -> None:
    written = {
        "kafka_properties": LOGIN | {"sasl.password": "hidden"},
        "redis": {"aws:eu-west-1": "redis://me:hidden@cache:6379/0"},
        "regions": {"a:b": {"kafka_bootstrap": "a:1", "kafka_properties": {"x.secret": "hidden"}}},
    }
    config = Config.from_dict(GOOD | written)
    table: Any = SimpleNamespace(name="cpu")
    for told in (lambda: config.deployment_dict(table), lambda: config.dissemination_dict("j")):
        with pytest.raises(ConfigError) as caught:
            told()
        places = [problem.partition(": ")[0] for problem in caught.value.problems]
        assert places == [
            "kafka_properties.sasl.password",
            "regions.a:b.kafka_properties.x.secret",
            "redis.aws:eu-west-1",
        ]


def test_every_reference_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("\n")
    binary.write_bytes(b"\xff")
    found = problems(
        GOOD
        | {
            "redis": {"aws:eu-west-1": f"redis://:${{file:{tmp_path}/nowhere}}@cache"},
            "kafka_properties": {
                "a": f"${{file:{empty}}}",
                "b": f"${{file:{binary}}}",
                "c": "${file:relative}",
                "d": "${env:FRESHET_IS_NOT_SET}",
                "e": "${vault:secret}",
                "f": f"${{file:{tmp_path}}}",
                "g": "${env:no name}",
            },
        }
    )
    expected = [
        "redis.aws:eu-west-1: the file",
        "kafka_properties.a: the file",
        "kafka_properties.b: the file",
        "kafka_properties.c: the file 'relative' is no absolute path",
        "kafka_properties.d: the environment variable FRESHET_IS_NOT_SET is not set",
        "kafka_properties.e: has a '${'",
        "kafka_properties.f:",
        "kafka_properties.g:",
    ]
    assert_told(found, expected)


def test_a_misspelt_variable_is_told(tmp_path: Path) -> None:
    environment = {
        "FRESHET_HOME": str(tmp_path),
        "FRESHET_CONFIG": str(write(tmp_path / "a.yaml", GOOD)),
        "FRESHET_TOPIC_PREFFIX": "a.",
        "FRESHET_KAFKA_BOOTSTRAPS": "a:1",
        "FRESHET_SERVICE_HOST": "10.0.0.1",
        "freshet_debug": "1",
    }
    with pytest.raises(ConfigError) as caught:
        Config.load(environment=environment)
    assert_told(
        caught.value.problems,
        ["FRESHET_TOPIC_PREFFIX: sets no field; did you mean FRESHET_TOPIC_PREFIX?",
         "FRESHET_KAFKA_BOOTSTRAPS: sets no field; did you mean FRESHET_KAFKA_BOOTSTRAP?"],
    )  # fmt: skip


def test_the_command_line_comes_last(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", GOOD | {"kafka_properties": {"a": "1", "b": "2"}})
    env = {"FRESHET_TOPIC_PREFIX": "env.", "FRESHET_STORE_PREFIX": "env."}
    overrides = ["topic_prefix=cli.", "kafka_properties.b=3", "kafka_properties.c.d=4=5"]

    sources = Config.sources(file, env, overrides)
    config = Config.from_sources(sources)

    assert (config.topic_prefix, config.store_prefix) == ("cli.", "env.")
    assert config.kafka_properties == {"a": "1", "b": "3", "c.d": "4=5"}
    assert sources.origins == {
        "kafka_bootstrap": f"file {file}",
        "redis": f"file {file}",
        "home_region": f"file {file}",
        "topic_prefix": "command line",
        "store_prefix": "environment FRESHET_STORE_PREFIX",
        "kafka_properties": "command line",
    }


def test_every_problem_of_the_command_line_is_told() -> None:
    overrides = [
        "kafka_bootstraps=a:1",
        "topic_prefix",
        "redis_cluster=maybe",
        "regions.a:b=1",
        "kafka_properties.sasl.password=hidden",
        "redis=redis://me:hidden@cache",
        "regions={a:b: {kafka_properties: {sasl.password: hidden}}}",
        "priority_share=2",
    ]
    with pytest.raises(ConfigError) as caught:
        Config.load(environment={"FRESHET_HOME": "/nonexistent"}, overrides=overrides)
    found = caught.value.problems
    expected = [
        "'kafka_bootstraps'; did you mean kafka_bootstrap?",
        "--set: needs field=value",
        "--set redis_cluster: 'maybe'",
        "--set regions: only",
        "--set kafka_properties: has a secret",
        "--set redis: has a secret",
        "--set regions.a:b.kafka_properties: has a secret",
        "priority_share: 2",
        "kafka_properties.security.protocol: PLAINTEXT uses no login",
        "kafka_bootstrap is missing",
        "regions.a:b.kafka_bootstrap is missing",
    ]
    assert_told(found, expected)
    assert "hidden" not in str(caught.value)


REGION: dict[str, Any] = {
    "kafka_bootstrap": "us:9092",
    "kafka_properties": LOGIN,
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
    secret = {"kafka_bootstrap": "a:1", "kafka_properties": LOGIN}
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
    assert_told(found, expected)


def test_fields_of_a_region_that_cannot_be_read_are_told_with_all_others() -> None:
    broken = {"a:b": {"kafka": "a:1", "inbox_partitions": "4"}, "c:d": "c:1"}
    found = problems(REGION | {"regions": broken, "start_offsets": "yesterday"})
    expected = ["a:b: unknown field 'kafka'", "a:b.inbox_partitions: '4'", "c:d: is no", "start_of"]
    assert_told(found, expected)


def test_a_waypoint_needs_no_redis_and_home_is_none() -> None:
    own = REGION["regions"] | {"gcp:us-east1-b": {"role": "waypoint"}}
    waypoint = {name: value for name, value in REGION.items() if name != "redis"}
    config = Config.from_dict(waypoint | {"regions": own, "kafka_properties": {}})
    assert config.dissemination_dict("region")["redis"] is None
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
    config = Config.from_dict(REGION | {"topic_prefix": "p.", "kafka_properties": {}})
    own = {"bootstrap.servers": "us:9092"}
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
            "ca": None,
            "certificate": None,
            "key": None,
            "prefix": "",
            "tombstone_retention_ms": 86_400_000,
        },
        "start_offsets": "committed-or-earliest",
        "group": "p.freshet-region-gcp:us-east1-b",
        "uid_prefix": "",
    }
