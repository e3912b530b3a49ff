"""The web page of a real Kafka and a real Redis in a real browser.

Goal: a browser shows what servers tell, figure by figure, and goes on to; no secret is shown.

Method: ``freshet status --serve`` runs as an operator starts it; reports are written to the topic
as the jobs write them. The page's tables are compared with ``/status.json`` of the same snapshot.

Fails when: a figure differs, a region is missing from the map, a change does not come to be seen,
the browser complains, or a password is in an answer.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser import browser, chromium
from tests.stack.test_status_reading import Deployment
from tests.stack.test_status_reading import deployment as deployment
from tests.status_page import SHOWN_AND_JSON, assert_same_figures, served
from tests.unit.multicast.reports import link, region_report
from tests.unit.status.snapshots import FAR, HOME, NEAR, WAY
from tests.unit.status.test_page import COMPLETE

pytestmark = pytest.mark.integration

SECRET = "p4ss&word"


def report(table: str, region: str, **fields: Any) -> bytes:
    lags = {"count": 9, "p50_ms": 212.25, "p99_ms": 731.5, "max_ms": 800.0}
    given = {"table": table, "freshness": lags, "delay": lags, "applied": 9, **fields}
    return region_report(region, time.time_ns() // 1_000_000, **given)


def test_the_page_shows_what_the_servers_tell(deployment: Deployment, tmp_path: Path) -> None:
    chromium()
    table, config = deployment.table.name, tmp_path / "config.yaml"
    # A user without a password of its own is let in with any; the page may not tell this one.
    login = f"redis://default:{quote(SECRET)}@"
    values = deployment.config.to_dict()
    values["redis"] = {
        region: url.replace("redis://", login) for region, url in values["redis"].items()
    }
    assert quote(SECRET) in json.dumps(values)
    config.write_text(json.dumps(values))
    sent = [link(WAY, wire_bytes=2_000_000, backlog_keys=3, behind=True)]
    plan = json.dumps({**COMPLETE, "table": table})
    deployment.send(
        "progress",
        region_report(HOME, 1, reporter="MULTICAST", table=table, plan=plan, links=sent),
        report(table, WAY, applies=False, links=[link(NEAR, wire_bytes=10**6), link(FAR)]),
        report(table, NEAR, late=2),
        report(table, FAR),
    )
    environment = {**os.environ, "FRESHET_CONFIG": str(config)}
    with served(environment) as url, browser(tmp_path / "browser") as running:
        page = running.page()
        page.open(url)
        page.wait_for("document.querySelector('figure svg title') !== null")
        both = page.wait_for(SHOWN_AND_JSON)
        assert len(both["values"]["regions"]) == 3
        assert_same_figures(both["shown"], both["values"])
        titles = "[...document.querySelectorAll('figure svg title')].map(t => t.textContent)"
        drawn = {title.split("\n")[0] for title in page.evaluate(titles)}
        assert drawn == {HOME, WAY, NEAR, FAR}

        # What happens comes to be seen by itself.
        deployment.send("progress", report(table, NEAR, late=1_234))
        page.wait_for("document.getElementById('regions').textContent.includes('1,234')")
        assert page.evaluate("document.getElementById('connection').hidden")
        assert page.complaints == []

        for path in ("", "status.json"):
            answer = urllib.request.urlopen(url + path).read().decode()
            assert table in answer
            assert not [s for s in (SECRET, "p4ss&amp;word", quote(SECRET), "p4ss") if s in answer]
