"""The regions of a deployment: what each is for, and how its broker is reached from here."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from freshet.errors import ConfigError
from freshet.kafka_checks import connection_problems
from freshet.secrets import shown

REGION_NAME = re.compile(r"[A-Za-z0-9][\w.-]*:[A-Za-z0-9][\w.-]*", re.ASCII)
"""``provider:region``."""

DESTINATION = "destination"
WAYPOINT = "waypoint"
ROLES = (DESTINATION, WAYPOINT)
"""A destination keeps tables in its Redis; a waypoint has none and only sends on."""

DEFAULT_INBOX_PARTITIONS = 4
MAX_INBOX_PARTITIONS = 10_000
MAX_TOPIC_LENGTH = 249
"""Kafka's limit."""


@dataclass(frozen=True)
class Region:
    """A region as the jobs of the region that a configuration is for see it."""

    kafka_bootstrap: str | None = None
    """Its broker's bootstrap servers as reached from the configuration's region. Left out only for
    that region itself."""

    kafka_properties: Mapping[str, str] | None = field(default=None, repr=False)
    """Properties of the clients of its broker, in place of the configuration's
    ``kafka_properties``."""

    role: str = DESTINATION
    """``destination``, or ``waypoint``: has no Redis and only sends on."""

    inbox_partitions: int = DEFAULT_INBOX_PARTITIONS
    """Partitions of its inbox: the most subtasks that its region job can have."""

    def __post_init__(self) -> None:
        if self.kafka_properties is not None:
            properties = MappingProxyType(dict(self.kafka_properties))
            object.__setattr__(self, "kafka_properties", properties)

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain YAML and JSON types."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {n: dict(v) if isinstance(v, Mapping) else v for n, v in values.items()}


def inbox_topic(region: str, topic_prefix: str = "") -> str:
    """The topic of what other regions send to a region; a topic's name may have no colon."""
    return f"{topic_prefix}inbox.{region.replace(':', '.')}"


def dead_letters_topic(region: str, topic_prefix: str = "") -> str:
    """The topic of what a region's job could not use."""
    return f"{topic_prefix}dead-letters.{inbox_topic(region)}"


def regions_of(value: object) -> dict[str, Region]:
    """The regions of a parsed configuration: names to mappings of the fields of ``Region``.

    Raises:
        ConfigError: with every field that is unknown or has the wrong type.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(["is no mapping of regions' names to their fields"])
    problems: list[str] = []
    regions = {str(name): _region_of(str(name), v, problems) for name, v in value.items()}
    if problems:
        raise ConfigError(problems)
    return regions


def region_problems(
    regions: Mapping[str, Region], own: str, own_bootstrap: str, topic_prefix: str
) -> list[str]:
    """What is wrong with the regions, by themselves.

    Args:
        regions: by name.
        own: region that the configuration is for.
        own_bootstrap: bootstrap servers of its broker.
        topic_prefix: goes before the name of every topic.
    """
    problems = []
    inboxes: dict[str, str] = {}
    for name, region in regions.items():
        problems += _problems_of(name, region)
        if region.kafka_bootstrap is None and name != own:
            problems.append(f"regions.{name}.kafka_bootstrap is missing")
        if name == own and region.kafka_bootstrap not in (None, own_bootstrap):
            problems.append(
                f"regions.{name}.kafka_bootstrap: this file is for {name}, whose broker is"
                " kafka_bootstrap; leave it out here"
            )
        topic, longest = inbox_topic(name, topic_prefix), dead_letters_topic(name, topic_prefix)
        if len(longest) > MAX_TOPIC_LENGTH:
            problems.append(
                f"regions.{name}: the name of its topic {longest!r} is longer than"
                f" {MAX_TOPIC_LENGTH}; shorten the region's name or topic_prefix"
            )
        # Kafka takes names that differ in '.' and '_' alone for the same one.
        same = inboxes.setdefault(topic.replace("_", "."), name)
        if same != name:
            problems.append(f"regions: {same} and {name} have the same topic, {topic}; rename one")
    return problems


def _region_of(name: str, value: object, problems: list[str]) -> Region:
    if not isinstance(value, Mapping):
        problems.append(f"{name}: is no mapping, such as {{kafka_bootstrap: host:9092}}")
        return Region()
    known = [f.name for f in dataclasses.fields(Region)]
    fields: dict[str, Any] = {}
    for field_name, field_value in value.items():
        if field_name not in known:
            problems.append(f"{name}: {unknown_field(field_name, known)}")
            continue
        try:
            fields[field_name] = _PARSERS[field_name](field_value)
        except TypeError as error:
            problems.append(f"{name}.{field_name}: {error}")
    return Region(**fields)


def _problems_of(name: str, region: Region) -> list[str]:
    problems = []
    if not REGION_NAME.fullmatch(name):
        problems.append(f"regions: {name!r} is not provider:region")
    if region.kafka_bootstrap is not None:
        problems += connection_problems(
            f"regions.{name}.", region.kafka_bootstrap, region.kafka_properties or {}
        )
    if region.role not in ROLES:
        problems.append(f"regions.{name}.role: {region.role!r} is none of {', '.join(ROLES)}")
    if not 1 <= region.inbox_partitions <= MAX_INBOX_PARTITIONS:
        problems.append(
            f"regions.{name}.inbox_partitions: {region.inbox_partitions} is not from 1 to"
            f" {MAX_INBOX_PARTITIONS}"
        )
    return problems


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is no text")
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{shown(value)} is no whole number")
    return value


def text_mapping(value: object) -> dict[str, str]:
    """The mapping with its values as text, as Kafka's properties are.

    Raises:
        TypeError: it is no mapping, or something in it has no value.
    """
    if not isinstance(value, Mapping):
        # Not quoted: it may hold a secret.
        raise TypeError("is no mapping of names to values, such as {name: value}")
    empty = [str(name) for name, each in value.items() if each is None]
    if empty:
        raise TypeError(f"{', '.join(empty)} has no value; leave it out or give it one")
    return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}


def unknown_field(name: object, known: Iterable[str]) -> str:
    """Says that a field is unknown, and which one may be meant."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
    return f"unknown field {shown(name)}; {meant}"


_PARSERS: dict[str, Callable[[Any], object]] = {
    "kafka_bootstrap": lambda value: None if value is None else _text(value),
    "kafka_properties": lambda value: None if value is None else text_mapping(value),
    "role": _text,
    "inbox_partitions": _integer,
}
