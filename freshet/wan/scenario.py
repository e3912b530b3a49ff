"""A scenario as data: regions, the links between them, and the faults that come over time.

Tests, benchmarks and the demo describe their WAN by it, in Python or as a YAML or JSON file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from freshet.errors import ConfigError
from freshet.table.checks import Problems, suggestion
from freshet.wan.shape import Direction, Shape

_REGION = re.compile(r"[A-Za-z0-9][\w.-]*:[A-Za-z0-9][\w.-]*")


class Role(StrEnum):
    """What a region is for."""

    HOME = "home"
    """Features are computed here."""

    DESTINATION = "destination"
    """Features are read here."""

    WAYPOINT = "waypoint"
    """Passes features on, and keeps none."""


class Kind(StrEnum):
    """What a fault does."""

    STALL = "stall"
    """Bytes are held until the fault ends; connections stay open."""

    RESET = "reset"
    """Connections are reset once, at the start."""

    CUT = "cut"
    """Connections are reset, and new ones refused until the fault ends."""

    SLOW = "slow"
    """The links have another bandwidth and delay until the fault ends."""

    KILL = "kill"
    """A server is killed, and started again with its data when the fault ends."""

    EMPTY = "empty"
    """A server is killed, and started again without its data when the fault ends."""


SERVER_KINDS = frozenset({Kind.KILL, Kind.EMPTY})
"""Kinds of faults that befall a region's server; the others befall links."""


class Server(StrEnum):
    """What runs in a region."""

    BROKER = "broker"
    REDIS = "redis"


def link_name(source: str, target: str) -> str:
    """Name of the link from a region to another."""
    return f"{source}->{target}"


@dataclass(frozen=True)
class Region:
    """A region."""

    name: str
    """``provider:region``."""

    role: Role = Role.DESTINATION

    @property
    def keeps_features(self) -> bool:
        """Whether it has an online store."""
        return self.role is not Role.WAYPOINT


@dataclass(frozen=True)
class Link:
    """What a region's connections to another pass through; the same in both directions of bytes."""

    source: str
    """Region whose clients open the connections."""

    target: str
    """Region whose servers accept them."""

    bandwidth_bps: float | None = None
    """Bit/s of payload in each direction, all connections together; None for no limit."""

    delay_ms: float = 0.0
    """One way."""

    jitter_ms: float = 0.0
    """The delay varies by so much to either side."""

    @property
    def name(self) -> str:
        """Such as ``"aws:eu-west-1->aws:us-east-1"``."""
        return link_name(self.source, self.target)

    @property
    def shape(self) -> Shape:
        """Of each direction."""
        return Shape(self.bandwidth_bps, self.delay_ms, self.jitter_ms)


@dataclass(frozen=True)
class Fault:
    """One fault: a kind, a time, and links, or a region with all of its links, or its server."""

    kind: Kind
    start_s: float = 0.0
    """After the start of the scenario."""

    duration_s: float = 0.0
    """0 for a reset, which has no duration."""

    links: tuple[str, ...] = ()
    """Names of links."""

    region: str | None = None
    """Instead of links: all to it and from it; or, with a server, where that is."""

    direction: Direction = Direction.BOTH
    """Of the bytes; for the links that are named."""

    server: Server | None = None
    """For a server's fault."""

    bandwidth_bps: float | None = None
    """For a slow link: as :attr:`Link.bandwidth_bps`."""

    delay_ms: float = 0.0
    """For a slow link: as :attr:`Link.delay_ms`."""

    jitter_ms: float = 0.0
    """For a slow link: as :attr:`Link.jitter_ms`."""

    @property
    def end_s(self) -> float:
        """After the start of the scenario."""
        return self.start_s + self.duration_s

    @property
    def shape(self) -> Shape:
        """Of slow links."""
        return Shape(self.bandwidth_bps, self.delay_ms, self.jitter_ms)

    def __str__(self) -> str:
        where = f"{self.server} of {self.region}" if self.server else self.region
        way = "" if self.direction is Direction.BOTH else f" {self.direction}"
        return f"{self.kind} {where or ', '.join(self.links)}{way} at {self.start_s:g} s"


@dataclass(frozen=True)
class Scenario:
    """Regions, links and faults.

    Raises:
        ConfigError: with every problem, when it is made.
    """

    regions: tuple[Region, ...]
    links: tuple[Link, ...] = ()
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        """Rejects what cannot be run."""
        problems = Problems()
        _check_regions(self.regions, problems)
        _check_links(self, problems)
        for place, fault in enumerate(self.faults):
            _check_fault(self, fault, f"faults[{place}]", problems)
        if not problems:
            problems.extend(_overlaps(self))
        if problems:
            raise ConfigError(problems, "scenario")

    @property
    def home(self) -> str:
        """Name of the home region."""
        return next(region.name for region in self.regions if region.role is Role.HOME)

    def links_of(self, fault: Fault) -> tuple[Link, ...]:
        """Links that a fault befalls."""
        if fault.region is None:
            return tuple(link for link in self.links if link.name in fault.links)
        return tuple(link for link in self.links if fault.region in (link.source, link.target))

    def to_dict(self) -> dict[str, Any]:
        """As YAML and JSON have it; :func:`scenario_from_mapping` reads it back."""
        return {
            name: [_plain(part) for part in getattr(self, name)]
            for name in ("regions", "links", "faults")
        }


def load_scenario(file: Path) -> Scenario:
    """Loads a scenario from a YAML or JSON file.

    Raises:
        ConfigError: with every problem, or why the file can't be read.
    """
    subject = f"scenario {file}"
    try:
        # JSON is YAML.
        parsed = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"can't be read: {error}"], subject) from error
    except yaml.YAMLError as error:
        raise ConfigError([f"is no YAML: {' '.join(str(error).split())}"], subject) from error
    try:
        return scenario_from_mapping(parsed)
    except ConfigError as error:
        raise ConfigError(error.problems, subject) from error


def scenario_from_mapping(mapping: object) -> Scenario:
    """The scenario of a parsed file.

    A link may have ``both_ways: true``, which stands for a second one back.

    Raises:
        ConfigError: with every problem.
    """
    if not isinstance(mapping, Mapping):
        raise ConfigError(["must be a mapping with regions and links"], "scenario")
    problems = Problems()
    problems.unknown_fields("", mapping, [field.name for field in fields(Scenario)])
    parts = {
        name: tuple(_read_list(mapping.get(name, []), name, read, problems))
        for name, read in _READERS.items()
    }
    if problems:
        raise ConfigError(problems, "scenario")
    return Scenario(**parts)


def _read_list(
    value: object,
    name: str,
    read: Callable[[Mapping[str, Any], str, Problems], Iterator[Any]],
    problems: Problems,
) -> Iterator[Any]:
    if not isinstance(value, list):
        problems.append(f"{name} must be a list, not {value!r}")
        return
    for place, entry in enumerate(value):
        where = f"{name}[{place}]"
        if isinstance(entry, Mapping):
            yield from read(entry, where, problems)
        else:
            problems.append(f"{where} must be a mapping, not {entry!r}")


def _read_region(entry: Mapping[str, Any], where: str, problems: Problems) -> Iterator[Region]:
    yield from _made(Region, entry, {"role": Role}, where, problems)


def _read_link(entry: Mapping[str, Any], where: str, problems: Problems) -> Iterator[Link]:
    both_ways = entry.get("both_ways", False)
    if not isinstance(both_ways, bool):
        problems.append(f"{where}.both_ways must be true or false, not {both_ways!r}")
    there = {name: value for name, value in entry.items() if name != "both_ways"}
    yield from _made(Link, there, {}, where, problems)
    if both_ways is True and {"source", "target"} <= there.keys():
        back = {**there, "source": there["target"], "target": there["source"]}
        # What is wrong with it was told for the way there.
        yield from _made(Link, back, {}, where, Problems())


def _read_fault(entry: Mapping[str, Any], where: str, problems: Problems) -> Iterator[Fault]:
    links = entry.get("links", [])
    if not isinstance(links, list):
        problems.append(f"{where}.links must be a list of names, not {links!r}")
        links = []
    enums = {"kind": Kind, "direction": Direction, "server": Server}
    yield from _made(Fault, {**entry, "links": tuple(links)}, enums, where, problems)


_READERS: dict[str, Callable[[Mapping[str, Any], str, Problems], Iterator[Any]]] = {
    "regions": _read_region,
    "links": _read_link,
    "faults": _read_fault,
}


def _made(
    kind: type[Any],
    entry: Mapping[str, Any],
    enums: Mapping[str, type[StrEnum]],
    where: str,
    problems: Problems,
) -> Iterator[Any]:
    """The part, unless a field is missing, unknown, or no member of its enumeration."""
    before = len(problems)
    problems.unknown_fields(f"{where}: ", entry, [field.name for field in fields(kind)])
    for field in fields(kind):
        if field.default is MISSING and field.name not in entry:
            problems.append(f"{where}.{field.name} is missing")
    values = dict(entry)
    for name, members in enums.items():
        if values.get(name) is not None:
            problems.one_of(f"{where}.{name}", values[name], [each.value for each in members])
    if len(problems) == before:
        values |= {
            name: members(values[name])
            for name, members in enums.items()
            if values.get(name) is not None
        }
        yield kind(**values)


def _plain(part: Region | Link | Fault) -> dict[str, Any]:
    """Fields that are not as by default, as YAML and JSON have them."""
    defaults = {field.name: field.default for field in fields(part)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(part).items()
        if value != defaults[name]
    }


def _check_regions(regions: tuple[Region, ...], problems: Problems) -> None:
    names = [region.name for region in regions]
    for name in names:
        if not isinstance(name, str) or not _REGION.fullmatch(name):
            problems.append(f"region {name!r} is not provider:region")
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        problems.append(f"region {name} is there twice")
    homes = [region.name for region in regions if region.role is Role.HOME]
    if len(homes) != 1:
        problems.append(f"one region must have the role home, not {', '.join(homes) or 'none'}")


def _check_links(scenario: Scenario, problems: Problems) -> None:
    known = [region.name for region in scenario.regions]
    names = [link.name for link in scenario.links]
    for place, link in enumerate(scenario.links):
        where = f"links[{place}]"
        for end in ("source", "target"):
            problems.one_of(f"{where}.{end}", getattr(link, end), known)
        if link.source == link.target:
            problems.append(f"{where} leads from {link.source} to itself")
        elif names.index(link.name) < place:
            problems.append(f"{where}: there is a link {link.name} already")
        link.shape.check(f"{where}.", problems)


def _check_fault(scenario: Scenario, fault: Fault, where: str, problems: Problems) -> None:
    for name in ("start_s", "duration_s"):
        problems.number(f"{where}.{name}", getattr(fault, name), lambda s: s >= 0, "at least 0")
    if fault.kind is Kind.RESET and fault.duration_s:
        problems.append(f"{where}.duration_s: a reset has none; use a cut")
    if fault.region is not None:
        known_regions = [region.name for region in scenario.regions]
        problems.one_of(f"{where}.region", fault.region, known_regions)
    if fault.kind is Kind.SLOW:
        fault.shape.check(f"{where}.", problems)
    elif fault.shape != Shape():
        problems.append(f"{where}: a {fault.kind} has no bandwidth or delay; a slow link has")
    if fault.kind in SERVER_KINDS:
        _check_server_fault(scenario, fault, where, problems)
    else:
        _check_link_fault(scenario, fault, where, problems)


def _check_server_fault(scenario: Scenario, fault: Fault, where: str, problems: Problems) -> None:
    if fault.server is None or fault.region is None:
        problems.append(f"{where}: a {fault.kind} needs a region and a server, broker or redis")
    if fault.links or fault.direction is not Direction.BOTH:
        problems.append(f"{where}: a {fault.kind} befalls a server; it has no links or direction")
    if fault.server is Server.REDIS and any(
        region.name == fault.region and not region.keeps_features for region in scenario.regions
    ):
        problems.append(f"{where}: {fault.region} is a waypoint, which has no Redis")


def _check_link_fault(scenario: Scenario, fault: Fault, where: str, problems: Problems) -> None:
    if fault.server is not None:
        problems.append(f"{where}: a {fault.kind} befalls links; use kill or empty for a server")
    if (fault.region is None) == (not fault.links):
        problems.append(f"{where} must have either links or a region")
    if fault.region is not None and fault.direction is not Direction.BOTH:
        problems.append(f"{where}: the direction is one of links; name them instead of the region")
    known = [link.name for link in scenario.links]
    for name in fault.links:
        if name not in known:
            problems.append(f"{where}: there is no link {name!r}{suggestion(name, known)}")


def _overlaps(scenario: Scenario) -> Iterator[str]:
    """Faults of one kind at the same place and time: the first's end would end both."""
    numbered = enumerate(scenario.faults)
    for (i, first), (j, second) in itertools.combinations(numbered, 2):
        same_time = first.start_s < second.end_s and second.start_s < first.end_s
        if same_time and _places(scenario, first) & _places(scenario, second):
            yield (
                f"faults[{i}] and faults[{j}] overlap, so that the end of one would end the other;"
                " make them one fault, or let one follow the other"
            )


def _places(scenario: Scenario, fault: Fault) -> set[tuple[object, ...]]:
    if fault.kind in SERVER_KINDS:
        return {(fault.region, fault.server)}
    if fault.kind is Kind.RESET:
        return set()
    return {
        (fault.kind, link.name, each)
        for link in scenario.links_of(fault)
        for each in fault.direction.each
    }
