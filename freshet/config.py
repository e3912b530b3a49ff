"""Deployment configuration: which Kafka, which Redis for each region, which Flink.

One flat YAML file; every field may be overridden by an environment variable ``FRESHET_<FIELD>``,
and that on the command line. Secrets are given by reference (``freshet/secrets.py``)::

    kafka_bootstrap: broker-1:9092,broker-2:9092
    kafka_properties: {security.protocol: SASL_SSL, sasl.mechanism: PLAIN,
                       sasl.username: me, sasl.password: "${file:/run/secrets/kafka}"}
    redis:
      aws:eu-west-1: redis://cache.eu:6379/0
    home_region: aws:eu-west-1
    flink_rest: http://flink:8081

Where tables are sent to other regions, each region has a file of its own, since a broker's address
may depend on where it is seen from::

    region: gcp:us-east1-b
    home_region: aws:eu-west-1
    kafka_bootstrap: broker.gcp-us:9092
    redis: {gcp:us-east1-b: redis://cache.gcp-us:6379/0}
    regions:
      aws:eu-west-1: {kafka_bootstrap: broker.eu:9092}
      aws:us-east-1: {kafka_bootstrap: broker.us:9092, role: waypoint}

Nothing else differs between a laptop and a cluster: the same jobs and the same client read this.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import yaml

from freshet.config_checks import problems_of
from freshet.config_sources import Sources, read_sources
from freshet.config_sources import stack_config_file as stack_config_file
from freshet.config_sources import stack_home as stack_home
from freshet.durations import parse_duration_ms
from freshet.errors import ConfigError
from freshet.kafka_clients import (
    admin_properties,
    client_properties,
    java_properties,
)
from freshet.regions import (
    DEFAULT_INBOX_PARTITIONS,
    DESTINATION,
    Region,
    dead_letters_topic,
    inbox_topic,
    regions_of,
    text_mapping,
    unknown_field,
)
from freshet.secrets import (
    SecretError,
    has_literal,
    has_literal_password,
    is_secret_property,
    mask_properties,
    mask_url,
    resolve,
    resolve_url,
    shown,
)

if TYPE_CHECKING:
    from freshet.table import FeatureTable

DEFAULT_HOME_REGION = "local:home"
"""Region of the embedded stack's feature jobs."""

_PLACES = ("redis", "home_region", "region", "regions")
"""Fields that are checked against each other, once all of them could be read."""


@dataclass(frozen=True)
class Config:
    """Where a deployment's servers are; immutable, and checked as a whole when it is made.

    Raises:
        ConfigError: with every problem, when a field is wrong.
    """

    kafka_bootstrap: str
    """Kafka's bootstrap servers, ``host:port[,host:port]``."""

    redis: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Region (``provider:region``) to the URL of its Redis: ``redis://``, with TLS ``rediss://``,
    an ACL user as ``rediss://user:${file:/path}@host:port/0``. The region that this configuration
    is for must be in it, unless it is a waypoint."""

    home_region: str = DEFAULT_HOME_REGION
    """Region whose Redis the feature jobs write, and where tables are sent from."""

    region: str = ""
    """Region that this configuration is for; empty for the home region."""

    regions: Mapping[str, Region] = field(default_factory=dict)
    """The regions that this one sends to, and home, where it reports to; the region itself may be
    among them for its role and its inbox."""

    profiles: str | None = None
    """Path or URL of the planner's folder of prices and bandwidths; if not given, those that
    ship with Freshet."""

    kafka_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further properties of Kafka's clients (TLS, SASL, ...), by librdkafka's names; those of the
    Java clients are derived from them. They hold for other regions' brokers, too, unless those have
    their own."""

    topic_prefix: str = ""
    """Goes before the name of every topic."""

    redis_cluster: bool = False
    """Whether the URLs name nodes of Redis Clusters."""

    redis_ca: str | None = None
    """PEM file of the authorities that vouch for ``rediss://`` servers, at the same path for
    commands and TaskManagers; if not given, those of the system and of Java."""

    redis_certificate: str | None = None
    """PEM file of the certificate that is shown to ``rediss://`` servers, for those that ask for
    one, as Redis does by default; at the same path for commands and TaskManagers."""

    redis_key: str | None = None
    """PEM file of its private key, PKCS#8 without a password."""

    store_prefix: str = ""
    """Goes before every key in Redis."""

    tombstone_retention_ms: int = 86_400_000
    """How long a delete is remembered, so that an older write cannot resurrect the key; ms."""

    start_offsets: str = "committed-or-earliest"
    """Where a job without a checkpoint starts to read: ``committed-or-earliest``, ``earliest`` or
    ``latest``."""

    priority_share: float = 0.02
    """Share of the changes, the most significant ones, that may go out of turn while a link to
    another region is behind, 0 to 1."""

    flink_rest: str | None = None
    """Flink's REST address, ``http://host:port``; not needed where no job is submitted."""

    flink_python: str | None = None
    """Python interpreter on the TaskManagers; if not given, the path of the one that runs the
    command."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", self.region or self.home_region)
        problems = problems_of(self)
        if problems:
            raise ConfigError(problems)
        for name in ("redis", "regions", "kafka_properties"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_dict, (self.to_dict(),))

    @classmethod
    def load(
        cls,
        path: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        overrides: Sequence[str] = (),
    ) -> Config:
        """Reads the configuration that applies here.

        The file is ``path``, else the one that ``FRESHET_CONFIG`` names, else the one of the
        embedded stack that runs in ``$FRESHET_HOME`` or ``./.freshet``. ``FRESHET_<FIELD>`` in
        the environment overrides a field of the file (``FRESHET_REDIS`` is
        ``region=url[,region=url]``, or one URL for the configuration's region; ``FRESHET_REGIONS``
        is YAML or JSON), and is enough without one.

        Args:
            path: a YAML file.
            environment: in place of ``os.environ``.
            overrides: ``field=value`` each, in the environment's notation, over all others.

        Raises:
            ConfigError: with every problem, or when there is no configuration at all.
        """
        return cls.from_sources(cls.sources(path, environment, overrides))

    @classmethod
    def sources(
        cls,
        path: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        overrides: Sequence[str] = (),
    ) -> Sources:
        """What :meth:`load` reads, before it is checked, with the source of each field.

        Raises:
            ConfigError: the file cannot be read, or there is no configuration at all.
        """
        env = os.environ if environment is None else environment
        return read_sources(field_names(), path, env, overrides, DEFAULT_HOME_REGION)

    @classmethod
    def from_sources(cls, sources: Sources) -> Config:
        """Checks what was read.

        Raises:
            ConfigError: with every problem.
        """
        return cls._from_values(sources.values, list(sources.problems), sources.subject)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], subject: str = "configuration") -> Config:
        """The inverse of :meth:`to_dict`; durations may also be text, such as ``"1d"``.

        Raises:
            ConfigError: with every problem.
        """
        return cls._from_values(dict(values), [], subject)

    @classmethod
    def _from_values(cls, values: dict[str, Any], problems: list[str], subject: str) -> Config:
        known = {f.name: f for f in dataclasses.fields(cls)}
        checked: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                problems.append(unknown_field(name, known))
                continue
            try:
                checked[name] = _PARSERS[name](value)
            except ConfigError as error:
                problems += [f"{name}.{problem}" for problem in error.problems]
            except (TypeError, ValueError) as error:
                problems.append(f"{name}: {error}")
        required = [n for n, f in known.items() if _is_required(f)]
        problems += [f"{name} is missing" for name in required if name not in values]
        if not problems:
            try:
                return cls(**checked)
            except ConfigError as error:
                raise ConfigError(error.problems, subject) from None
        # A field that could not be read still leaves the others to be checked.
        candidate = object.__new__(cls)
        stand_ins = {"kafka_bootstrap": "localhost:1"}
        for name, definition in known.items():
            default = stand_ins.get(name, _default(definition))
            object.__setattr__(candidate, name, checked.get(name, default))
        object.__setattr__(candidate, "region", candidate.region or candidate.home_region)
        places = all(name in checked for name in _PLACES if name in values)
        raise ConfigError(problems + problems_of(candidate, places=places), subject)

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain YAML and JSON types; it holds the secrets that are written out."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        plain = {n: dict(v) if isinstance(v, Mapping) else v for n, v in values.items()}
        return plain | {"regions": {n: region.to_dict() for n, region in self.regions.items()}}

    def masked(self) -> dict[str, Any]:
        """The same with the mask in place of every secret that is written out."""
        plain = self.to_dict()
        for region in plain["regions"].values():
            region["kafka_properties"] = (
                None
                if region["kafka_properties"] is None
                else mask_properties(region["kafka_properties"])
            )
        return plain | {
            "redis": {region: mask_url(url) for region, url in self.redis.items()},
            "kafka_properties": mask_properties(self.kafka_properties),
        }

    def written_out_secrets(self) -> list[str]:
        """Problems for what hands this configuration on: secrets that are no references."""
        places = {"kafka_properties": self.kafka_properties} | {
            f"regions.{name}.kafka_properties": region.kafka_properties or {}
            for name, region in self.regions.items()
        }
        found = [
            f"{place}.{name}"
            for place, properties in places.items()
            for name, value in properties.items()
            if is_secret_property(name) and has_literal(value)
        ]
        found += [f"redis.{name}" for name, url in self.redis.items() if has_literal_password(url)]
        return [
            f"{place}: the secret is written out, and a job's graph would show it; put"
            " ${file:/path} or ${env:NAME} in its place"
            for place in found
        ]

    def check_secrets_of_jobs(self) -> None:
        """Makes sure that a job gets no secret but by reference.

        Raises:
            ConfigError: with every secret that is written out.
        """
        problems = self.written_out_secrets()
        if problems:
            raise ConfigError(problems)

    def write(self, path: Path) -> None:
        """Writes the configuration as YAML, readable by its owner only: it may hold passwords."""
        text = yaml.safe_dump(self.to_dict(), sort_keys=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    @property
    def home_redis(self) -> str:
        """URL of the home region's Redis; its secrets may be references.

        Raises:
            ConfigError: the configuration is another region's and does not have it.
        """
        if self.home_region not in self.redis:
            raise ConfigError(
                [
                    f"redis has no URL for the home region, {self.home_region}; use the home"
                    " region's configuration, or add it"
                ]
            )
        return self.redis[self.home_region]

    @property
    def role(self) -> str:
        """Whether this configuration's region is a destination or a waypoint."""
        return self.regions[self.region].role if self.region in self.regions else DESTINATION

    @property
    def inbox_partitions(self) -> int:
        """Partitions of the inbox of this configuration's region."""
        own = self.regions.get(self.region)
        return DEFAULT_INBOX_PARTITIONS if own is None else own.inbox_partitions

    def deployment_dict(self, table: FeatureTable, uid_prefix: str = "") -> dict[str, Any]:
        """What the Java operators of a table's feature job need to know of the deployment.

        Args:
            table: the table.
            uid_prefix: goes before the uid of every operator, in a job of several tables.

        Raises:
            ConfigError: a secret is written out.
        """
        self.check_secrets_of_jobs()
        return {
            "kafka": self.kafka_java_properties(),
            "redis": self._redis_dict(self.home_redis),
            "region": self.home_region,
            "start_offsets": self.start_offsets,
            "group": f"{self.topic_prefix}freshet-{table.name}",
            "uid_prefix": uid_prefix,
        }

    def dissemination_dict(self, job: str, uid_prefix: str = "") -> dict[str, Any]:
        """What the Java operators that take changes to regions need to know of the deployment.

        Args:
            job: names the consumer group, together with the region.
            uid_prefix: goes before the uid of every operator.

        Raises:
            ConfigError: a secret is written out.
        """
        self.check_secrets_of_jobs()
        others = {name: region for name, region in self.regions.items() if name != self.region}
        return {
            "region": self.region,
            "home_region": self.home_region,
            "role": self.role,
            "inbox_topic": inbox_topic(self.region, self.topic_prefix),
            "dead_letters_topic": dead_letters_topic(self.region, self.topic_prefix),
            "progress_topic": f"{self.topic_prefix}progress",
            "kafka": self.kafka_java_properties(),
            "home_kafka": self.kafka_java_properties(self.home_region),
            "regions": {
                name: {
                    "kafka": self.kafka_java_properties(name),
                    "role": region.role,
                    "inbox_topic": inbox_topic(name, self.topic_prefix),
                }
                for name, region in others.items()
            },
            "redis": (
                self._redis_dict(self.redis[self.region]) if self.region in self.redis else None
            ),
            "start_offsets": self.start_offsets,
            "group": f"{self.topic_prefix}freshet-{job}-{self.region}",
            "uid_prefix": uid_prefix,
        }

    def _redis_dict(self, url: str) -> dict[str, Any]:
        return {
            "url": url,
            "cluster": self.redis_cluster,
            "ca": self.redis_ca,
            "certificate": self.redis_certificate,
            "key": self.redis_key,
            "prefix": self.store_prefix,
            "tombstone_retention_ms": self.tombstone_retention_ms,
        }

    def kafka_client_properties(self, region: str | None = None) -> dict[str, str]:
        """Properties of a librdkafka client (confluent-kafka), with their secrets.

        Args:
            region: whose broker; None for the one of this configuration's region.

        Raises:
            ConfigError: a secret is not there any more.
        """
        return client_properties(*self._resolved_broker(region))

    def kafka_admin_properties(self, region: str | None = None) -> dict[str, Any]:
        """The same for kafka-python, which administers the topics.

        Properties that it has no name for tune the other clients and are left out.

        Args:
            region: whose broker; None for the one of this configuration's region.

        Raises:
            ConfigError: a secret is not there any more.
        """
        return admin_properties(*self._resolved_broker(region))

    def kafka_java_properties(self, region: str | None = None) -> dict[str, str]:
        """The same for a Java client, which names a login and a certificate differently.

        References to secrets are left to the client: it resolves them where it runs.

        Args:
            region: whose broker; None for the one of this configuration's region.
        """
        return java_properties(*self._broker(region))

    def kafka_fields(self, region: str | None = None) -> tuple[str, str]:
        """Names of the fields that a broker's address and its clients' properties come from.

        Args:
            region: whose broker; None for the one of this configuration's region.
        """
        if region is None or region == self.region:
            return "kafka_bootstrap", "kafka_properties"
        of_region = f"regions.{region}."
        inherited = self.regions[region].kafka_properties is None
        return f"{of_region}kafka_bootstrap", f"{'' if inherited else of_region}kafka_properties"

    def redis_url(self, region: str) -> str:
        """URL of a region's Redis, with its secrets.

        Raises:
            ConfigError: a secret is not there any more.
        """
        try:
            return resolve_url(self.redis[region])
        except SecretError as error:
            raise ConfigError([f"redis.{region}: {error}"]) from None

    def _resolved_broker(self, region: str | None) -> tuple[str, dict[str, str]]:
        bootstrap, properties = self._broker(region)
        try:
            return bootstrap, {name: resolve(value) for name, value in properties.items()}
        except SecretError as error:
            raise ConfigError([f"kafka_properties of {region or self.region}: {error}"]) from None

    def _broker(self, region: str | None) -> tuple[str, Mapping[str, str]]:
        """Bootstrap servers and client properties of a region's broker, as reached from here."""
        if region is None or region == self.region:
            return self.kafka_bootstrap, self.kafka_properties
        other = self.regions[region]
        assert other.kafka_bootstrap is not None, "only the region's own entry may leave it out"
        inherited = other.kafka_properties is None
        return other.kafka_bootstrap, (
            self.kafka_properties if inherited else other.kafka_properties or {}
        )


def field_names() -> tuple[str, ...]:
    """Names of all fields, in their order."""
    return tuple(definition.name for definition in dataclasses.fields(Config))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is no text")
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{shown(value)} is neither true nor false")
    return value


def _milliseconds(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return parse_duration_ms(value)


def _number(value: object) -> float:
    if isinstance(value, bool):
        raise TypeError(f"{shown(value)} is no number")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{shown(value)} is no number") from None


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "kafka_bootstrap": _text,
    "redis": text_mapping,
    "home_region": _text,
    "region": _text,
    "regions": regions_of,
    "profiles": _optional_text,
    "kafka_properties": text_mapping,
    "topic_prefix": _text,
    "redis_cluster": _boolean,
    "redis_ca": _optional_text,
    "redis_certificate": _optional_text,
    "redis_key": _optional_text,
    "store_prefix": _text,
    "tombstone_retention_ms": _milliseconds,
    "start_offsets": _text,
    "priority_share": _number,
    "flink_rest": _optional_text,
    "flink_python": _optional_text,
}


def _is_required(definition: dataclasses.Field[Any]) -> bool:
    return (
        definition.default is dataclasses.MISSING
        and definition.default_factory is dataclasses.MISSING
    )


def _default(definition: dataclasses.Field[Any]) -> Any:
    if definition.default_factory is not dataclasses.MISSING:
        return definition.default_factory()
    return definition.default
