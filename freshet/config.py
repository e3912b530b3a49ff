"""Deployment configuration: which Kafka, which Redis for each region, which Flink.

One flat YAML file; every field may be overridden by an environment variable ``FRESHET_<FIELD>``::

    kafka_bootstrap: broker-1:9092,broker-2:9092
    kafka_properties: {security.protocol: SASL_SSL, sasl.mechanism: PLAIN,
                       sasl.username: me, sasl.password: "..."}
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
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from freshet.durations import parse_duration_ms
from freshet.errors import ConfigError
from freshet.kafka_clients import (
    admin_properties,
    client_properties,
    connection_problems,
    java_properties,
)
from freshet.regions import (
    DEFAULT_INBOX_PARTITIONS,
    DESTINATION,
    REGION_NAME,
    WAYPOINT,
    Region,
    dead_letters_topic,
    inbox_topic,
    region_problems,
    regions_of,
    text_mapping,
)

if TYPE_CHECKING:
    from freshet.table import FeatureTable

START_OFFSETS = ("committed-or-earliest", "earliest", "latest")
"""Where a job without a checkpoint starts to read its topics."""

DEFAULT_HOME_REGION = "local:home"
"""Region of the embedded stack's feature jobs."""

_ENVIRONMENT_PREFIX = "FRESHET_"
_TOPIC_PREFIX = re.compile(r"[A-Za-z0-9._-]*")
_REDIS_SCHEMES = ("redis", "rediss", "unix")

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
    """Region (``provider:region``) to the URL of its Redis (``redis://``, ``rediss://``). The
    region that this configuration is for must be in it, unless it is a waypoint."""

    home_region: str = DEFAULT_HOME_REGION
    """Region whose Redis the feature jobs write, and where tables are sent from."""

    region: str = ""
    """Region that this configuration is for; empty for the home region."""

    regions: Mapping[str, Region] = field(default_factory=dict)
    """The regions that this one sends to, and home, where it reports to; the region itself may be
    among them for its role and its inbox."""

    profiles: str | None = None
    """Path or URL of the planner's folder of prices and bandwidths; None: the shipped ones."""

    kafka_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further client properties, by librdkafka's names; the Java side's are derived from them.
    They hold for other regions' brokers, too, unless those have their own."""

    topic_prefix: str = ""
    """Goes before the name of every topic."""

    redis_cluster: bool = False
    """Whether the URLs name nodes of Redis Clusters."""

    store_prefix: str = ""
    """Goes before every key in Redis."""

    tombstone_retention_ms: int = 86_400_000
    """How long a delete is remembered, so that an older write cannot resurrect the key; ms."""

    start_offsets: str = "committed-or-earliest"
    """Where a job without a checkpoint starts to read: one of ``START_OFFSETS``."""

    priority_share: float = 0.02
    """Share of the changes, the most significant ones, that may go out of turn while a link to
    another region is behind, 0 to 1."""

    flink_rest: str | None = None
    """Flink's REST address, ``http://host:port``; None where no job is submitted."""

    flink_python: str | None = None
    """Interpreter on the TaskManagers; None for the one that runs the CLI (embedded stack)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", self.region or self.home_region)
        problems = _problems(self)
        if problems:
            raise ConfigError(problems)
        for name in ("redis", "regions", "kafka_properties"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_dict, (self.to_dict(),))

    @classmethod
    def load(
        cls, path: str | Path | None = None, environment: Mapping[str, str] | None = None
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

        Raises:
            ConfigError: with every problem, or when there is no configuration at all.
        """
        env = os.environ if environment is None else environment
        file = _find_file(path, env)
        problems: list[str] = []
        values: dict[str, Any] = {} if file is None else _read_file(file, problems)
        values |= _overrides(env, values, problems)
        subject = "configuration" if file is None else f"configuration {file}"
        if file is None and not values:
            raise ConfigError(
                ["no stack runs here and no configuration is given; start one with 'freshet up',"
                 " or name a file with FRESHET_CONFIG"]
            )  # fmt: skip
        return cls._from_values(values, problems, subject)

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
                problems.append(f"unknown field {name!r}; known are {', '.join(known)}")
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
        raise ConfigError(problems + _problems(candidate, places=places), subject)

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain YAML and JSON types."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        plain = {n: dict(v) if isinstance(v, Mapping) else v for n, v in values.items()}
        return plain | {"regions": {n: region.to_dict() for n, region in self.regions.items()}}

    def write(self, path: Path) -> None:
        """Writes the configuration as YAML, readable by its owner only: it may hold passwords."""
        text = yaml.safe_dump(self.to_dict(), sort_keys=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    @property
    def home_redis(self) -> str:
        """URL of the home region's Redis.

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
        """
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

        It holds passwords.

        Args:
            job: names the consumer group, together with the region.
            uid_prefix: goes before the uid of every operator.
        """
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
            "prefix": self.store_prefix,
            "tombstone_retention_ms": self.tombstone_retention_ms,
        }

    def kafka_client_properties(self, region: str | None = None) -> dict[str, str]:
        """Properties of a librdkafka client (confluent-kafka).

        Args:
            region: whose broker; None for the one of this configuration's region.
        """
        return client_properties(*self._broker(region))

    def kafka_admin_properties(self, region: str | None = None) -> dict[str, Any]:
        """The same for kafka-python, which administers the topics.

        Properties that it has no name for tune the other clients and are left out.

        Args:
            region: whose broker; None for the one of this configuration's region.
        """
        return admin_properties(*self._broker(region))

    def kafka_java_properties(self, region: str | None = None) -> dict[str, str]:
        """The same for a Java client, which names a login and a certificate differently.

        Args:
            region: whose broker; None for the one of this configuration's region.
        """
        return java_properties(*self._broker(region))

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


def stack_home(environment: Mapping[str, str] | None = None) -> Path:
    """Folder of the embedded stack's state: ``$FRESHET_HOME``, else ``./.freshet``."""
    env = os.environ if environment is None else environment
    return Path(env.get(f"{_ENVIRONMENT_PREFIX}HOME") or ".freshet").absolute()


def stack_config_file(home: Path) -> Path:
    """The configuration that a running embedded stack leaves for clients and jobs."""
    return home / "config.yaml"


def _find_file(path: str | Path | None, env: Mapping[str, str]) -> Path | None:
    named = path or env.get(f"{_ENVIRONMENT_PREFIX}CONFIG")
    if named:
        file = Path(named)
        if not file.is_file():
            raise ConfigError([f"{file} is no file; check the path or unset FRESHET_CONFIG"])
        return file
    embedded = stack_config_file(stack_home(env))
    return embedded if embedded.is_file() else None


def _read_file(file: Path, problems: list[str]) -> dict[str, Any]:
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"cannot be read: {error}"], f"configuration {file}") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError([f"is no YAML: {reason}"], f"configuration {file}") from error
    if not isinstance(values, dict):
        problems.append("is no mapping of field names to values")
        return {}
    return {str(name): value for name, value in values.items()}


def _overrides(
    env: Mapping[str, str], values: Mapping[str, Any], problems: list[str]
) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    for definition in dataclasses.fields(Config):
        variable = f"{_ENVIRONMENT_PREFIX}{definition.name.upper()}"
        text = env.get(variable)
        if text is None:
            continue
        try:
            overrides[definition.name] = _ENVIRONMENT_READERS.get(definition.name, str)(text)
        except ValueError as error:
            problems.append(f"{variable}: {error}")
    redis = overrides.get("redis")
    if isinstance(redis, str):
        both = {**values, **overrides}
        own = both.get("region") or both.get("home_region", DEFAULT_HOME_REGION)
        overrides["redis"] = {own: redis}
    return overrides


def _environment_redis(text: str) -> str | dict[str, str]:
    """One URL (of the configuration's region), or ``region=url`` pairs with commas between."""
    if text.startswith(tuple(f"{scheme}:" for scheme in _REDIS_SCHEMES)):
        return text
    return _environment_pairs(text)


def _environment_pairs(text: str) -> dict[str, str]:
    pairs = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is no name=value; separate pairs by commas")
        pairs[name.strip()] = value.strip()
    return pairs


def _environment_yaml(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"is no YAML: {' '.join(str(error).split())}") from error


def _environment_bool(text: str) -> bool:
    known = {
        "1": True,
        "true": True,
        "yes": True,
        "0": False,
        "false": False,
        "no": False,
        "": False,
    }
    if text.lower() not in known:
        raise ValueError(f"{text!r} is neither true nor false")
    return known[text.lower()]


_ENVIRONMENT_READERS: dict[str, Callable[[str], Any]] = {
    "redis": _environment_redis,
    "regions": _environment_yaml,
    "kafka_properties": _environment_pairs,
    "redis_cluster": _environment_bool,
}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _milliseconds(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return parse_duration_ms(value)


def _number(value: object) -> float:
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    return float(value)  # type: ignore[arg-type]


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


def _problems(config: Config, *, places: bool = True) -> list[str]:
    return [
        *_kafka_problems(config),
        *_redis_problems(config),
        *region_problems(
            config.regions, config.region, config.kafka_bootstrap, config.topic_prefix
        ),
        *(_place_problems(config) if places else ()),
        *_job_problems(config),
    ]


def _kafka_problems(config: Config) -> list[str]:
    problems = connection_problems("", config.kafka_bootstrap, config.kafka_properties)
    if not _TOPIC_PREFIX.fullmatch(config.topic_prefix):
        problems.append(
            f"topic_prefix: {config.topic_prefix!r} has characters that no topic name may have;"
            " use letters, digits, '.', '_' and '-'"
        )
    return problems


def _redis_problems(config: Config) -> list[str]:
    problems = []
    for region, url in config.redis.items():
        if not REGION_NAME.fullmatch(region):
            problems.append(f"redis: region {region!r} is not provider:region")
        parts = urlsplit(url)
        if parts.scheme not in _REDIS_SCHEMES or not (parts.netloc or parts.path):
            problems.append(f"redis: {_without_password(url)!r} of {region} is no redis:// URL")
    if config.tombstone_retention_ms <= 0:
        problems.append(
            f"tombstone_retention_ms: {config.tombstone_retention_ms} is not above 0; a delete"
            " that is forgotten at once can be undone by an older write"
        )
    return problems


def _place_problems(config: Config) -> list[str]:
    """What the fields that tell what is where have wrong between them."""
    if not config.redis and config.role != WAYPOINT:
        return ["redis is missing"]
    problems = []
    is_home = config.region == config.home_region
    field_name = "home_region" if is_home else "region"
    if not is_home and not REGION_NAME.fullmatch(config.region):
        problems.append(f"region: {config.region!r} is not provider:region")
    if config.region not in config.redis and config.role != WAYPOINT:
        problems.append(
            f"{field_name}: {config.region!r} has no URL in redis, which has"
            f" {', '.join(config.redis) or 'none'}"
        )
    if not is_home and config.home_region not in config.regions:
        problems.append(
            f"home_region: {config.home_region!r} is not in regions; add it with the address of"
            " its broker, which this region reports to"
        )
    home = config.regions.get(config.home_region)
    if home is not None and home.role == WAYPOINT:
        problems.append(
            f"regions.{config.home_region}.role: the home region keeps the tables and is no"
            " waypoint; leave the role out"
        )
    return problems


def _job_problems(config: Config) -> list[str]:
    problems = []
    if config.start_offsets not in START_OFFSETS:
        problems.append(
            f"start_offsets: {config.start_offsets!r} is none of {', '.join(START_OFFSETS)}"
        )
    if not 0 <= config.priority_share <= 1:
        problems.append(
            f"priority_share: {config.priority_share} is not between 0 and 1; 0 sends all changes"
            " in their turn"
        )
    if config.flink_rest is not None:
        parts = urlsplit(config.flink_rest)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            problems.append(f"flink_rest: {config.flink_rest!r} is not http://host:port")
    return problems


def _without_password(url: str) -> str:
    return re.sub(r":[^:@/]*@", ":***@", url)
