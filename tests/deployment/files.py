"""Reads docker-compose.yml, the Dockerfile and .dockerignore as Docker does, as far as they go."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from freshet.stack.layout import CHECKOUT

COMPOSE = "docker-compose.yml"
DOCKERFILE = "docker/Dockerfile"
IGNORE = ".dockerignore"
FLINK_SETTINGS = "docker/flink-conf/config.yaml"
PROMETHEUS = "docker/prometheus/prometheus.yml"
PROMETHEUS_VERSION = "tools/prometheus/go.mod"
GRAFANA_SOURCE = "docker/grafana/datasources/prometheus.yaml"
GRAFANA_DASHBOARDS = "docker/grafana/dashboards/freshet.yaml"
HOME = "docker/config/home.yaml"
DESTINATION = "docker/config/destination.yaml"
GUIDE = "docs/compose.md"

READ = (
    *(COMPOSE, DOCKERFILE, IGNORE, FLINK_SETTINGS, PROMETHEUS, HOME, DESTINATION, GUIDE),
    *("pom.xml", "pyproject.toml", "requirements.lock", "Makefile"),
    *(PROMETHEUS_VERSION, GRAFANA_SOURCE, GRAFANA_DASHBOARDS),
)

IMAGE_ROOT = "/opt/freshet"
"""Where the image has the checkout."""

Files = Mapping[str, str]
"""Texts of the deployment's files, by path."""

_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::-([^}]*))?\})")


def read_files() -> dict[str, str]:
    """The deployment's files of this checkout, by path."""
    return {path: (CHECKOUT / path).read_text(encoding="utf-8") for path in READ}


def compose_of(text: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A Compose file with its variables replaced and its anchors merged."""
    values = environment or {}

    def replaced(match: re.Match[str]) -> str:
        dollar, name, default = match.groups()
        return "$" if dollar else values.get(name) or default or ""

    return dict(_in_texts(yaml.safe_load(text), lambda part: _VARIABLE.sub(replaced, part)))


def variables_of(compose_text: str) -> dict[str, str]:
    """The variables that a Compose file lets its user set, with their defaults."""
    found = _VARIABLE.findall(compose_text)
    return {name: default for dollar, name, default in found if not dollar}


def _in_texts(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_in_texts(part, change) for part in value]
    if isinstance(value, dict):
        return {name: _in_texts(part, change) for name, part in value.items()}
    return value


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, its continued lines joined."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Its arguments, without options such as ``--from``."""
        return [word for word in shlex.split(self.text) if not word.startswith("--")]

    def option(self, name: str) -> str | None:
        """The value of ``--name=value``."""
        prefix = f"--{name}="
        found = (word for word in shlex.split(self.text) if word.startswith(prefix))
        return next((word.removeprefix(prefix) for word in found), None)


@dataclass(frozen=True)
class Stage:
    """One ``FROM`` of a Dockerfile and what follows it."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]

    def all(self, name: str) -> list[Instruction]:
        """The instructions of a name, in their order."""
        return [each for each in self.instructions if each.name == name]

    def environment(self) -> dict[str, str]:
        """What ``ENV`` sets."""
        pairs = (word.split("=", 1) for each in self.all("ENV") for word in each.words)
        return dict(pairs)


def stages_of(dockerfile: str) -> list[Stage]:
    """The stages of a Dockerfile."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    instructions = [
        Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()
    ]
    stages: list[Stage] = []
    for each in instructions:
        if each.name == "FROM":
            base, _, name = each.text.partition(" AS ")
            stages.append(Stage(base, name, ()))
        else:
            last = stages.pop()
            stages.append(Stage(last.base, last.name, (*last.instructions, each)))
    return stages


def copied_from_checkout(stage: Stage) -> list[tuple[str, str]]:
    """What a stage copies out of the checkout: source, and destination in the image."""
    pairs = []
    for each in stage.all("COPY"):
        if each.option("from") is None:
            *sources, target = each.words
            for source in sources:
                into = f"{target}{source}" if target.endswith("/") else target
                pairs.append((source, into.removeprefix("./")))
    return pairs


def is_ignored(path: str, dockerignore: str) -> bool:
    """Whether a path of the checkout is kept from the image's build: the last match decides."""
    ignored = False
    for line in dockerignore.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            wanted = pattern.startswith("!")
            if _matches(path, pattern.removeprefix("!")):
                ignored = not wanted
    return ignored


def _matches(path: str, pattern: str) -> bool:
    """Whether a pattern names a path or one of its folders."""
    parts = Path(path).parts
    wanted = pattern.split("/")
    if wanted[0] == "**":
        return any(fnmatch.fnmatch(part, "/".join(wanted[1:])) for part in parts)
    folders: Iterable[tuple[str, ...]] = (parts[:n] for n in range(1, len(parts) + 1))
    return any(
        len(folder) == len(wanted)
        and all(fnmatch.fnmatch(part, text) for part, text in zip(folder, wanted, strict=True))
        for folder in folders
    )


def in_checkout(path: str) -> str:
    """The checkout's path of one in the image; both absolute and of its working directory."""
    return path.removeprefix(f"{IMAGE_ROOT}/")


def json_schema() -> dict[str, Any]:
    """The Compose Specification's schema."""
    file = Path(__file__).with_name("compose-spec.json")
    return dict(json.loads(file.read_text(encoding="utf-8")))
