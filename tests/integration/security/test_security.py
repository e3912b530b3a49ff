"""With TLS, logins, certificates and minimal rights all works, stops well, and tells nothing.

Goal: with everything of docs/security.md switched on the whole pipeline works; whoever has a wrong
password, certificate or authority is told at once what is wrong, where, and what to do, and has no
job then; no secret is in anything that is left or shown.

Method: the servers of deployment.py, with the users and rights that the page lists. Every secret
has a mark in it that no notation escapes, and all that there is to see is searched for the marks.

Fails when: a job or a client lacks a right, a refusal takes as long as a broker that is away or
does not name the place and the fix, a job is submitted in spite of it, a password cannot be
replaced while a job runs, a mark is found, or the search would not find it.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import KafkaError, Producer
from redis import Redis
from redis.exceptions import NoPermissionError
from typer.testing import CliRunner

from freshet import Client
from freshet.cli.main import app
from freshet.config import Config
from freshet.feedback import FeedbackLostError
from freshet.kafka_access import DEADLINE_S
from freshet.submission import (
    Submission,
    prepare_multicast,
    prepare_region,
    submit_table,
    submit_together,
)
from tests.integration.polling import eventually
from tests.integration.security.deployment import (
    AWAY,
    HOME,
    STORE_PREFIX,
    TABLE,
    TOPIC_PREFIX,
    Deployment,
)
from tests.integration.security.search import command_lines, files_below, found, rest_answers
from tests.integration.topics import Topics, event_json
from tests.reference.model import Event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KEY = "a-key"
CANARY = "0a1b2c3d4e5f6789"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The servers, without a job."""
    with Deployment(tmp_path_factory.mktemp("secured")).running() as running:
        yield running


@pytest.fixture(scope="module")
def refused(servers: Deployment) -> list[str]:
    """What is wrong with how commands are refused; they are run before there are jobs."""
    servers.secrets.make("guessed")
    wrong = []
    for name, (command, values, expected) in refusals(servers).items():
        file = servers.write("refused", values)
        started = time.monotonic()
        result = CliRunner().invoke(app, [command, str(servers.table), "--config", str(file)])
        said = servers.said("refused", f"{name}: {result.output} {result.exception!r}")
        took_s = time.monotonic() - started
        if result.exit_code != 1 or took_s > DEADLINE_S or any(e not in said for e in expected):
            wrong.append(f"{took_s:.1f} s, {said}")
    return wrong + [f"there is a job: {job}" for job in servers.stack.flink.rest.jobs()]


@pytest.fixture(scope="module")
def jobs(servers: Deployment, refused: list[str]) -> dict[str, Submission]:
    """The feature, multicast and region job, running."""
    flink = servers.stack
    home, away = Config.from_dict(servers.home()), Config.from_dict(servers.away())
    feature = submit_table(servers.table, home, stack=flink)
    # Before the region's own job has made its inbox.
    prepared = [
        prepare_multicast([servers.table], home, stack=flink),
        prepare_region([servers.table], away, stack=flink),
    ]
    assert prepared[0].warnings == ()
    multicast, region = submit_together(prepared, stack=flink)
    return {"feature": feature, "multicast": multicast, "region": region}


def send_events(servers: Deployment, first: int, count: int = 8) -> None:
    """Sends events of one key, whose values are numbers from the first on."""
    topics = Topics(servers.broker.bootstrap)
    now_ms = time.time_ns() // 1_000_000
    for number in range(first, first + count):
        event = Event(KEY, now_ms + number, float(number))
        topics.send(f"{TOPIC_PREFIX}events.{TABLE}", event_json(event), KEY.encode())
    topics.flush()


def wait_until_served(client: Client, newest: float) -> Any:
    """Waits until a client reads a feature with this newest value."""

    def is_served() -> Any:
        feature = client.get(TABLE, KEY)
        assert feature.value is not None, feature
        assert feature.value[1] == newest, feature.value
        return feature

    return eventually(is_served, f"{client.region} serves {newest:g}", 120)


def test_the_whole_pipeline_works(servers: Deployment, jobs: dict[str, Submission]) -> None:
    send_events(servers, 0)
    for region in (HOME, AWAY):
        config = Config.from_dict(servers.application(region))
        with Client(config, region) as client:
            feature = wait_until_served(client, 7)
            client.feedback(TABLE, KEY, feature.version, error=0.5)
            client.flush()
    assert {job.job.state for job in jobs.values()} == {"RUNNING"}


def test_users_have_no_other_rights(servers: Deployment, jobs: dict[str, Submission]) -> None:
    config = Config.from_dict(servers.application(HOME))
    reader = Redis.from_url(config.redis_url(HOME), ssl_ca_certs=config.redis_ca)
    with pytest.raises(NoPermissionError):
        reader.set(f"{STORE_PREFIX}{TABLE}:{KEY}", "forged")
    with pytest.raises(NoPermissionError):
        reader.get("another:key")

    refused: list[KafkaError | None] = []
    producer = Producer(config.kafka_client_properties())
    producer.produce(
        f"{TOPIC_PREFIX}changes.{TABLE}",
        b"forged",
        on_delivery=lambda error, _: refused.append(error),
    )
    producer.flush(60)
    (error,) = refused
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def refusals(servers: Deployment) -> dict[str, tuple[str, dict[str, Any], list[str]]]:
    """Command, configuration, and what its error must say, of each way to be refused."""
    login, wrong = servers.login("home"), f"${{file:{servers.secrets.file('guessed')}}}"
    stranger = str(servers.certificates.stranger)
    unknown = servers.certificates["unknown"]
    bad_login = [servers.login_port, "invalid credentials", "correct sasl.mechanism, sasl.username"]
    bad_trust = [servers.login_port, "certificate verify failed", "in kafka_properties.ssl.ca"]
    away = f"regions.{AWAY}.kafka_properties"
    home_redis, away_redis = servers.redis_address(HOME), servers.redis_address(AWAY)

    def sender(**changed: str) -> dict[str, Any]:
        region = dict(servers.home()["regions"][AWAY])
        return {"regions": {AWAY: region | {"kafka_properties": changed}}}

    def url(user: str, reference: str, address: str, scheme: str = "rediss") -> str:
        return f"{scheme}://{user}:{reference}@{address}/0"

    without_certificate = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(servers.certificates.authority),
    }
    return {
        "password": (
            "submit",
            servers.home(kafka_properties=login | {"sasl.password": wrong}),
            bad_login,
        ),
        "user": (
            "submit",
            servers.home(kafka_properties=login | {"sasl.username": "nobody"}),
            bad_login,
        ),
        "authority": (
            "submit",
            servers.home(kafka_properties=login | {"ssl.ca.location": stranger}),
            bad_trust,
        ),
        "no certificate for another region": (
            "multicast",
            servers.home(**sender(**without_certificate)),
            [
                servers.certificate_port,
                f"set ssl.certificate.location and ssl.key.location in {away}",
            ],
        ),
        "password for home": (
            "region",
            servers.away(
                regions={
                    HOME: {
                        "kafka_bootstrap": servers.login_port,
                        "kafka_properties": servers.login("reporter") | {"sasl.password": wrong},
                    }
                }
            ),
            [servers.login_port, "invalid credentials", f"in regions.{HOME}.kafka_properties"],
        ),
        "password of Redis": (
            "submit",
            servers.home(redis={HOME: url("writer", wrong, home_redis)}),
            [home_redis, "correct the user and the password of its URL in redis"],
        ),
        "authority of Redis": (
            "submit",
            servers.home(redis_ca=stranger),
            [home_redis, "certificate verify failed", "in redis_ca"],
        ),
        "rights in Redis": (
            "submit",
            servers.home(redis={HOME: servers.redis_url(HOME, "reader")}),
            [home_redis, "has no permissions", "docs/security.md"],
        ),
        "no TLS to Redis": (
            "region",
            servers.away(
                redis={AWAY: url("writer", wrong, away_redis, "redis")},
                redis_ca=None,
                redis_certificate=None,
                redis_key=None,
            ),
            [away_redis, "begins with rediss://"],
        ),
        "no certificate for Redis": (
            "region",
            servers.away(redis_certificate=None, redis_key=None),
            [away_redis, "set redis_certificate and redis_key"],
        ),
        "certificate for Redis": (
            "region",
            servers.away(redis_certificate=str(unknown.certificate), redis_key=str(unknown.key)),
            [away_redis, "set redis_certificate and redis_key"],
        ),
    }


def test_what_is_wrong_is_told_at_once_and_there_is_no_job(refused: list[str]) -> None:
    assert not refused, "\n".join(refused)


def test_an_application_is_told_why_its_feedback_is_lost(servers: Deployment) -> None:
    guessed = f"${{file:{servers.secrets.file('guessed')}}}"
    servers.secrets.make("guessed")
    values = servers.application(HOME)
    values["kafka_properties"] = values["kafka_properties"] | {"sasl.password": guessed}
    client = Client(Config.from_dict(values))
    client.feedback(TABLE, KEY, "1.1", error=0.5)
    why = "invalid credentials with SASL mechanism SCRAM-SHA-512; correct sasl.mechanism"

    def is_told() -> bool:
        with pytest.raises(FeedbackLostError) as caught:
            client.flush(1)
        return why in servers.said("feedback", str(caught.value))

    eventually(is_told, "the client knows that its login is refused")


def test_a_password_is_replaced_while_jobs_run(
    servers: Deployment, jobs: dict[str, Submission]
) -> None:
    rest, job = servers.stack.flink.rest, jobs["feature"].job.id
    admin, name = servers.admin(HOME), servers.redis_secret(HOME, "writer")
    before = servers.secrets[name]
    after = servers.secrets.make(name)
    servers.secrets.file(name).write_text(before, encoding="utf-8")

    admin.execute_command("ACL", "SETUSER", "writer", "resetpass", f">{after}")
    admin.execute_command("CLIENT", "KILL", "USER", "writer")
    failure = eventually(
        lambda: "WRONGPASS" in (told := rest.failure(job)) and told, "the job cannot connect"
    )
    assert servers.redis_address(HOME) in failure
    assert "correct the user and password in redis.url" in failure

    servers.secrets.file(name).write_text(after, encoding="utf-8")
    send_events(servers, 100)
    with Client(Config.from_dict(servers.application(AWAY)), AWAY) as client:
        wait_until_served(client, 107)
    # Flink's REST API tells a state that may be older than what was served.
    eventually(lambda: rest.is_running(job), f"the job runs after: {failure}")


def run(servers: Deployment, *arguments: str) -> str:
    """Runs a command as a user does; gives what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "freshet.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ,
    )
    said = servers.said(arguments[0], done.stdout + done.stderr)
    assert done.returncode == 0, said
    return said


def everything(servers: Deployment) -> dict[str, bytes]:
    """All that somebody may see who may not see the secrets."""
    # Of the broker's topics there are indexes of gigabytes, which are empty.
    left_out = [servers.secrets.folder, servers.folder / "kafka/data"]
    return {
        **files_below(servers.folder, but=left_out),
        **rest_answers(servers.stack.flink.rest),
        **command_lines(servers.stack.id),
    }


def test_no_secret_is_anywhere(servers: Deployment, jobs: dict[str, Submission]) -> None:
    values = servers.home(kafka_properties=servers.login("operator"))
    file = servers.write("operator", values)
    said = run(servers, "status", "--plans", "--json", "--config", str(file))
    assert f'"{AWAY}"' in said
    said = run(servers, "top", "--once", "--json", "--interval", "0.5", "--config", str(file))
    (table,) = json.loads(said)["tables"]
    # Each is of another topic, whose end the operator may ask for.
    seen = {name: table[name] for name in ("events_per_s", "updates_per_s", "dead_letters")}
    assert None not in seen.values(), seen
    run(servers, "config", "--config", str(file))

    places = everything(servers)
    assert found(places, servers.secrets.marks) == {}

    # What is searched is what there is: each place has what it must have.
    expected = {
        "/logs/jobmanager.log": jobs["feature"].job.id,
        "/logs/taskmanager-": "Config values",
        "/logs/kafka.log": "kafka",
        f"/logs/submit-{TABLE}.log": jobs["feature"].job.id,
        "/outputs/status.txt": AWAY,
        "/outputs/config.txt": TOPIC_PREFIX,
        f"/jobs/{jobs['region'].job.id}/exceptions": "exceptionHistory",
        f"/jobs/{jobs['multicast'].job.id}/plan": "plan",
        "/jobmanager/environment": "jvm",
        "/cmdline": "taskmanager.resource-id",
    }
    for end, text in expected.items():
        assert any(
            end in place and text.encode() in content for place, content in places.items()
        ), f"{end} has no {text}"


@pytest.mark.parametrize(
    "shown",
    [
        f"password={CANARY}",
        quote(f"a/{CANARY}/b", safe=""),
        '{"password": "\\"' + CANARY + '\\""}',
        *(base64.b64encode(f"{'x' * n}{CANARY}zz".encode()).decode() for n in range(3)),
    ],
)
def test_the_search_finds_a_secret(shown: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs/taskmanager.log"
    log.write_text(f"INFO it is {shown}\n", encoding="utf-8")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/password").write_text(CANARY, encoding="utf-8")
    places = files_below(tmp_path, but=[tmp_path / "secrets"])
    assert found(places, {"canary": CANARY}) == {str(log): ["canary"]}
    log.write_text("INFO nothing\n", encoding="utf-8")
    assert found(files_below(tmp_path, but=[tmp_path / "secrets"]), {"canary": CANARY}) == {}


def test_the_search_finds_what_a_deployment_leaves(
    servers: Deployment, jobs: dict[str, Submission]
) -> None:
    """The name of a user is no secret, and where it is, a password could be."""
    known = {"table": TABLE, "place of a secret": "file:", "job": jobs["feature"].job.id}
    hits = found(everything(servers), known)
    kinds = {
        kind: [place for place in hits if kind in place]
        for kind in ("/logs/taskmanager-", "/logs/submit-", "REST /jobs/", ".yaml")
    }
    assert all(kinds.values()), kinds
