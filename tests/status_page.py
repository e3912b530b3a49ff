"""The status page as it is served and as a browser shows it, for tests that open it."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

INTERVAL_S = 0.5
_TIMEOUT_S = 120.0

ROWS = """
[...document.querySelectorAll('#NAME tbody tr')].map(
  row => Object.fromEntries([...row.cells].map((cell, place) =>
    [cell.closest('table').tHead.rows[0].cells[place].textContent, cell.textContent])))
"""
SHOWN_AND_JSON = f"""
(async () => {{
  const answer = await fetch('status.json');
  const values = await answer.json();
  const view = document.getElementById('view');
  if (Number(view.dataset.takenAtMs) !== values.taken_at_ms) return null;
  const shown = {{
    tables: {ROWS.replace("NAME", "tables")},
    regions: {ROWS.replace("NAME", "regions")},
    links: {ROWS.replace("NAME", "links")},
  }};
  return {{values, shown}};
}})()
"""


def command(*arguments: str) -> list[str]:
    """Command line of ``freshet``."""
    return [sys.executable, "-m", "freshet.cli.main", *arguments]


@contextlib.contextmanager
def served(environment: Mapping[str, str], *arguments: str) -> Iterator[str]:
    """Address of the page while it is served."""
    process = subprocess.Popen(
        command("status", "--serve", "0", "--interval", str(INTERVAL_S), *arguments),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"Serving (http://127\.0\.0\.1:\d+/) until interrupted\.\n", line)
        assert found is not None, line
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(_TIMEOUT_S)
    assert code == 128 + signal.SIGTERM


def assert_same_figures(shown: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Every figure of the page's tables is the snapshot's, to the digits that are shown."""
    regions = {(row["region"].split(" ")[0], row["table"]): row for row in shown["regions"]}
    assert len(regions) == len(values["regions"])
    for region in values["regions"]:
        row = regions[region["region"], region["table"]]
        for name, field in (
            ("delay p50", "delay_p50_ms"),
            ("delay p99", "delay_p99_ms"),
            ("SLO", "slo_ms"),
            ("age p50", "freshness_p50_ms"),
            ("age p99", "freshness_p99_ms"),
        ):
            assert_same(row[name], region[field], 0.5)
        assert_same(row["late"], region["late"], 0)
        assert_same(row["backlog"], region["backlog_keys"], 0)
        assert_same(row["sent"], region["wire_bytes"] / 1e6, 0.0005)
        assert_same(row["dollars"], region["usd"], 0.00005)
    tables = {row["table"]: row for row in shown["tables"]}
    for table in values["tables"]:
        row = tables[table["table"]]
        assert_same(row["updates/s"], table["updates_per_s"], 0.05)
        assert_same(row["dead letters"], table["dead_letters"], 0)
        assert_same(row["regret"], table["regret"], 0.0005)
    links = {(row["from"], row["to"]): row for row in shown["links"]}
    assert len(links) == len(values["links"])
    for each in values["links"]:
        row = links[each["source"], each["target"]]
        assert_same(row["sent"], each["wire_bytes"] / 1e6, 0.0005)
        assert_same(row["$/GB"], each["usd_per_gb"], 0.0005)


def assert_same(text: str, value: float | None, rounding: float) -> None:
    """A figure as it is shown is this one."""
    if value is None:
        assert text == "-"
        return
    number, unit = re.fullmatch(r"\$?([\d,.]+)((?: (?:ms|s|h|MB))?)(?:, \w+)?", text).groups()  # type: ignore[union-attr]
    scale = {" s": 1_000.0, " h": 3_600_000.0}.get(unit, 1.0)
    rounded = max(rounding, 0.05 * scale if scale > 1 else 0.0)
    assert abs(float(number.replace(",", "")) * scale - value) <= rounded * 1.001, (text, value)
