"""Goal: `freshet demo` does what it says, and leaves nothing running, however it ends.

Method: the command runs as a user would run it. Losses are computed a second time with statsmodels
for machines that the short run computed only once.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.tsa.seasonal import STL

from freshet.demo.readings import Readings
from freshet.demo.regions import DESTINATIONS

HOURS = 3
KEYS = 129
WINDOW = 864
DEADLINE_S = 600.0
STOP_DEADLINE_S = 120.0

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2 * DEADLINE_S)]


def start_demo(out: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "freshet.cli.main", "demo", "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=(out.parent / "stderr.log").open("w", encoding="utf-8"),
        text=True,
        env=os.environ | {"FRESHET_HOME": str(out.parent / "home")},
    )


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """Folder of a run; whatever a failed test leaves running is ended, and told."""
    folder = tmp_path / "demo"
    yield folder
    left = processes_about(folder)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"still running after the demo: {left}"


def processes_about(folder: Path) -> list[int]:
    """Processes that name the folder on their command line: servers, jobs' clients, the demo."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in command:
                found.append(int(entry.name))
    return found


def expected_loss(readings: Readings, key: int) -> float:
    """Loss of a key whose only feature is that of the first window."""
    series = readings.values[:, key]
    fit = STL(series[:WINDOW], period=readings.period).fit()
    season = fit.seasonal[-readings.period :]
    errors = [
        abs(fit.trend[-1] + season[ahead % readings.period] - series[WINDOW + ahead])
        for ahead in range(HOURS * 12)
    ]
    return float(np.mean(errors) / np.abs(np.diff(series[:WINDOW])).mean())


def test_demo_runs_both_policies_and_reports_what_they_did(out: Path) -> None:
    demo = start_demo(out, "--days", str(HOURS / 24), "--time-limit", str(DEADLINE_S), "--json")
    printed, _ = demo.communicate(timeout=DEADLINE_S)
    said = (out.parent / "stderr.log").read_text(encoding="utf-8")
    assert demo.returncode == 0, said
    report: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    summary = json.loads(printed)
    assert summary["policies"]["round-robin"]["loss"] == report["policies"]["round-robin"]["loss"]

    assert report["interrupted"] is False
    assert report["steps"]["count"] == report["steps"]["planned"] == HOURS
    assert report["events"] == KEYS * (WINDOW + HOURS * 12)
    assert report["feedback"] == 2 * KEYS * HOURS * 12
    for policy in report["policies"].values():
        # One hour after the other may spend 1, 2.58 and 3.87 updates in all.
        assert (policy["updates_initial"], policy["updates_scheduled"]) == (KEYS, 3)
        assert policy["queries"] == KEYS * HOURS * 12
        assert policy["queries_unserved"] == 0
        assert policy["freshness_ms"]["p50"] > 0
    assert report["changes"] == 2 * (KEYS + 3)

    # Both tables begin with the same features, so the first hour's losses are equal.
    regret, robin = (report["policies"][name] for name in ("regret-proportional", "round-robin"))
    assert regret["loss_by_step"][0] == robin["loss_by_step"][0]
    readings = Readings.load()
    for policy in (regret, robin):
        once = [k for k, key in enumerate(readings.keys) if policy["updates_by_key"][key] == 1]
        assert len(once) >= KEYS - 3
        for key in once[:4]:
            loss = policy["loss_by_key"][readings.keys[key]]
            assert loss == pytest.approx(expected_loss(readings, key), rel=1e-4)

    assert_regions_have_what_home_has(report)

    assert report["dead_letters"] == report["dead_letters_expected"] == 12
    assert all(letter["reason"] for letter in report["dead_letter_samples"])
    assert "on purpose" in said
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert all(f"<td>{region}</td>" in page for region in DESTINATIONS)
    assert (out / "loss.png").stat().st_size > 0
    # The fixture sees that nothing runs any more.


def assert_regions_have_what_home_has(report: dict[str, Any]) -> None:
    assert set(report["regions"]) == set(DESTINATIONS)
    for region in report["regions"].values():
        assert region["keys"] == KEYS
        assert region["equal_to_home"] is True
        # A newer value may take the place of one that has not left yet, and catch-up, which does
        # not count, that of one that takes long on a busy machine.
        assert 0 < region["changes"] <= KEYS + 3
    # However the plans changed, nothing was sent along a dearer way than the direct one.
    assert 0 < report["egress_usd"]["ours"] <= report["egress_usd"]["direct"]
    straight = {way["target"]: way["wire_bytes"] for way in report["egress"]["direct"]}
    # A value is 289 numbers of 4 bytes, of which compression leaves more than half.
    assert all(straight[region] > KEYS * 289 * 4 / 2 for region in DESTINATIONS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_stops_everything_and_reports_what_there_is(
    out: Path, number: signal.Signals
) -> None:
    # Ctrl-C finds the demo at work; TERM comes early, while the jobs are being submitted.
    at = "replay: hour [1-9]" if number == signal.SIGINT else "Submitting the feature jobs"
    demo = start_demo(out, "--time-limit", "3600")
    log = out.parent / "stderr.log"
    deadline = time.monotonic() + DEADLINE_S
    while not re.search(at, log.read_text(encoding="utf-8")):
        assert demo.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
        time.sleep(0.1)
    assert processes_about(out), "nothing runs that an interrupt could end"
    demo.send_signal(number)
    printed, _ = demo.communicate(timeout=STOP_DEADLINE_S)
    assert demo.returncode == 130, log.read_text(encoding="utf-8")
    assert processes_about(out) == []
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["interrupted"] is True
    assert "was interrupted" in (out / "report.html").read_text(encoding="utf-8")
    assert str(out / "report.html") in printed
    if number == signal.SIGINT:
        assert 0 < report["steps"]["count"] < report["steps"]["planned"]
        losses = [len(policy["loss_by_step"]) for policy in report["policies"].values()]
        assert losses == [report["steps"]["count"]] * 2
    else:
        assert report["comparison"] is None
        assert report["egress_usd"] == {"ours": None, "direct": None}
        for region in report["regions"].values():
            assert (region["keys"], region["equal_to_home"]) == (None, None)
