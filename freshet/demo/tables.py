"""The demo's two tables: one feature, one source, one budget, and two ways to spend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from freshet.demo.readings import Readings
from freshet.demo.regions import DESTINATIONS, FRESHNESS_SLO, HOME
from freshet.table import FeatureTable, load_table

REGRET_PROPORTIONAL = "regret-proportional"
ROUND_ROBIN = "round-robin"

SEASONS = 3
"""The window, in seasons (RALF §2.5.2)."""

STEP = "1h"
STEP_MS = 3_600_000

_EVENTS_TOPIC = "events.cpu_stl"


SENT_POLICY = REGRET_PROPORTIONAL
"""The table of this policy is for all regions, the other one for home alone."""


class DemoTable(NamedTuple):
    """A table definition, and the file that it is submitted from."""

    policy: str
    file: Path
    table: FeatureTable


def write_tables(folder: Path, readings: Readings, budget: float) -> list[DemoTable]:
    """Writes the definitions as a user would, and loads them.

    Every key is computed once in the step in which its window is full; from then on, each step
    has its budget.

    Args:
        folder: for the YAML files; made when missing.
        readings: what is replayed.
        budget: share of the keys that may be computed in each step.

    Raises:
        ConfigError: the budget makes no table.
    """
    names = {REGRET_PROPORTIONAL: "cpu_stl", ROUND_ROBIN: "cpu_stl_round_robin"}
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for policy, name in names.items():
        file = folder / f"{name}.yaml"
        definition = _definition(name, policy, readings, budget)
        file.write_text(yaml.safe_dump(definition, sort_keys=False), encoding="utf-8")
        tables.append(DemoTable(policy, file, load_table(file)))
    return tables


def _definition(name: str, policy: str, readings: Readings, budget: float) -> dict[str, Any]:
    keys = len(readings.keys)
    return {
        "name": name,
        "source": {"topic": _EVENTS_TOPIC, "key": "key", "timestamp": "ts", "value": "value"},
        "window": {"points": SEASONS * readings.period},
        "function": {"name": "stl", "period": readings.period},
        "policy": policy,
        "budget": {
            "kind": "event-time-step",
            "updates": round(budget * keys, 6),
            "step": STEP,
            "initial_updates": keys,
        },
        "regions": [HOME, *DESTINATIONS] if policy == SENT_POLICY else [HOME],
        "freshness_slo": FRESHNESS_SLO,
        # Decisions must not depend on the pace of the replay: no partition is given up on.
        "idle_timeout": None,
    }
