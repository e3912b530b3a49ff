"""Renders the chart as `helm install` would, and finds what is in the manifests."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from freshet.stack.layout import CHECKOUT
from tests.tools import tool

CHART = CHECKOUT / "helm/freshet"
SCHEMAS = Path(__file__).with_name("kubernetes")
ROLES = ("home", "destination", "waypoint")
RELEASE = "eu"
MAIN = "flink-main-container"
"""Name of the container that Flink runs in."""


def values_of(role: str) -> dict[str, Any]:
    """The values of a region of ci/."""
    text = (CHART / f"ci/{role}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def run_helm(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs helm.

    Args:
        arguments: after the program.
        given: its input.
    """
    return subprocess.run(
        [str(tool("helm", "helm")), *arguments],
        cwd=CHECKOUT,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def template(values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """What `helm template` says to values."""
    text = yaml.safe_dump(dict(values))
    return run_helm(
        *("template", RELEASE, str(CHART), "--namespace", "features", "--values", "-"), given=text
    )


@dataclass(frozen=True)
class Manifests:
    """What a release consists of."""

    text: str

    @functools.cached_property
    def all(self) -> list[dict[str, Any]]:
        """Every resource."""
        return [part for part in yaml.safe_load_all(self.text) if part]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The resources of a kind."""
        return [each for each in self.all if each["kind"] == kind]

    def data(self, suffix: str) -> dict[str, str]:
        """The data of the ConfigMap whose name ends so."""
        found = [each for each in self.of("ConfigMap") if each["metadata"]["name"].endswith(suffix)]
        return dict(found[0]["data"])

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """Specifications of the jobs, by name."""
        return {each["metadata"]["name"]: each["spec"] for each in self.of("FlinkDeployment")}


def render(values: Mapping[str, Any]) -> Manifests:
    """The manifests of values that are right."""
    done = template(values)
    assert done.returncode == 0, done.stderr
    return Manifests(done.stdout)


@functools.cache
def rendered(role: str) -> Manifests:
    """The manifests of a region of ci/."""
    return render(values_of(role))


def containers_of(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Flink's container of a job, and the one that comes before it."""
    before = job["jobManager"]["podTemplate"]["spec"]["initContainers"]
    return [*job["podTemplate"]["spec"]["containers"], *before]


def changed(values: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """The values with one replaced, or taken out with None.

    Args:
        values: left as they are.
        path: keys and places in lists, with slashes between.
        value: in its place.
    """
    copy: dict[str, Any] = yaml.safe_load(yaml.safe_dump(dict(values)))
    *folders, last = path.split("/")
    at: Any = copy
    for name in folders:
        at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
    key = int(last) if isinstance(at, list) else last
    if value is None:
        del at[key]
    else:
        at[key] = value
    return copy
