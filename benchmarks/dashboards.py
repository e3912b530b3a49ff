"""Draws the dashboards of a real run: ``python -m benchmarks.dashboards [--out FOLDER]``.

A Prometheus scrapes the Flink of ``benchmarks.live_readings``; then each panel of each dashboard is
drawn from what it has, by matplotlib.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.dashboard_files import ALERTS, dashboards
from benchmarks.dashboard_pictures import picture
from benchmarks.live_readings import LiveReadings, options
from benchmarks.prometheus import Prometheus, served_metrics
from freshet.client import Client
from freshet.files import write_atomically
from freshet.report.figures import to_png
from freshet.stack import Stack
from freshet.stack.layout import CHECKOUT

_VARIABLES = {"table": ".*", "region": ".*", "job": ".*", "__rate_interval": "30s"}
_PROGRAM = CHECKOUT / ".tools/bin/prometheus"


def main() -> int:
    """Runs the jobs and writes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=240, help="how long the jobs are watched")
    parser.add_argument("--out", type=Path, default=Path("out/dashboards"), help="for the pictures")
    arguments = parser.parse_args()
    if not _PROGRAM.exists():
        print(f"{_PROGRAM} is missing: run 'make tools'", file=sys.stderr)
        return 1
    # As an interrupt: every `with` block ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="freshet-dashboards-") as folder:
        draw(Path(folder), arguments.seconds, arguments.out)
    return 0


def draw(folder: Path, seconds: int, out: Path) -> None:
    """Runs the jobs in a folder for so long, and draws every dashboard.

    Raises:
        FreshetError: a server or a job did not start.
    """
    with Stack(folder / "stack", options(prometheus=True)) as stack:
        live = LiveReadings(stack, folder)
        with (
            Client(stack.config, tables=[live.table]) as client,
            served_metrics(client, folder / "client.json") as application,
            Prometheus(
                _PROGRAM,
                folder / "prometheus",
                [stack.flink.prometheus_targets, application],
                ALERTS,
            ) as prometheus,
        ):
            with live.arriving(client):
                start_s = time.time()
                time.sleep(seconds)  # not a wait: it is what is drawn
            end_s = time.time()
            for dashboard in dashboards():
                figure = picture(prometheus, dashboard, _VARIABLES, start_s, end_s)
                file = out / f"dashboard-{dashboard.name}.png"
                write_atomically(file, to_png(figure))
                print(file)


if __name__ == "__main__":
    sys.exit(main())
