"""What ``freshet plan`` is asked for, checked as a whole: its options, and the job in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from freshet.errors import ConfigError, FreshetError
from freshet.planner import (
    ALGORITHMS,
    Billing,
    Network,
    Plan,
    Problem,
    Stream,
    StreamPlan,
    load_network,
)
from freshet.planner.confidence import number_problems
from freshet.planner.drawing.places import Place, load_places
from freshet.planner.stream import DEFAULT_CHUNK_MB, DEFAULT_LOAD
from freshet.replay import read_bytes
from freshet.table.checks import Problems

DEFAULT_CONFIDENCE = 0.99

_OF_BATCHES = ("deadline_s", "billing", "algorithm", "frontier", "compare", "spread")
_OF_STREAMS = ("freshness_s", "chunk_mb", "latency_s", "load")
_WAYS = (("algorithm",), ("frontier", "compare"), ("spread",), ("running",))
"""Each of these is another way to plan; options of one group go together."""

_NEEDS = {"confidence": "spread", "tolerance": "running", "time_limit_s": "running"}

Made = TypeVar("Made")


@dataclass(frozen=True)
class Options:
    """The command's options that say what is planned and how; None or False where not given."""

    source: str
    destinations: tuple[str, ...]
    profiles: str
    volume_gb: float | None
    deadline_s: float | None
    billing: str | None
    gb_per_s: float | None
    freshness_s: float | None
    chunk_mb: float | None
    latency_s: float | None
    load: float | None
    stripes: int | None
    max_vms: int | None
    limits: str | None
    algorithm: str | None
    frontier: bool
    compare: bool
    spread: float | None
    confidence: float | None
    running: str | None
    tolerance: float | None
    time_limit_s: float | None

    @property
    def given(self) -> set[str]:
        """Names of the options that are given."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name for name, value in values.items() if value is not None and value is not False}


def flag(name: str) -> str:
    """An option as it is typed."""
    return "--" + name.replace("_", "-")


@dataclass(frozen=True)
class Job:
    """What is to be planned, on what there is."""

    network: Network
    problem: Problem | Stream
    running: Plan | StreamPlan | None
    """The plan until now, where there is one."""

    places: Mapping[str, Place]
    """Where regions are, as far as it is known."""


def read_job(options: Options) -> Job:
    """Checks the options and reads the files that they name.

    Raises:
        ConfigError: something is wrong; holds every problem.
    """
    problems = Problems(_combination_problems(options))
    _check_values(options, problems)
    network = _tried(
        problems,
        lambda: load_network(options.profiles, limits=options.limits, max_vms=options.max_vms),
    )
    running = None
    if options.running is not None:
        running = _tried(problems, lambda: read_plan(str(options.running)))
        _check_kind(options, running, problems)
    problem = None
    if network is not None and (options.volume_gb is None) != (options.gb_per_s is None):
        problem = _tried(problems, lambda: _problem_of(options, network))
    places = _tried(problems, lambda: load_places(options.profiles))
    if problems or network is None or problem is None:
        raise ConfigError(problems, "plan")
    return Job(network, problem, running, places or {})


def read_plan(location: str) -> Plan | StreamPlan:
    """Reads a plan that the command wrote.

    Raises:
        FreshetError: the file can't be read, or holds no plan.
    """
    content = read_bytes(location)
    try:
        data = json.loads(content)
        return StreamPlan.from_dict(data) if "gb_per_s" in data else Plan.from_dict(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FreshetError(
            f"{location} is no plan ({type(error).__name__}: {error}); give a file that freshet "
            "plan wrote with --output, and not with --frontier or --compare"
        ) from error


def _tried(problems: Problems, make: Callable[[], Made]) -> Made | None:
    """What is made; None, and what is wrong among the problems, if it can't be."""
    try:
        return make()
    except ConfigError as error:
        problems.extend(error.problems)
    except FreshetError as error:
        problems.append(str(error))
    return None


def _problem_of(options: Options, network: Network) -> Problem | Stream:
    ends = (options.source, options.destinations)
    if options.gb_per_s is not None:
        return Stream(
            network,
            *ends,
            options.gb_per_s,
            freshness_s=options.freshness_s,
            chunk_mb=DEFAULT_CHUNK_MB if options.chunk_mb is None else options.chunk_mb,
            latency_s=options.latency_s or 0.0,
            load=DEFAULT_LOAD if options.load is None else options.load,
            stripes=options.stripes,
        )
    billing = options.billing if options.billing in list(Billing) else Billing.DEADLINE
    volume = options.volume_gb or 0.0
    return Problem(
        network, *ends, volume, options.deadline_s, options.stripes, Billing(str(billing))
    )


def _combination_problems(options: Options) -> list[str]:
    given, problems = options.given, []
    if (options.volume_gb is None) == (options.gb_per_s is None):
        problems.append(
            f"{'neither' if options.volume_gb is None else 'both'} of --volume-gb and --gb-per-s "
            f"{'is' if options.volume_gb is None else 'are'} given; give --volume-gb (and "
            "--deadline-s) for data of a known size, or --gb-per-s (and --freshness-s) for a stream"
        )
    elif options.gb_per_s is not None:
        problems.extend(
            f"{flag(name)} is for --volume-gb, and a stream has --gb-per-s; leave it out"
            for name in _OF_BATCHES
            if name in given
        )
    else:
        problems.extend(
            f"{flag(name)} is for --gb-per-s, and data of a known size has --volume-gb; leave it "
            "out"
            for name in _OF_STREAMS
            if name in given
        )
    ways = [flag(next(name for name in way if name in given)) for way in _WAYS if given & {*way}]
    if len(ways) > 1:
        problems.append(f"{' and '.join(ways)} are different ways to plan; give one of them")
    problems.extend(
        f"{flag(name)} is for {flag(needed)}; give both, or neither"
        for name, needed in _NEEDS.items()
        if name in given and needed not in given
    )
    if options.spread is not None and options.volume_gb is not None and options.deadline_s is None:
        problems.append("--spread needs a deadline to be sure of; give --deadline-s")
    return problems


def _check_values(options: Options, problems: Problems) -> None:
    if options.billing is not None:
        problems.one_of("billing", options.billing, [str(kind) for kind in Billing])
    if options.algorithm is not None:
        problems.one_of("algorithm", options.algorithm, ALGORITHMS)
    confidence = DEFAULT_CONFIDENCE if options.confidence is None else options.confidence
    problems.extend(number_problems(options.spread or 0.0, confidence))
    if options.tolerance is not None:
        problems.number("tolerance", options.tolerance, lambda x: x >= 0, "not negative")
    if options.time_limit_s is not None:
        problems.number("time_limit_s", options.time_limit_s, lambda x: x > 0, "more than 0")


def _check_kind(options: Options, running: Plan | StreamPlan | None, problems: Problems) -> None:
    is_stream = options.gb_per_s is not None
    if running is not None and isinstance(running, StreamPlan) != is_stream:
        found, wanted = ("a stream", "--gb-per-s") if not is_stream else ("a batch", "--volume-gb")
        problems.append(f"{options.running} is a plan for {found}; give {wanted}")
