"""A secret stays where it is: nothing that a configuration shows or hands to a job has it."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshet.cli.main import app
from freshet.cli.status import describe
from freshet.config import Config
from freshet.errors import ConfigError, FreshetError
from freshet.secrets import mask_url, resolve, resolve_url
from freshet.store.connection import connect
from freshet.submission import PreparedJob, _command, _Script

MARK = "s3cr3t"
"""At both ends of each secret, so that part of one is noticed, too."""

SECRETS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="@:/?#&=%+,;{}[]*!$\\'\" "),
    max_size=12,
).map(lambda middle: f"{MARK}{middle}{MARK}")

LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
    "sasl.password": "${env:PATH}",
}

PLACES = ["sasl.password", "ssl.key.password", "region", "redis", "other redis", "query"]


def placed(place: str, secret: str) -> dict[str, Any]:
    """A configuration with a secret, or a reference to one, in a place."""
    values: dict[str, Any] = {
        "kafka_bootstrap": "broker:9092",
        "home_region": "a:b",
        "redis": {"a:b": "redis://cache:6379/0"},
        "flink_rest": "http://flink:8081",
        "regions": {"c:d": {"kafka_bootstrap": "far:9092"}},
    }
    if place in ("redis", "other redis", "query"):
        url = f"redis://cache?password={secret}" if place == "query" else f"redis://me:{secret}@c:1"
        values["redis"]["e:f" if place == "other redis" else "a:b"] = url
    elif place == "region":
        values["regions"]["c:d"]["kafka_properties"] = LOGIN | {"sasl.password": secret}
    else:
        values["kafka_properties"] = LOGIN | {place: secret}
    return values


def outcomes(values: dict[str, Any], folder: Path) -> Iterator[str]:
    """All that a configuration shows, whether or not it is a right one."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    for arguments in (["config"], ["config", "--json", "--set", "redis_cluster=maybe"]):
        result = CliRunner().invoke(app, [*arguments, "--config", str(file)])
        yield result.output
        yield repr(result.exception)
    try:
        config = Config.from_dict(values)
    except ConfigError as error:
        yield f"{error} {error!r}"
        return
    yield f"{config} {config!r} {config.masked()}"
    status = SimpleNamespace(jobs=list, task_managers=list)
    with mock.patch("freshet.cli.status.FlinkRest", return_value=status):
        yield json.dumps(describe(config, None), ensure_ascii=False)
    try:
        yield repr(connect(config))
    except FreshetError as error:
        yield f"{error} {error!r}"
    yield from told_to_jobs(config, folder)


def told_to_jobs(config: Config, folder: Path) -> Iterator[str]:
    """What Flink gets of it: settings in the graph, and the arguments of the program."""
    table: Any = SimpleNamespace(name="t")
    for told in (lambda: config.deployment_dict(table), lambda: config.dissemination_dict("j")):
        try:
            yield json.dumps(told(), ensure_ascii=False)
        except ConfigError as error:
            yield f"{error} {error!r}"
    job = PreparedJob("job", ("t",), _Script("region_job", (folder / "t.py",), 1), config, [])
    with mock.patch("freshet.submission.flink_jar", return_value=folder / "freshet.jar"):
        yield " ".join(_command([job], folder))


@pytest.mark.parametrize("place", PLACES)
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(secret=SECRETS)
@example(secret=f"{MARK}&{MARK}")
def test_a_secret_that_is_written_out_is_not_shown(place: str, secret: str, tmp_path: Path) -> None:
    for shown in outcomes(placed(place, secret), tmp_path):
        assert MARK not in shown


@pytest.mark.parametrize("place", PLACES)
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(secret=SECRETS, by_file=st.booleans())
def test_a_secret_by_reference_reaches_clients_alone(
    place: str, secret: str, by_file: bool, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{secret}\n", encoding="utf-8")
    reference = f"${{file:{file}}}" if by_file else "${env:SECRET}"
    with mock.patch.dict(os.environ, {"SECRET": secret}):
        values = placed(place, reference)
        for shown in outcomes(values, tmp_path):
            assert MARK not in shown
        config = Config.from_dict(values)
        assert MARK.encode() not in pickle.dumps(config)
        if place == "redis":
            options = connect(config).get_connection_kwargs()
            assert (options["username"], options["password"]) == ("me", secret)
        elif place == "region":
            assert config.kafka_client_properties("c:d")["sasl.password"] == secret
        elif place in ("sasl.password", "ssl.key.password"):
            assert config.kafka_client_properties()[place] == secret


@pytest.mark.parametrize(
    "values",
    [
        {"kafka_properties": f"sasl.password={MARK}"},
        {"kafka_properties": [MARK]},
        {"redis": f"redis://:{MARK}@cache"},
        {"redis": {"a:b": f"http://me:{MARK}@cache"}},
        {"redis": {"a:b": f"redis://me:p/{MARK}@cache"}},
        {"redis": {"a:b": f"redis://me:{MARK}@[cache"}},
        {"redis": {f"redis://me:{MARK}@cache": "x"}},
        {"regions": {"a:b": f"sasl.password={MARK}"}},
        {"regions": MARK},
        {"kafka_bootstrap": f"SASL_SSL://me:a,{MARK}@broker:1"},
        {"kafka_bootstrap": {"sasl.password": MARK}},
        {"flink_rest": f"http://me:{MARK}@flink:8081"},
        {"profiles": f"https://me:{MARK}@host/profiles"},
        {"priority_share": {"sasl.password": MARK}},
    ],
)
def test_a_secret_in_the_wrong_place_is_not_quoted(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_dict(placed("", "") | {"kafka_properties": {}} | values)
    assert MARK not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"kafka_properties: {{sasl.password: 'unclosed {MARK}",
        f"kafka_properties: {{sasl.password: *{MARK}}}",
        f"kafka_properties: {{sasl.password: !{MARK} x}}",
        f"redis: @{MARK}",
    ],
)
def test_a_line_that_is_no_yaml_is_not_quoted(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="is no YAML at line 1") as caught:
        Config.load(file, environment={})
    assert MARK not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("FRESHET_KAFKA_PROPERTIES", f"sasl.password=a,{MARK}"),
        ("FRESHET_REDIS", f"http://me:{MARK}@cache"),
        ("FRESHET_REDIS", f"http://me:x={MARK}@cache"),
        ("FRESHET_REGIONS", f"{{a: {MARK}"),
    ],
)
def test_a_variable_that_cannot_be_read_is_not_quoted(variable: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(environment={"FRESHET_HOME": "/nonexistent", variable: text})
    assert MARK not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://cache:6379/0", "redis://cache:6379/0"),
        ("redis://me:pw@cache", "redis://me:***@cache"),
        ("redis://:pw@cache", "redis://:***@cache"),
        ("redis://pw@cache", "redis://***@cache"),
        ("redis://me:a@b/c@cache", "redis://me:***@cache"),
        ("redis://:a@one,rediss://:b@two", "redis://:***@one,rediss://:***@two"),
        ("redis://me:${file:/a@b}@cache", "redis://me:${file:/a@b}@cache"),
        ("redis://me:x${env:A}@cache", "redis://me:***${env:A}@cache"),
        ("unix:///redis.sock?password=pw&db=1", "unix:///redis.sock?password=***"),
    ],
)
def test_what_is_shown_of_a_url(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def test_only_one_line_break_at_the_end_is_not_the_secrets(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    for text, secret in [
        ("a", "a"),
        ("a\n", "a"),
        ("a\r\n", "a"),
        ("a\n\n", "a\n"),
        (" a ", " a "),
    ]:
        file.write_bytes(text.encode())
        assert resolve(f"<${{file:{file}}}>") == f"<{secret}>"
    file.write_text("a b/@%")
    assert resolve_url(f"redis://:${{file:{file}}}@cache") == "redis://:a%20b%2F%40%25@cache"
