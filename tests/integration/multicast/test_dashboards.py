"""Every query of every dashboard and alert gives data while real jobs run.

Goal: no panel is empty and no alert is blind because a metric is named or labelled otherwise than a
query has it.

Method: a real Prometheus scrapes the Flink of the deployment, on which a feature job runs beside
the multicast job and the region jobs. Each query is asked as Grafana would send it; of an alert,
which compares, each selector by itself.

Fails when: a query gives nothing, or a label that a legend names is not there.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.dashboard_files import ALERTS, alert_rules, dashboards, selectors_in
from benchmarks.prometheus import Prometheus, served_metrics
from freshet.client import Client
from freshet.submission import submit_table
from tests.integration.multicast.changes import Changes
from tests.integration.multicast.flow import flowing
from tests.integration.polling import eventually
from tests.integration.tables import write_definition
from tests.integration.wide_area import FAR, HOME, NEAR, WideArea
from tests.tools import tool

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FEATURES = "watched"
"""A table that is computed at home and sent nowhere."""

VARIABLES = {
    "table": ".*",
    "region": ".*",
    "job": ".*",
    "__rate_interval": "30s",
    "__range": "1m",
}


@pytest.fixture
def client(area: WideArea) -> Iterator[Client]:
    """A client that reads at home."""
    with Client(area.config(HOME)) as running:
        yield running


@pytest.fixture
def prometheus(area: WideArea, client: Client, tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes all Flink processes of the deployment, and the client."""
    program = tool("prometheus", "prometheus")
    flink = area.flink.flink.prometheus_targets
    with (
        served_metrics(client, tmp_path / "client.json") as application,
        Prometheus(program, tmp_path / "prometheus", [flink, application], ALERTS) as running,
    ):
        yield running


@pytest.fixture
def feature_job(area: WideArea) -> Iterator[str]:
    """A feature job on a TaskManager of its own; the Python of another job is not in it."""
    file = write_definition(
        area.folder,
        FEATURES,
        window="Points(4)",
        source="Source(key='key', timestamp='ts', value='value')",
        budget="TimeShare(0.5)",
        bad_values=(7.0,),
    )
    area.flink.flink.start_task_manager()
    job = submit_table(file, area.config(HOME), stack=area.flink).job.id
    try:
        yield job
    finally:
        rest = area.flink.flink.rest
        rest.cancel(job)
        eventually(lambda: rest.job(job).state == "CANCELED", "the feature job ends")


def send_events(area: WideArea, number: int) -> None:
    """One event of each of some keys, at the time of now."""
    now_ms = int(time.time() * 1_000)
    for key in range(20):
        event = {"key": f"key-{key}", "ts": now_ms, "value": float(number % 8)}
        area.topics.send(f"events.{FEATURES}", json.dumps(event).encode(), f"key-{key}".encode())
    area.topics.flush()


def test_every_query_gives_data(
    area: WideArea,
    changes: Changes,
    feature_job: str,
    client: Client,
    prometheus: Prometheus,
) -> None:
    number = 0

    def everything_is_told() -> bool:
        nonlocal number
        number += 1
        send_events(area, number)
        client.get_many(FEATURES, ["key-1", "nobody"])
        missing = problems_of(prometheus)
        assert not missing, "\n".join(missing)
        return True

    with flowing(changes):
        eventually(everything_is_told, "all queries give data", deadline_s=120)

    regions = {
        series["metric"]["region"]
        for series in prometheus.query(
            "count by (region) (flink_taskmanager_job_task_operator_freshet_region_table_behindMs)"
        )
    }
    assert {NEAR, FAR} <= regions, "labels keep a region's name as it is"


def problems_of(prometheus: Prometheus) -> list[str]:
    """Queries without data, and labels in legends that the data does not have."""
    problems = []
    for dashboard in dashboards():
        for panel in dashboard.panels:
            for query in panel.queries:
                expr = query.filled(VARIABLES)
                labels = [series["metric"] for series in prometheus.query(expr)]
                place = f"{dashboard.name}, {panel.title}: {expr}"
                if not labels:
                    problems.append(f"{place} gives nothing")
                named = re.findall(r"{{(\w+)}}", query.legend)
                if any(not each.get(name) for each in labels for name in named):
                    problems.append(f"{place} has no label for {query.legend}: {labels[0]}")
    for rule in alert_rules():
        for selector in selectors_in(rule["expr"]):
            if not prometheus.query(selector):
                problems.append(f"{rule['alert']}: {selector} gives nothing")
    return problems
