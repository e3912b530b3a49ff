"""A Prometheus that scrapes a stack's Flink, on loopback and a free port, and answers queries."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from freshet.client import Client
from freshet.errors import FreshetError
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    start_process,
    stop_processes,
    wait_until,
)

_READY_DEADLINE_S = 120.0
_QUERY_TIMEOUT_S = 60.0

Series = dict[str, Any]
"""``metric``: labels; ``value``: time and text, or ``values``: a list of those."""


class Prometheus:
    """A running server.

    Args:
        program: of Prometheus.
        folder: for its configuration, its data and its log; made when missing.
        targets: files that name what is scraped; read again when they change.
        rules: of alerts; evaluated as often as is scraped.
        interval_s: between two scrapes.
    """

    def __init__(
        self,
        program: Path,
        folder: Path,
        targets: Sequence[Path],
        rules: Path | None = None,
        interval_s: int = 5,
    ) -> None:
        self._program = program
        self._folder = folder
        self._targets = targets
        self._rules = rules
        self._interval_s = interval_s
        self._process: ServerProcess | None = None
        self.url = f"http://{LOOPBACK}:{PortPicker().pick()}"

    def __enter__(self) -> Prometheus:
        """Starts it and waits until it answers.

        Raises:
            StackError: it did not start.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(self._configuration()), encoding="utf-8")
        self._process = start_process(
            "Prometheus",
            [
                self._program,
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stack_id=uuid.uuid4().hex,
            output=self._folder / "prometheus.log",
        )
        try:
            wait_until(
                self._is_ready,
                server=self._process,
                deadline_s=_READY_DEADLINE_S,
                what=f"answer at {self.url}",
            )
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops it."""
        self.stop()

    def stop(self) -> None:
        """Stops it; its data stays in the folder."""
        if self._process is not None:
            stop_processes([self._process], TERMINATE_DEADLINE_S)
            self._process = None

    def query(self, expr: str) -> list[Series]:
        """What an expression gives now.

        Raises:
            FreshetError: Prometheus does not answer, or refuses the expression.
        """
        return self._ask("query", query=expr)

    def query_range(self, expr: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """What an expression gave at each step of a time, seconds since the epoch.

        Raises:
            FreshetError: as :meth:`query`.
        """
        return self._ask("query_range", query=expr, start=start_s, end=end_s, step=step_s)

    def _ask(self, what: str, **parameters: str | float) -> list[Series]:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=_QUERY_TIMEOUT_S) as answer:
                return list(json.load(answer)["data"]["result"])
        except urllib.error.HTTPError as error:
            raise FreshetError(
                f"Prometheus refuses {parameters['query']}: {error.read().decode()}"
            ) from error
        except OSError as error:
            raise FreshetError(f"Prometheus at {self.url} does not answer: {error}") from error

    def _configuration(self) -> dict[str, Any]:
        interval = f"{self._interval_s}s"
        return {
            "global": {
                "scrape_interval": interval,
                "scrape_timeout": interval,
                "evaluation_interval": interval,
            },
            "rule_files": [] if self._rules is None else [str(self._rules)],
            "scrape_configs": [
                {
                    "job_name": "flink",
                    "file_sd_configs": [
                        {"files": [str(file) for file in self._targets], "refresh_interval": "1s"}
                    ],
                }
            ],
        }

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1):
                return True
        except OSError:
            return False


@contextlib.contextmanager
def served_metrics(client: Client, targets: Path) -> Iterator[Path]:
    """Serves a client's metrics, as the application that reads with it would.

    Args:
        client: whose metrics.
        targets: file to write, which names the server to Prometheus.
    """

    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(client.metrics().encode())

        def log_message(self, *words: object) -> None:
            """Says nothing: there is a request every few seconds."""

    server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Metrics)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    targets.write_text(
        json.dumps([{"targets": [f"{LOOPBACK}:{server.server_port}"]}]), encoding="utf-8"
    )
    try:
        yield targets
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
