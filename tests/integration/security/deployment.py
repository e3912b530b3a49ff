"""Two regions in which nobody gets anywhere without TLS and a login, with the rights of the docs.

Both have one broker with two listeners: one asks for a login (SCRAM over TLS), the other for a
client's certificate. Each region has a Redis of its own, with ACL users; the one away asks for a
certificate as well. The servers' plain ports are the test's own, and clients do not know them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from redis import Redis

from freshet.config import Config
from freshet.stack import FlinkOptions, KafkaOptions, Stack, StackOptions
from freshet.stack.kafka import KafkaBroker, Listener, Security
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.stack.redis import RedisOptions, RedisServer
from freshet.stack.together import run_together
from tests.integration.security.certificates import STORE_PASSWORD, Certificate, Certificates
from tests.integration.security.rights import kafka_acls, redis_users
from tests.integration.tables import write_definition

HOME, AWAY = "local:home", "local:away"
TABLE = "guarded"
TOPIC_PREFIX, STORE_PREFIX = "sec.", "sec:"
AWAY_VARIABLE = "FRESHET_TEST_REDIS_AWAY"

_LOGINS = ("home", "reporter", "application", "operator")
_CERTIFICATES = ("sender", "region")
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_ITERATIONS = 4096
_TIMEOUT_S = 60.0

FLINK = FlinkOptions(
    # The feature job's interpreter, the planner's, and the region job.
    task_managers=3,
    checkpoint_interval_ms=1_000,
    short_lived=True,
    # Each client lists its properties.
    kafka_log_level="INFO",
)


@dataclass
class Secrets:
    """What must be seen nowhere: each secret has one mark at both ends, however it is escaped."""

    folder: Path
    marks: dict[str, str] = field(default_factory=dict)
    """Of each secret, by its name."""

    def make(self, name: str) -> str:
        """A new secret with everything in it that some notation takes for its own."""
        mark = secrets.token_hex(8)
        # The old one must not be seen, either.
        self.marks[f"{name}-{len(self.marks)}"] = mark
        secret = f"{mark} \"\\@:/%,;'$={mark}"
        self.file(name).write_text(f"{secret}\n", encoding="utf-8")
        return secret

    def file(self, name: str) -> Path:
        """Where a secret is kept."""
        return self.folder / name

    def __getitem__(self, name: str) -> str:
        """The newest secret of this name."""
        return self.file(name).read_text(encoding="utf-8").removesuffix("\n")

    def add_key(self, name: str, key: Path) -> None:
        """A private key is a secret, too: its second line stands for it."""
        self.marks[name] = key.read_text(encoding="ascii").splitlines()[2]


def _write_profiles(folder: Path) -> Path:
    """The planner's view of the two regions."""
    folder.mkdir()
    pairs = ((HOME, AWAY), (AWAY, HOME))
    prices = [f"{u},{v},0.02" for u, v in pairs]
    speeds = [f"{u},{v},1e9" for u, v in pairs]
    (folder / "cost.csv").write_text("\n".join(["src,dest,cost", *prices]))
    (folder / "throughput.csv").write_text(
        "\n".join(["src_region,dst_region,throughput_sent", *speeds])
    )
    (folder / "limits.json").write_text('{"default": {"max_vms": 1}}')
    return folder


class Deployment:
    """The servers while they run, and the configurations that get in."""

    def __init__(self, folder: Path) -> None:
        """Makes certificates and secrets, and describes the servers.

        Args:
            folder: for everything; secrets are in its ``secrets`` alone.
        """
        self.folder = folder
        self.secrets = Secrets(folder / "secrets")
        self.secrets.folder.mkdir()
        self.certificates = Certificates(
            self.secrets.folder / "tls", ["server", "sender", "region"], ["unknown"]
        )
        for name in _LOGINS:
            self.secrets.make(name)
        for region in (HOME, AWAY):
            for name in ("writer", "reader", "admin"):
                self.secrets.make(self.redis_secret(region, name))
        for name in ("sender", "region"):
            self.secrets.add_key(f"key of {name}", self.certificates[name].key)
        self.stack = Stack(folder / "stack", StackOptions(regions=(), kafka=None, flink=FLINK))
        self._ports = PortPicker()
        self.broker = self._describe_broker()
        self._tls_ports = {region: self._ports.pick() for region in (HOME, AWAY)}
        self.redis = {region: self._describe_redis(region) for region in (HOME, AWAY)}
        self.table = write_definition(
            folder, TABLE, window="Points(4)", regions=repr((HOME, AWAY)), freshness_slo="'1s'"
        )
        self._profiles = _write_profiles(folder / "profiles")
        self.outputs = folder / "outputs"
        """What commands and clients have said."""

        self.outputs.mkdir()

    @staticmethod
    def redis_secret(region: str, user: str) -> str:
        """Name of the secret of a user of a region's Redis."""
        return f"redis-{region.replace(':', '-')}-{user}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Deployment]:
        """Starts everything; ends it with the block."""
        away = {AWAY_VARIABLE: self.secrets[self.redis_secret(AWAY, "writer")]}
        servers = [self.broker, *self.redis.values()]
        with mock.patch.dict(os.environ, away), contextlib.ExitStack() as started:

            def start_flink() -> None:
                # It ends the other servers as well, which carry its mark.
                started.enter_context(self.stack)

            run_together([start_flink, *(server.start for server in servers)])
            try:
                self._let_users_in()
                yield self
            finally:
                for server in servers:
                    server.stop()

    def _describe_broker(self) -> KafkaBroker:
        tls = {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.certificates["server"].store),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.key.password": STORE_PASSWORD,
        }
        login = tls | {
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "scram-sha-512.sasl.jaas.config": _SCRAM,
        }
        certificate = tls | {
            "ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.authority),
        }
        settings = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # Whoever comes to the plain port: the broker itself, and the test.
            "super.users": "User:ANONYMOUS",
        }
        ports = [self._ports.pick() for _ in range(4)]
        return KafkaBroker(
            ports[0],
            ports[1],
            self.folder / "kafka",
            self.folder / "logs",
            KafkaOptions(short_lived=True, settings=settings),
            self.stack.id,
            [
                Listener("LOGIN", ports[2], ports[2], Security("SASL_SSL", login)),
                Listener("CERTIFICATE", ports[3], ports[3], Security("SSL", certificate)),
            ],
        )

    def _describe_redis(self, region: str) -> RedisServer:
        name, server = region.replace(":", "-"), self.certificates["server"]
        users = self.folder / f"{name}.acl"
        users.write_text(
            redis_users(
                {
                    user: self.secrets[self.redis_secret(region, user)]
                    for user in ("writer", "reader", "admin")
                },
                STORE_PREFIX,
                TABLE,
            ),
            encoding="utf-8",
        )
        settings = {
            "aclfile": str(users),
            "tls-port": str(self._tls_ports[region]),
            "tls-cert-file": str(server.certificate),
            "tls-key-file": str(server.key),
            "tls-ca-cert-file": str(self.certificates.authority),
            "tls-auth-clients": "yes" if region == AWAY else "no",
        }
        return RedisServer(
            region,
            self._ports.pick(),
            self.folder / f"redis-{name}",
            self.folder / "logs",
            RedisOptions(persistent=False, settings=settings),
            self.stack.id,
        )

    def _let_users_in(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
        users = [
            UserScramCredentialUpsertion(name, mechanism, self.secrets[name].encode())
            for name in _LOGINS
        ]
        principals = {name: f"User:{name}" for name in _LOGINS} | {
            name: f"User:CN={name}" for name in _CERTIFICATES
        }
        acls = kafka_acls(principals, TOPIC_PREFIX, AWAY)
        futures = [
            *admin.alter_user_scram_credentials(users).values(),
            *admin.create_acls(acls).values(),
        ]
        for future in futures:
            future.result(_TIMEOUT_S)

    # What gets in.

    @property
    def login_port(self) -> str:
        """The broker's listener that asks for a login."""
        return f"{LOOPBACK}:{self.broker.listeners[0].port}"

    @property
    def certificate_port(self) -> str:
        """The broker's listener that asks for a certificate."""
        return f"{LOOPBACK}:{self.broker.listeners[1].port}"

    def login(self, user: str) -> dict[str, str]:
        """Properties of a client with a login."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.certificates.authority),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": f"${{file:{self.secrets.file(user)}}}",
        }

    def certificate(self, name: str) -> dict[str, str]:
        """Properties of a client with a certificate."""
        shown: Certificate = self.certificates[name]
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.certificates.authority),
            "ssl.certificate.location": str(shown.certificate),
            "ssl.key.location": str(shown.key),
        }

    def redis_url(self, region: str, user: str = "writer") -> str:
        """A region's Redis over TLS."""
        reference = f"file:{self.secrets.file(self.redis_secret(region, user))}"
        if (region, user) == (AWAY, "writer"):
            reference = f"env:{AWAY_VARIABLE}"
        return f"rediss://{user}:${{{reference}}}@{LOOPBACK}:{self._tls_ports[region]}/0"

    def redis_address(self, region: str) -> str:
        """The same, as errors name it."""
        return f"{LOOPBACK}:{self._tls_ports[region]}"

    def home(self, **changed: Any) -> dict[str, Any]:
        """Home's configuration; some fields may be others."""
        others = {
            "kafka_bootstrap": self.certificate_port,
            "kafka_properties": self.certificate("sender"),
            "inbox_partitions": 1,
        }
        return self._common() | {
            "region": HOME,
            "kafka_bootstrap": self.login_port,
            "kafka_properties": self.login("home"),
            "redis": {HOME: self.redis_url(HOME)},
            "regions": {AWAY: others},
            **changed,
        }

    def away(self, **changed: Any) -> dict[str, Any]:
        """The other region's."""
        home = {
            "kafka_bootstrap": self.login_port,
            "kafka_properties": self.login("reporter"),
        }
        shown = self.certificates["region"]
        return self._common() | {
            "region": AWAY,
            "kafka_bootstrap": self.certificate_port,
            "kafka_properties": self.certificate("region"),
            "redis": {AWAY: self.redis_url(AWAY)},
            "redis_certificate": str(shown.certificate),
            "redis_key": str(shown.key),
            "regions": {HOME: home, AWAY: {"inbox_partitions": 1}},
            **changed,
        }

    def application(self, region: str) -> dict[str, Any]:
        """That of a model which is served in a region."""
        values = self.home() if region == HOME else self.away()
        return values | {
            "kafka_bootstrap": self.login_port,
            "kafka_properties": self.login("application"),
            "redis": {region: self.redis_url(region, "reader")},
        }

    def _common(self) -> dict[str, Any]:
        return {
            "home_region": HOME,
            "redis_ca": str(self.certificates.authority),
            "topic_prefix": TOPIC_PREFIX,
            "store_prefix": STORE_PREFIX,
            "flink_rest": self.stack.flink.rest.url,
            "profiles": str(self._profiles),
        }

    def write(self, name: str, values: Mapping[str, Any]) -> Path:
        """Writes a configuration as a file."""
        file = self.folder / f"{name}.yaml"
        Config.from_dict(values).write(file)
        return file

    def admin(self, region: str) -> Redis:
        """A client of a region's Redis that may do everything, over its plain port."""
        password = self.secrets[self.redis_secret(region, "admin")]
        return Redis(LOOPBACK, self.redis[region].port, username="admin", password=password)

    def said(self, name: str, text: str) -> str:
        """Keeps what somebody said, for the search; gives it back."""
        with (self.outputs / f"{name}.txt").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return text
