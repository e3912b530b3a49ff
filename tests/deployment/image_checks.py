"""Holds images against the versions that the project pins, the Dockerfile against the checkout."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from freshet.stack.layout import CHECKOUT, redis_server
from tests.deployment.files import (
    COMPOSE,
    DOCKERFILE,
    IGNORE,
    IMAGE_ROOT,
    PROMETHEUS_VERSION,
    Files,
    copied_from_checkout,
    is_ignored,
    stages_of,
)

_EXACT = re.compile(r"v?\d+\.\d+\.\d+(?:[-_].+)?")


def image_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Images without an exact version, or of another one than the project pins."""
    stages = stages_of(files[DOCKERFILE])
    own = {stage.name for stage in stages}
    images = {service["image"] for service in compose["services"].values()}
    images |= {stage.base for stage in stages} - own
    problems = [f"image {image} has no exact version" for image in images if not _is_exact(image)]
    pinned = pinned_versions(files)
    for image in images:
        name, _, tag = image.partition(":")
        version = pinned.get(name)
        if version is not None and not re.fullmatch(rf"{re.escape(version)}(?:[-_.].+)?", tag):
            problems.append(f"image {image} is not of version {version}, which the project pins")
    pythons = {base.split("-")[0] for base in (s.base for s in stages) if "python:" in base}
    if len(pythons) != 1:
        problems.append(f"Dockerfile: stages have different Pythons, {', '.join(sorted(pythons))}")
    return problems


def pinned_versions(files: Files) -> dict[str, str]:
    """Version of each image whose software the project pins, by the image's name."""
    pom = dict(re.findall(r"<([\w.-]+)>([^<]+)</", files["pom.xml"]))
    flink = re.search(r"^apache-flink==(\S+)", files["requirements.lock"], re.MULTILINE)
    assert flink is not None and flink[1] == pom["flink.version"], "one Flink for both languages"
    project = re.search(r'^version = "(.+)"', files["pyproject.toml"], re.MULTILINE)
    python = re.search(r'requires-python = ">=(\d+\.\d+)', files["pyproject.toml"])
    assert project is not None and python is not None
    # Prometheus 3.13.5 is the Go module's v0.313.5.
    prometheus = re.search(
        r"^\tgithub.com/prometheus/prometheus v0\.3(\d\d)\.(\d+)\b",
        files[PROMETHEUS_VERSION],
        re.MULTILINE,
    )
    assert prometheus is not None
    return {
        "apache/kafka": pom["kafka.version"],
        "redis": embedded_redis_version(),
        "prom/prometheus": f"v3.{int(prometheus[1])}.{prometheus[2]}",
        "freshet": project[1],
        "python": python[1],
        "eclipse-temurin": pom["maven.compiler.release"],
    }


@functools.cache
def embedded_redis_version() -> str:
    """Version of the Redis that tests run."""
    command = [str(redis_server()), "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return told.split("v=")[1].split()[0]


def _is_exact(image: str) -> bool:
    return _EXACT.fullmatch(image.partition(":")[2]) is not None


def dockerfile_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """What the image lacks, or has too much of."""
    stages = stages_of(files[DOCKERFILE])
    final, names = stages[-1], [stage.name for stage in stages]
    problems = []
    for stage in stages:
        for source, _ in copied_from_checkout(stage):
            if not (CHECKOUT / source).exists():
                problems.append(f"Dockerfile: {source} is not in the checkout")
            if is_ignored(source, files[IGNORE]):
                problems.append(f"Dockerfile: {source} is left out by {IGNORE}")
        for copy in stage.all("COPY"):
            origin = copy.option("from")
            if origin is not None and origin not in names:
                problems.append(f"Dockerfile: there is no stage {origin}")
    runs = {stage.name: [run.words for run in stage.all("RUN")] for stage in stages}
    problems += _build_problems(runs, files["Makefile"])
    readable = {word for run in final.all("RUN") if "a+rX" in run.words for word in run.words}
    for _, target in copied_from_checkout(final):
        if target.split("/")[0] not in readable:
            problems.append(f"Dockerfile: {target} may be readable by its owner alone")
    users = [each.text for each in final.all("USER")]
    if not users or users[-1] in ("root", "0"):
        problems.append("Dockerfile: the image runs as root")
    environment = final.environment()
    venv = environment.get("VIRTUAL_ENV", "")
    if not venv or environment.get("PATH", "").split(":")[0] != f"{venv}/bin":
        problems.append("Dockerfile: the Python environment is not active")
    if venv != f"{IMAGE_ROOT}/.venv" or [each.text for each in final.all("WORKDIR")] != [
        IMAGE_ROOT
    ]:
        problems.append(f"Dockerfile: the checkout or its environment is not at {IMAGE_ROOT}")
    return problems + _builder_problems(compose)


def _builder_problems(compose: Mapping[str, Any]) -> list[str]:
    """Services that build what cannot be built, or what another one builds at the same time."""
    builds = [each for each in compose["services"].values() if "build" in each]
    dockerfiles = [(each["build"]["context"], each["build"]["dockerfile"]) for each in builds]
    problems = [
        f"{COMPOSE}: there is no {dockerfile}"
        for context, dockerfile in dockerfiles
        if not (CHECKOUT / context / dockerfile).is_file()
    ]
    images = [each["image"] for each in builds]
    twice = {image for image in images if images.count(image) > 1}
    return problems + [f"{COMPOSE}: several services build {image}" for image in sorted(twice)]


def _build_problems(runs: Mapping[str, list[list[str]]], makefile: str) -> list[str]:
    """The image is built by what `make setup` runs."""
    variables = dict(re.findall(r"^(\w+) \?= (.+)$", makefile, re.MULTILINE))
    recipe = "$(MVN) $(MVN_FLAGS) -DskipTests package"
    assert recipe in makefile, "how the Makefile builds the jar"
    for name in ("MVN", "MVN_FLAGS"):
        recipe = recipe.replace(f"$({name})", variables[name])
    problems = []
    if runs.get("jar") != [recipe.split()]:
        problems.append(f"Dockerfile: the jar is not built by {recipe!r}, as the Makefile does")
    if runs.get("python") != [["make", ".venv/.complete"]]:
        problems.append("Dockerfile: the environment is not made by 'make .venv/.complete'")
    rule = makefile.partition("\n$(VENV)/.complete:")[2].partition("\n\n")[0]
    if "-r requirements.lock" not in rule or rule.count("--require-hashes") != 2:
        problems.append("Makefile: .venv is not made of the lock files with their hashes")
    return problems
