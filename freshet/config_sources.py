"""Where a configuration's fields come from: a file, over it the environment, the command line.

A field may be set in each; the last one of these counts. Their text is read the same way in the
environment and on the command line.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from freshet.errors import ConfigError
from freshet.regions import unknown_field
from freshet.secrets import has_literal, has_literal_password, is_secret_property

ENVIRONMENT_PREFIX = "FRESHET_"
COMMAND_LINE = "command line"
OTHER_VARIABLES = ("cache_dir", "config", "debug", "flink_jar", "home", "jobs", "servers")
"""What else of that prefix means something, and sets no field."""

_NEAR = 0.85
"""So alike are a field's name and a slip of it (Kubernetes sets variables for every service)."""

REDIS_SCHEMES = ("redis", "rediss", "unix")


@dataclass
class Sources:
    """The fields that are set somewhere, before they are checked."""

    file: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """What set each of the values."""

    problems: list[str] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """What is wrong, if something is."""
        return "configuration" if self.file is None else f"configuration {self.file}"

    def set(self, name: str, value: object, origin: str) -> None:
        """Sets a field over what it was."""
        self.values[name] = value
        self.origins[name] = origin


def variable_of(name: str) -> str:
    """The environment variable that sets a field."""
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"


def read_sources(
    names: Collection[str],
    path: str | Path | None,
    environment: Mapping[str, str],
    overrides: Sequence[str],
    default_home_region: str,
) -> Sources:
    """Reads everything that sets a field here.

    Args:
        names: of all fields.
        path: a YAML file; None for the one that ``FRESHET_CONFIG`` names, or the embedded stack's.
        environment: of the process.
        overrides: ``field=value`` or ``field.entry=value`` each, from the command line.
        default_home_region: when none is set.

    Raises:
        ConfigError: the file cannot be read, or there is none and nothing else is set.
    """
    sources = Sources(_find_file(path, environment))
    if sources.file is not None:
        for name, value in _read_file(sources.file, sources.problems).items():
            sources.set(name, value, f"file {sources.file}")
    for name in names:
        text = environment.get(variable_of(name))
        if text is not None:
            _set_from_text(sources, name, text, f"environment {variable_of(name)}")
    sources.problems += _misspelt(names, environment)
    for override in overrides:
        _override(sources, names, override)
    if sources.file is None and not sources.values and not sources.problems:
        raise ConfigError(
            ["no stack runs here and no configuration is given; start one with 'freshet up',"
             " or name a file with --config or FRESHET_CONFIG"]
        )  # fmt: skip
    redis = sources.values.get("redis")
    if isinstance(redis, str) and not sources.origins["redis"].startswith("file "):
        found = sources.values
        own = found.get("region") or found.get("home_region", default_home_region)
        found["redis"] = {own: redis}
    return sources


def _misspelt(names: Collection[str], environment: Mapping[str, str]) -> list[str]:
    """Variables that set nothing, but look as if they should."""
    problems = []
    for variable in environment:
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name == variable.lower() or name in names or name in OTHER_VARIABLES:
            continue
        near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
        if near:
            problems.append(
                f"environment {variable}: sets no field; did you mean {variable_of(near[0])}?"
            )
    return problems


def stack_home(environment: Mapping[str, str] | None = None) -> Path:
    """Folder of the embedded stack's state: ``$FRESHET_HOME``, else ``./.freshet``."""
    env = os.environ if environment is None else environment
    return Path(env.get(f"{ENVIRONMENT_PREFIX}HOME") or ".freshet").absolute()


def stack_config_file(home: Path) -> Path:
    """The configuration that a running embedded stack leaves for clients and jobs."""
    return home / "config.yaml"


def _find_file(path: str | Path | None, env: Mapping[str, str]) -> Path | None:
    named = path or env.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    if named:
        file = Path(named)
        if not file.is_file():
            raise ConfigError([f"{file} is no file; check the path or unset FRESHET_CONFIG"])
        return file
    embedded = stack_config_file(stack_home(env))
    return embedded if embedded.is_file() else None


def _read_file(file: Path, problems: list[str]) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"cannot be read: {error}"], f"configuration {file}") from error
    try:
        values = _read_yaml(text)
    except ValueError as error:
        raise ConfigError([str(error)], f"configuration {file}") from None
    if not isinstance(values, dict):
        problems.append("is no mapping of field names to values")
        return {}
    return {str(name): value for name, value in values.items()}


def _read_yaml(text: str) -> object:
    """The parsed text; its error tells a place alone, since the parser's quotes what is there."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
    raise ValueError(f"is no YAML{where}; text with special characters needs quotes")


def _override(sources: Sources, names: Collection[str], override: str) -> None:
    left, equals, text = override.partition("=")
    if not equals:
        sources.problems.append("--set: needs field=value, such as --set topic_prefix=test.")
        return
    name, dot, entry = left.strip().partition(".")
    if name not in names:
        sources.problems.append(f"--set: {unknown_field(name, names)}")
    elif not dot:
        _set_from_text(sources, name, text, COMMAND_LINE)
    elif name not in _ENTRY_FIELDS:
        sources.problems.append(
            f"--set {name}: only {' and '.join(_ENTRY_FIELDS)} have entries of their own to set"
        )
    else:
        _refuse_secrets(sources, name, {entry: text})
        before = sources.values.get(name, {})
        both = {**before, entry: text} if isinstance(before, Mapping) else {entry: text}
        sources.set(name, both, COMMAND_LINE)


def _set_from_text(sources: Sources, name: str, text: str, origin: str) -> None:
    try:
        value = _TEXT_READERS.get(name, str)(text)
    except ValueError as error:
        where = f"--set {name}" if origin == COMMAND_LINE else variable_of(name)
        sources.problems.append(f"{where}: {error}")
        return
    if origin == COMMAND_LINE:
        _refuse_secrets(sources, name, value)
    sources.set(name, value, origin)


def _refuse_secrets(sources: Sources, name: str, value: object) -> None:
    """Others on the machine can read a command line."""
    entries = value if isinstance(value, Mapping) else {"": value}
    for entry, text in entries.items():
        if isinstance(text, Mapping):
            _refuse_secrets(sources, f"{name}.{entry}", text)
        elif isinstance(text, str) and (
            (is_secret_property(str(entry)) and has_literal(text)) or has_literal_password(text)
        ):
            sources.problems.append(
                f"--set {name}: has a secret, which others can read on a command line; give"
                " ${file:/path} or ${env:NAME} in its place"
            )


def _redis(text: str) -> str | dict[str, str]:
    """One URL (of the configuration's region), or ``region=url`` pairs with commas between."""
    if text.startswith(tuple(f"{scheme}:" for scheme in REDIS_SCHEMES)):
        return text
    return _pairs(text)


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    parts = [part.strip() for part in text.split(",")]
    for number, part in enumerate(parts, start=1):
        name, equals, value = part.partition("=")
        if part and not equals:
            # Not quoted: it may be part of a password with a comma.
            raise ValueError(
                f"part {number} is no name=value; pairs are separated by commas, and a value that"
                " has one needs a reference, such as ${file:/path}"
            )
        if part:
            pairs[name.strip()] = value.strip()
    return pairs


def _boolean(text: str) -> bool:
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


_ENTRY_FIELDS = ("kafka_properties", "redis")

_TEXT_READERS: dict[str, Callable[[str], Any]] = {
    "redis": _redis,
    "regions": _read_yaml,
    "kafka_properties": _pairs,
    "redis_cluster": _boolean,
}
