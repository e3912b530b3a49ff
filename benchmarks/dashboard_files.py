"""Reads the dashboards and alert rules of the folder ``observability``, as far as queries go."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from freshet.stack.layout import CHECKOUT

OBSERVABILITY = CHECKOUT / "observability"
ALERTS = OBSERVABILITY / "alerts.yaml"
ALERT_TESTS = OBSERVABILITY / "alerts_test.yaml"

_METRIC = re.compile(r"(?<![\w$\"])((?:flink|freshet_client)_\w+|up)\b(?!\s*\()")
_SELECTOR = re.compile(r"(?<![\w$\"])(?:flink_\w+|freshet_client_\w+|up)\b(?:\{[^}]*\})?")


@dataclass(frozen=True)
class Query:
    """One query of a panel."""

    expr: str
    legend: str
    """With ``{{label}}`` for labels' values."""

    def filled(self, values: Mapping[str, str]) -> str:
        """The query as Grafana would send it.

        Args:
            values: of variables, without the dollar sign.
        """
        text = self.expr
        for name, value in values.items():
            text = text.replace(f"${name}", value)
        return text


@dataclass(frozen=True)
class Panel:
    """A panel with what it shows."""

    title: str
    kind: str
    unit: str
    at: tuple[int, int, int, int]
    """Left, top, width and height on Grafana's grid of 24 columns."""

    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Dashboard:
    """A dashboard's panels, in the order of the file."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    data: Mapping[str, Any]
    """The whole JSON model."""


def dashboards(folder: Path = OBSERVABILITY / "dashboards") -> list[Dashboard]:
    """All dashboards, by the names of their files."""
    return [_dashboard(file) for file in sorted(folder.glob("*.json"))]


def _dashboard(file: Path) -> Dashboard:
    data = json.loads(file.read_text(encoding="utf-8"))
    return Dashboard(file.stem, data["title"], tuple(_panel(p) for p in data["panels"]), data)


def _panel(data: Mapping[str, Any]) -> Panel:
    grid = data["gridPos"]
    return Panel(
        data["title"],
        data["type"],
        data["fieldConfig"]["defaults"]["unit"],
        (grid["x"], grid["y"], grid["w"], grid["h"]),
        tuple(Query(target["expr"], target["legendFormat"]) for target in data["targets"]),
    )


def alert_rules(file: Path = ALERTS) -> list[dict[str, Any]]:
    """The rules of all groups."""
    groups = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def metrics_in(expr: str) -> set[str]:
    """Names of the metrics that a query asks for."""
    return set(_METRIC.findall(expr))


def selectors_in(expr: str) -> list[str]:
    """What a query selects, each without its range, so that it can be asked for by itself."""
    return _SELECTOR.findall(expr)
