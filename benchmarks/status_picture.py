"""Takes the documentation's picture of the status page, and measures what watching costs.

::

    python -m benchmarks.status_picture [--out FILE] [--browser PROGRAM]

While the jobs of ``benchmarks.live_readings`` run: a snapshot a second for a minute, the page in a
browser, and ``freshet top``, which it prints.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.context import REPOSITORY
from benchmarks.live_readings import LiveReadings, options
from freshet.client import Client
from freshet.errors import FreshetError
from freshet.stack import Stack
from freshet.status.reader import StatusReader
from freshet.status.snapshot import Snapshot

_DEADLINE_S = 300.0
_POLL_S = 1.0
_SNAPSHOTS = 60
_WIDTH, _HEIGHT = 1_380, 2_260
_STOP_S = 120.0
_NEEDS_NO_GRAPHICS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
_NEEDS_NO_NETWORK = (
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def main() -> None:
    """Runs all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "status-page.png")
    parser.add_argument("--browser", default="chromium")
    arguments = parser.parse_args()
    browser = shutil.which(arguments.browser)
    if browser is None:
        parser.error(f"{arguments.browser} is not on the PATH; name a Chromium with --browser")
    # As an interrupt: every `with` block ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="freshet-status-") as folder:
        watch(Path(folder), browser, arguments.out)


def watch(folder: Path, browser: str, out: Path) -> None:
    """Runs the jobs in a folder, measures and takes the picture.

    Raises:
        FreshetError: a server or a job did not start, or nothing is to be seen.
    """
    with Stack(folder / "stack", options()) as stack:
        live = LiveReadings(stack, folder)
        file = folder / "status.yaml"
        live.config.write(file)
        environment = {**os.environ, "FRESHET_CONFIG": str(file), "COLUMNS": "128"}
        with Client(stack.config, tables=[live.table]) as client, live.arriving(client):
            with StatusReader(live.config) as reader:
                _wait_until_sent(reader)
                _measure(reader)
            # Before the browser, which makes everything else slow for a while.
            print(_freshet(environment, "top", "--once", "--interval", "10"))
            _take_picture(browser, out, folder, environment)


def _wait_until_sent(reader: StatusReader) -> None:
    """Until all that the page has is there: delays of every destination, a priced plan."""
    deadline = time.monotonic() + _DEADLINE_S
    while not _is_whole(reader.snapshot()):
        if time.monotonic() > deadline:
            raise FreshetError(f"changes do not get to every region within {_DEADLINE_S:.0f} s")
        time.sleep(_POLL_S)


def _is_whole(snapshot: Snapshot) -> bool:
    kept = [region for region in snapshot.regions if region.keeps]
    return (
        not snapshot.problems
        and bool(kept)
        and all(region.delay_p99_ms is not None for region in kept)
        and any("cost" in plan for plan in snapshot.plans.values())
        and all(table.regret is not None for table in snapshot.tables)
    )


def _measure(reader: StatusReader) -> None:
    took_ms, began_s, cpu_s = [], time.monotonic(), time.process_time()
    for number in range(1, _SNAPSHOTS + 1):
        took_ms.append(reader.snapshot().took_ms)
        time.sleep(max(0.0, began_s + number - time.monotonic()))
    cpu_ms = (time.process_time() - cpu_s) * 1_000 / _SNAPSHOTS
    p50, p99 = np.percentile(took_ms, [50, 99])
    print(
        f"{_SNAPSHOTS} snapshots, one a second: {p50:.0f} ms (median), {p99:.0f} ms (99th"
        f" percentile) each, {cpu_ms:.1f} ms of CPU each"
    )


def _take_picture(browser: str, out: Path, scratch: Path, environment: Mapping[str, str]) -> None:
    server = subprocess.Popen(
        _command("status", "--serve", "0", "--interval", "1"),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        if found is None:
            raise FreshetError("the page is not served; its error is above")
        time.sleep(12 * _POLL_S)  # rates are over ten seconds
        subprocess.run(
            [
                browser,
                *_NEEDS_NO_GRAPHICS,
                *_NEEDS_NO_NETWORK,
                f"--user-data-dir={scratch / 'browser'}",
                f"--window-size={_WIDTH},{_HEIGHT}",
                f"--screenshot={out.absolute()}",
                found[0],
            ],
            check=True,
            capture_output=True,
            timeout=_STOP_S,
        )
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(_STOP_S)
    print(f"{out}: {out.stat().st_size:,} bytes")


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "freshet.cli.main", *arguments]


def _freshet(environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        _command(*arguments), env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout or done.stderr


if __name__ == "__main__":
    main()
