"""A job of the chart runs in Flink's application mode, as its FlinkDeployment says.

Goal: whoever installs the chart gets jobs that start, keep features fresh and can be recovered.

Method: the manifests of a home region with a login for Kafka and one for Redis, the passwords by
reference: one in a mounted file, one in a variable. What its FlinkDeployment has is run as
tests/deployment/pods.py says, against a real Kafka and Redis.

Fails when: preparing or the start of the job fails, no feature gets to Redis, no checkpoint
completes where the chart wants it, `helm test` would fail, or a password is in a log, a checkpoint,
a command line or what Flink's REST interface tells. Skipped where helm is missing.

Not tried here: Flink's operator, its Kubernetes part and high availability.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from freshet import Client, Feature
from freshet.config import Config
from freshet.stack import KafkaOptions, Stack, StackOptions
from freshet.stack.kafka import KafkaBroker, Listener, Security
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.stack.redis import RedisOptions
from freshet.submission import feature_job_name
from tests.deployment.chart import RELEASE, Manifests, render
from tests.deployment.pods import Pods
from tests.integration.security.search import command_lines, files_below, found, rest_answers
from tests.integration.topics import Topics, event_json
from tests.reference.model import Event

HOME = "aws:eu-west-1"
TABLE = "newest"
USER = "freshet"
KEYS = ("a", "b")
VALUES = (1.0, 2.0, 6.0)
EXPECTED = pytest.approx([3.0, 14 / 3, 3.0])
"""Mean, variance and count of the values."""

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass
class Servers:
    """Kafka and Redis, each with a user; Kafka also has a port for the test, without one."""

    folder: Path
    passwords: dict[str, str] = field(
        default_factory=lambda: {name: secrets.token_hex(16) for name in ("kafka", "redis")}
    )

    def __post_init__(self) -> None:
        self.folder.mkdir()
        users = self.folder / "users.acl"
        users.write_text(
            # One without a right, who may only ask whether it is there.
            "user default on nopass -@all +ping\n"
            f"user {USER} on >{self.passwords['redis']} ~* &* +@all\n",
            encoding="utf-8",
        )
        redis = RedisOptions(persistent=False, settings={"aclfile": str(users)})
        options = StackOptions(regions=(HOME,), kafka=None, flink=None, redis=redis)
        self.stack = Stack(self.folder / "stack", options)
        ports = PortPicker()
        self._login_port = ports.pick()
        user = f'user_{USER}="{self.passwords["kafka"]}"'
        login = Security(
            "SASL_PLAINTEXT",
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "plain.sasl.jaas.config": f"{_PLAIN} required {user};",
            },
        )
        self.broker = KafkaBroker(
            ports.pick(),
            ports.pick(),
            self.folder / "kafka",
            self.folder / "logs",
            KafkaOptions(short_lived=True),
            self.stack.id,
            [Listener("LOGIN", self._login_port, self._login_port, login)],
        )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Starts them; ends them, and what else has the stack's id, with the block."""
        with self.stack:
            self.broker.start()
            yield

    @property
    def values(self) -> dict[str, Any]:
        """Of a home region with one table and the passwords in Secrets."""
        redis = self.stack.home_redis
        return {
            "config": {
                "home_region": HOME,
                "kafka_bootstrap": f"{LOOPBACK}:{self._login_port}",
                "kafka_properties": {
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "PLAIN",
                    "sasl.username": USER,
                    "sasl.password": "${file:/run/secrets/kafka/password}",
                },
                "redis": {HOME: f"redis://{USER}:${{env:REDIS_LOGIN}}@{LOOPBACK}:{redis.port}/0"},
            },
            "tables": {
                TABLE: {
                    "definition": {
                        "source": {"key": "key", "timestamp": "ts", "value": "value"},
                        "window": {"points": len(VALUES)},
                        "function": {"name": "aggregate"},
                        "budget": {"kind": "time-share", "share": 0.9},
                        "freshness_slo": "2s",
                        "regions": [HOME],
                    }
                }
            },
            "mounts": [
                {"secret": "kafka-login", "path": "/run/secrets/kafka", "keys": ["password"]}
            ],
            # A name that Flink does not take for a secret's: it masks those with "password" itself.
            "secretEnv": [{"name": "REDIS_LOGIN", "secret": "redis-login", "key": "password"}],
            "storage": {"existingClaim": "state"},
            "flinkConfiguration": {"execution.checkpointing.interval": "1 s"},
        }

    @property
    def secrets(self) -> dict[tuple[str, str], str]:
        """What the cluster's Secrets have."""
        return {(f"{name}-login", "password"): text for name, text in self.passwords.items()}

    def client(self) -> Client:
        """Reads the features."""
        address = f"{LOOPBACK}:{self.stack.home_redis.port}"
        redis = {HOME: f"redis://{USER}:{self.passwords['redis']}@{address}/0"}
        return Client(Config(self.broker.bootstrap, redis, HOME))

    def send_events(self) -> None:
        """A window of each key, up to now."""
        topics = Topics(self.broker.bootstrap)
        now_ms = time.time_ns() // 1_000_000
        for number, value in enumerate(VALUES, 1 - len(VALUES)):
            for key in KEYS:
                event = Event(key, now_ms + number, value)
                topics.send(f"events.{TABLE}", event_json(event), key.encode())
        topics.flush()


# Half a minute, and several on a machine that is busy: all processes begin from nothing.
@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_job_of_the_chart_runs_in_application_mode(tmp_path: Path) -> None:
    servers = Servers(tmp_path / "servers")
    manifests = render(servers.values)
    name = f"{RELEASE}-{TABLE}"
    pods = Pods(manifests, name, tmp_path / "pods", servers.stack.id, servers.secrets)
    with servers.running(), contextlib.ExitStack() as stopping:
        stopping.callback(pods.stop)
        assert f"Topic events.{TABLE} is made." in pods.prepare()
        servers.send_events()
        pods.start()
        pods.wait(
            lambda: pods.rest.jobs() and pods.rest.is_running(pods.job_id), "all of the job runs"
        )
        (job,) = pods.rest.jobs()
        assert (job.id, job.name) == (pods.job_id, feature_job_name(TABLE))

        with servers.client() as client:
            pods.wait(
                lambda: (
                    [_numbers(feature) for feature in client.get_many(TABLE, KEYS)]
                    == [EXPECTED, EXPECTED]
                ),
                "features are served",
            )
        state = pods.path("/var/lib/freshet") / RELEASE
        pods.wait(lambda: list(state.glob("checkpoints/*/chk-*/_metadata")), "a checkpoint")
        checkpoints = f"/jobs/{job.id}/checkpoints"
        assert pods.rest.get(f"{checkpoints}/config")["interval"] == 1_000
        pods.wait(lambda: pods.rest.get(checkpoints)["counts"]["completed"] > 1, "another one")
        _pass_helm_test(pods, manifests, name)
        assert pods.rest.job(job.id).restarts == 0

        places = {**rest_answers(pods.rest), **command_lines(servers.stack.id)}
        # Files come and go while it runs.
        pods.stop()
        places |= files_below(tmp_path, but=[servers.folder, pods.path("/run/secrets/kafka")])
    assert found(places, servers.passwords) == {}
    # What is searched is what there is.
    hits = found(places, {"job": job.id})
    for part in ("output/jobmanager.log", "output/taskmanager.log", "/cmdline", "REST /jobs/"):
        assert any(part in place for place in hits), part


def _numbers(feature: Feature) -> list[float]:
    return [] if feature.value is None else [float(number) for number in feature.value]


def _pass_helm_test(pods: Pods, manifests: Manifests, name: str) -> None:
    """Runs what `helm test` does, with the job's address on this machine."""
    (pod,) = manifests.of("Pod")
    (container,) = pod["spec"]["containers"]
    service = f"http://{name}-rest:"
    command = [pods.rest.url if w.startswith(service) else w for w in container["command"]]
    assert pods.rest.url in command
    assert f"Job {feature_job_name(TABLE)} runs." in pods.run(container, command)
