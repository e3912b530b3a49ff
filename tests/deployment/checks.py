"""Holds the deployment's files against each other, and against what the project is made of.

Each check returns what is wrong, so that a test can break a file and see that it is told.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

import jsonschema
import yaml

from freshet.config import Config
from freshet.stack.layout import CHECKOUT
from tests.deployment.files import (
    COMPOSE,
    DOCKERFILE,
    IMAGE_ROOT,
    Files,
    compose_of,
    copied_from_checkout,
    in_checkout,
    json_schema,
    stages_of,
)
from tests.deployment.guide_checks import guide_problems
from tests.deployment.image_checks import dockerfile_problems, image_problems
from tests.deployment.parts import mounts_of, own_services, services_of
from tests.deployment.server_checks import (
    config_problems,
    flink_problems,
    grafana_problems,
    kafka_problems,
    prometheus_problems,
)

_SECRET = re.compile(r"password|passwd|secret|token|credential", re.IGNORECASE)


def problems_of(files: Files) -> list[str]:
    """Everything that is wrong with the deployment's files."""
    try:
        compose = compose_of(files[COMPOSE])
    except yaml.YAMLError as error:
        return [f"{COMPOSE}: {error}"]
    schema = schema_problems(compose)
    # What has another shape cannot be looked into.
    return schema or [
        problem
        for check in (
            image_problems,
            variable_problems,
            volume_problems,
            command_problems,
            dockerfile_problems,
            kafka_problems,
            flink_problems,
            config_problems,
            prometheus_problems,
            grafana_problems,
            guide_problems,
        )
        for problem in check(files, compose)
    ]


def schema_problems(compose: Mapping[str, Any]) -> list[str]:
    """What the Compose Specification does not allow."""
    errors = _compose_validator().iter_errors(compose)
    return [f"{error.json_path}: {error.message}" for error in errors]


@functools.cache
def _compose_validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


def variable_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Environment variables that nothing reads, and secrets written down."""
    final = stages_of(files[DOCKERFILE])[-1]
    places = {name: service.get("environment", {}) for name, service in services_of(compose)}
    places["Dockerfile"] = final.environment()
    problems = []
    for place, environment in places.items():
        for name, value in environment.items():
            if name.startswith("FRESHET_") and name not in known_variables():
                problems.append(f"{place}: nothing reads {name}")
            if _SECRET.search(name) and value:
                problems.append(f"{place}: {name} is a secret and does not belong here")
    return problems


@functools.cache
def known_variables() -> frozenset[str]:
    """``FRESHET_`` variables that a field of the configuration has, or that the package names."""
    fields = {f"FRESHET_{field.name.upper()}" for field in dataclasses.fields(Config)}
    sources = (CHECKOUT / "freshet").rglob("*.py")
    named = (re.findall(r"\bFRESHET_[A-Z_]*[A-Z]\b", file.read_text("utf-8")) for file in sources)
    return frozenset(fields.union(*named))


def volume_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Volumes that are not declared or not used, and mounts of what is not there."""
    problems, used = [], set()
    made = stages_of(files[DOCKERFILE])[-1]
    chowned = {path for run in made.all("RUN") for path in _owned_by_user(run.text)}
    for name, service in services_of(compose):
        for source, target in mounts_of(service):
            if source.startswith("."):
                if not (CHECKOUT / source).exists():
                    problems.append(f"{name}: {source} is not in the checkout")
                if target.startswith(IMAGE_ROOT) and in_checkout(target) != source[2:]:
                    problems.append(f"{name}: {source} is mounted as {target}")
                continue
            used.add(source)
            if name in own_services(compose) and target not in chowned:
                problems.append(f"{name}: the image's user does not own {target}")
    declared = set(compose.get("volumes", {}))
    problems += [f"volume {name} is declared and not used" for name in declared - used]
    return problems + [f"volume {name} is not declared" for name in used - declared]


def _owned_by_user(run: str) -> list[str]:
    return re.findall(r"chown freshet:freshet (\S+)", run)


def command_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Commands and health checks of our image that name what it does not have."""
    problems = []
    for name, service in services_of(compose):
        if service.get("deploy", {}).get("replicas", 1) != 1 and "ports" in service:
            problems.append(f"{name}: replicas cannot share a port of the host")
        if "healthcheck" not in service and service.get("restart") != "no":
            problems.append(f"{name}: has no health check")
        if name not in own_services(compose):
            continue
        copied = [target for _, target in copied_from_checkout(stages_of(files[DOCKERFILE])[-1])]
        check = service.get("healthcheck", {}).get("test", ["CMD"])[1:]
        for word in (*service["command"], *check):
            if "/" not in word or "://" in word:
                continue
            path = in_checkout(word)
            if not (CHECKOUT / path).exists():
                problems.append(f"{name}: {word} is not in the checkout")
            elif not any(path == top or path.startswith(f"{top}/") for top in copied):
                problems.append(f"{name}: {word} is not in the image")
        problems += _flag_problems(name, service["command"])
    return problems


def _flag_problems(name: str, command: list[str]) -> list[str]:
    if command[0] != "python" or not (CHECKOUT / command[1]).is_file():
        return []
    script = (CHECKOUT / command[1]).read_text(encoding="utf-8")
    flags = [word for word in command if word.startswith("--")]
    return [f"{name}: {command[1]} has no {flag}" for flag in flags if f'"{flag}"' not in script]
