"""The page of metrics names every metric that the operators have, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "connectors/src/main/java/dev/freshet/connectors/metrics/MetricNames.java"
PYTHON_SOURCE = ROOT / "freshet/pipeline/planner_metrics.py"
GROUPS = {"freshet", "table", "link", "region"}


def test_every_metric_is_documented() -> None:
    names = re.findall(r'String [A-Z_]+ = "(\w+)"', SOURCE.read_text(encoding="utf-8"))
    in_python = re.findall(r'\.(?:counter|gauge)\("(\w+)"', PYTHON_SOURCE.read_text("utf-8"))
    assert in_python
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/metrics.md").read_text("utf-8"), re.M)
    assert len(names) > 20
    assert sorted(documented) == sorted((set(names) - GROUPS) | set(in_python))
