"""The web page and the terminal's view of a deployment over several regions that runs.

Goal: a browser shows what the servers tell, figure by figure, and goes on to; no secret is shown.

Method: ``freshet status --serve`` runs as an operator at home starts it, beside the deployment. A
real browser opens the page; its tables are compared with ``/status.json`` of the same snapshot.

Fails when: a figure differs, a region is missing from the map, a change does not come to be seen,
the browser complains, or a password or a login is in an answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from freshet.store.connection import connect
from freshet.store.registry import register_table, unregister_table
from freshet.table import load_table
from tests.browser import Page, browser, chromium
from tests.integration.multicast.changes import TABLE, Changes, edges, plan_in_force
from tests.integration.polling import eventually
from tests.integration.wide_area import AWAY, DESTINATIONS, HOME, NEAR, WideArea
from tests.status_page import ROWS, SHOWN_AND_JSON, assert_same_figures, command, served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_TIMEOUT_S = 120.0


@pytest.fixture
def environment(area: WideArea) -> Iterator[Mapping[str, str]]:
    """Of a command at home, where the table is registered as its feature job's submission does."""
    file = area.folder / "status.yaml"
    area.config(HOME).write(file)
    redis = connect(area.config(HOME))
    register_table(redis, load_table(area.folder / f"{TABLE}.py"))
    try:
        yield {**os.environ, "FRESHET_CONFIG": str(file), "COLUMNS": "200"}
    finally:
        unregister_table(redis, TABLE)
        redis.close()


def test_the_page_shows_what_the_servers_tell(
    area: WideArea, changes: Changes, environment: Mapping[str, str], tmp_path: Path
) -> None:
    chromium()
    eventually(lambda: set(AWAY) <= regions_of(plan_in_force(area)), "the plan leads everywhere")
    changes.write(100)
    with served(environment) as url, browser(tmp_path / "browser") as running:
        page = running.page()
        page.open(url)
        eventually(lambda: is_whole(page), "all regions have applied and the plan is drawn")

        both = page.wait_for(SHOWN_AND_JSON)
        assert_same_figures(both["shown"], both["values"])
        assert len(both["values"]["regions"]) > len(AWAY)
        assert len(both["values"]["links"]) >= len(AWAY)
        titles = (
            "[...document.querySelectorAll('figure')].map(f => [f.textContent, "
            "[...f.querySelectorAll('svg title')].map(t => t.textContent.split('\\n')[0])])"
        )
        drawn = {
            words.rpartition("Plan ")[2].split(" of ")[1].split(":")[0]: set(names)
            for words, names in page.evaluate(titles)
        }
        assert drawn[TABLE] == regions_of(both["values"]["plans"][TABLE])
        assert drawn[TABLE] == {HOME, *AWAY}

        # What happens comes to be seen by itself.
        before = both["values"]
        changes.write(200)
        sent = sent_to(before, NEAR) + 1_000
        shown = (
            "Number([...document.querySelectorAll('#regions tbody tr')].find("
            f"r => r.cells[0].textContent === '{NEAR}').cells[9].textContent.split(' ')[0])"
        )
        page.wait_for(f"{shown} * 1e6 > {sent}")
        assert page.evaluate("document.getElementById('connection').hidden")
        assert page.complaints == []

        answers = [
            urllib.request.urlopen(url + path).read().decode() for path in ("", "status.json")
        ]
    for secret in secrets(area):
        assert not [answer for answer in answers if secret in answer]


def test_top_shows_the_same_on_a_terminal(
    area: WideArea, changes: Changes, environment: Mapping[str, str]
) -> None:
    changes.write(100)
    eventually(lambda: edges(plan_in_force(area)), "there is a plan")
    printed = run(environment, "top", "--batch", "2", "--interval", "0.5", "--json").splitlines()
    first, second = (json.loads(line) for line in printed)
    assert first["taken_at_ms"] < second["taken_at_ms"]
    assert [source["error"] for source in second["sources"]] == [None, None, None]
    (table,) = [each for each in second["tables"] if each["table"] == TABLE]
    assert table["updates_per_s"] is not None
    assert {job["state"] for job in second["jobs"]} >= {"RUNNING"}

    shown = run(environment, "top", "--once", "--interval", "0.5")
    assert "freshet top - " in shown
    for name in (TABLE, *AWAY):
        assert name in shown
    assert not [secret for secret in secrets(area) if secret in shown + "\n".join(printed)]


def run(environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        command(*arguments),
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def regions_of(plan: Mapping[str, Any]) -> set[str]:
    return {region for link in edges(dict(plan)) for region in link}


def secrets(area: WideArea) -> Sequence[str]:
    """What must not be shown: the far broker's password, as it is and as it may be written."""
    password = area.far_properties["sasl.password"]
    return [password, json.dumps(password)[1:-1], password.replace('"', "&quot;"), "sasl."]


def is_whole(page: Page) -> bool:
    """Whether the page shows every destination with a delay, and a map of the table's plan."""
    shown = page.evaluate(ROWS.replace("NAME", "regions"))
    of_table = {row["region"].split(" ")[0]: row for row in shown if row["table"] == TABLE}
    assert set(of_table) == set(AWAY), shown
    for region in DESTINATIONS:
        assert of_table[region]["delay p99"] != "-", shown
        assert of_table[region]["SLO"] != "-", shown
    captions = page.evaluate("[...document.querySelectorAll('figcaption')].map(c => c.textContent)")
    assert [caption for caption in captions if f" of {TABLE}:" in caption], captions
    return True


def sent_to(values: Mapping[str, Any], region: str) -> int:
    return max(each["wire_bytes"] for each in values["regions"] if each["region"] == region)
