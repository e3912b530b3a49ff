"""Dashboards and alert rules ask for metrics that there are, and alerts fire when they should.

Goal: a dashboard or an alert that shows nothing is known before anybody looks at it.

Method: Prometheus' own promtool on the configuration and the rules with their unit tests; each
name that a query has against the page of metrics; mistakes made on purpose. That the queries give
data is tested with real jobs, in tests/integration/multicast/test_dashboards.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.dashboard_files import (
    ALERT_TESTS,
    ALERTS,
    Dashboard,
    alert_rules,
    dashboards,
    metrics_in,
)
from freshet.stack.layout import CHECKOUT
from tests.deployment import files
from tests.tools import tool

UNITS = {"ms", "s", "µs", "short", "ops", "percentunit", "bytes", "Bps", "currencyUSD"}
BUILT_IN = {"$__rate_interval", "$__range"}


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it to its end."""
    return subprocess.run(
        [str(tool("promtool", "prometheus")), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def documented() -> set[str]:
    """Full names of all metrics that docs/metrics.md has, and of those of Prometheus itself."""
    page = (CHECKOUT / "docs/metrics.md").read_text("utf-8")
    prefixes = dict(re.findall(r"^\| ([a-z, ]+) \| `(flink_\w+_)<metric>`", page, re.MULTILINE))
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([a-z, ]+) \|", page, re.MULTILINE)
    names = {f"{prefixes[group]}{name}" for name, _, group in rows}
    names |= {f"{prefixes[group]}{name}_count" for name, kind, group in rows if kind == "histogram"}
    return names | set(re.findall(r"`((?:flink|freshet_client)_\w+[a-zA-Z])`", page)) | {"up"}


def problems_of(dashboard: Dashboard) -> list[str]:
    """What is wrong with a dashboard's panels and queries."""
    variables = {f"${each['name']}" for each in dashboard.data["templating"]["list"]}
    problems = []
    for panel in dashboard.panels:
        if not panel.queries:
            problems.append(f"{panel.title}: no query")
        if panel.unit not in UNITS:
            problems.append(f"{panel.title}: unit {panel.unit}")
        for query in panel.queries:
            unknown = metrics_in(query.expr) - documented()
            problems += [f"{panel.title}: {name} is not documented" for name in sorted(unknown)]
            if not metrics_in(query.expr):
                problems.append(f"{panel.title}: asks for no metric: {query.expr}")
            used = set(re.findall(r"\$[a-z_]\w*", query.expr))
            unknown = used - variables - BUILT_IN
            problems += [f"{panel.title}: nothing sets {name}" for name in sorted(unknown)]
    return problems


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda each: str(each.name))
def test_each_panel_asks_for_documented_metrics(dashboard: Dashboard) -> None:
    assert dashboard.panels
    assert problems_of(dashboard) == []
    assert dashboard.data["uid"] == f"freshet-{dashboard.name}"
    first = dashboard.data["templating"]["list"][0]
    assert (first["name"], first["type"], first["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    for panel in dashboard.data["panels"]:
        assert panel["description"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for variable in dashboard.data["templating"]["list"][1:]:
        assert metrics_in(variable["definition"].partition("(")[2]) <= documented()
    _assert_nothing_overlaps(dashboard)


def _assert_nothing_overlaps(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.panels:
        left, top, width, height = panel.at
        cells = {(x, y) for x in range(left, left + width) for y in range(top, top + height)}
        assert left + width <= 24, panel.title
        assert not cells & taken, panel.title
        taken |= cells


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("table_estimatedRegret", "table_estimatedRegrets", "estimatedRegrets is not documented"),
        ("table_pendingKeys", "link_pendingKeys", "link_pendingKeys is not documented"),
        ('table=~\\"$table\\"', 'table=~\\"$tables\\"', "nothing sets $tables"),
        ('"unit": "ops"', '"unit": "per second"', "unit per second"),
    ],
)
def test_a_mistake_in_a_dashboard_is_told(
    tmp_path: Path, right: str, wrong: str, told: str
) -> None:
    text = (ALERTS.parent / "dashboards/features.json").read_text("utf-8")
    assert right in text
    (tmp_path / "features.json").write_text(text.replace(right, wrong), "utf-8")
    (broken,) = dashboards(tmp_path)
    assert told in "\n".join(problems_of(broken))


def test_each_alert_says_what_to_do_and_has_tests_of_both_kinds() -> None:
    page = (CHECKOUT / "docs/observing.md").read_text("utf-8")
    anchors = {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", page, re.M)}
    tests = ALERT_TESTS.read_text("utf-8")
    for rule in alert_rules():
        name = rule["alert"]
        assert metrics_in(rule["expr"]), name
        assert metrics_in(rule["expr"]) <= documented(), name
        assert rule["labels"]["severity"] in ("page", "ticket"), name
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}, name
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert file == "docs/observing.md" and anchor in anchors, name
        of_rule = re.findall(rf"alertname: {name}\n +exp_alerts:(.*)\n", tests)
        assert "" in of_rule, f"{name} is not seen to fire"
        assert " []" in of_rule, f"{name} is not seen not to fire"


def test_the_rules_fire_when_they_should() -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", str(ALERTS))
    assert checked.returncode == 0, checked.stderr
    tested = promtool("test", "rules", str(ALERT_TESTS))
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("summary:", "sumary: ["),
        ("sum by (job_name) (increase(", "sum by (job_name) (increases("),
        ("numRestarts[15m]) > 2", "numRestarts[15m]) > 20"),
        ("chunksRefused[15m]", "chunkRefused[15m]"),
        (") == 0\n        for: 2m", ") == 1\n        for: 2m"),
        ("changesCaughtUp[1d]", "changesCaughtUp[1m]"),
        ("and on (region, table)", "or on (region, table)"),
        ('numRestarts{job_name!~"multicast.*"}[1h]', 'numRestarts{job_name!~"multicast.*"}[1m]'),
        ("numRestarts offset 1h", "numRestarts offset 1m"),
        ("and on (job, instance)", "and on (job)"),
    ],
)
def test_a_broken_rule_is_told(tmp_path: Path, right: str, wrong: str) -> None:
    text = ALERTS.read_text("utf-8")
    assert right in text
    (tmp_path / ALERTS.name).write_text(text.replace(right, wrong), "utf-8")
    quick = (
        *("JobRestarts", "ChunksRefused", "PlannerStale"),
        *("CatchUpStuck", "JobGone", "TargetDown"),
    )
    few = _tests_of(ALERT_TESTS.read_text("utf-8"), quick)
    (tmp_path / ALERT_TESTS.name).write_text(few, "utf-8")
    assert promtool("test", "rules", str(tmp_path / ALERT_TESTS.name)).returncode != 0


def _tests_of(text: str, alerts: tuple[str, ...]) -> str:
    """The file's beginning, and the tests of some alerts: those over hours take seconds."""
    head, *tests = re.split(r"(?m)^(?=  - name: )", text)
    return head + "".join(test for test in tests if any(f": {name}\n" in test for name in alerts))


@pytest.mark.parametrize(
    ("right", "wrong", "is_good"),
    [
        ("scrape_timeout", "scrape_timeout", True),
        ("scrape_timeout", "scrape_timeouts", False),
        ("type: A", "type: B", False),
        ("alerts.yaml", "alarms.yaml", False),
    ],
)
def test_prometheus_takes_its_configuration(
    tmp_path: Path, right: str, wrong: str, is_good: bool
) -> None:
    text = (CHECKOUT / files.PROMETHEUS).read_text("utf-8")
    assert right in text
    shutil.copy(ALERTS, tmp_path)
    # As the container has it, but at another place.
    text = text.replace("/etc/freshet/", f"{tmp_path}/").replace(right, wrong)
    (tmp_path / "prometheus.yml").write_text(text, "utf-8")
    checked = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert (checked.returncode == 0) is is_good, checked.stderr
