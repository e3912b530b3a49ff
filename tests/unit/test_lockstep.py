"""Goal: a step is waited for until it is done, but not for a job that has ended, nor for ever.

Method: an observer that is told when the step is done, and a web server that answers as Flink's
REST API does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from freshet import Config, lockstep
from freshet.errors import JobError
from freshet.lockstep import wait_for_step
from freshet.observer import Observer

JOB = "00000000000000000000000000000001"
DEADLINE_S = 60.0
END_MS = 1_000


class StubObserver(Observer):
    """Says that the step is done when asked for the given time."""

    def __init__(self, done_when_asked: int) -> None:
        self.asked = 0
        self._done_when_asked = done_when_asked

    def wait_until_complete(self, event_time_ms: int, timeout_s: float) -> bool:
        assert event_time_ms == END_MS
        self.asked += 1
        return self.asked == self._done_when_asked


class Flink(BaseHTTPRequestHandler):
    """Knows one job, in the class's state."""

    state = "RUNNING"

    def do_GET(self) -> None:
        answer = json.dumps(self._answer()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(self) -> object:
        if self.path == "/jobs/overview":
            return {"jobs": [{"jid": JOB, "start-time": 1}]}
        if self.path == f"/jobs/{JOB}":
            return {"name": "features: t", "state": self.state, "vertices": []}
        if self.path == f"/jobs/{JOB}/exceptions":
            stack_trace = "JobException: no more restarts\nCaused by: disk full"
            return {"exceptionHistory": {"entries": [{"stacktrace": stack_trace}]}}
        return []

    def log_message(self, *args: object) -> None:
        pass


class FailedFlink(Flink):
    state = "FAILED"


@pytest.fixture
def config(request: pytest.FixtureRequest) -> Iterator[Config]:
    """Of a deployment with the parameter's Flink."""
    with ThreadingHTTPServer(("127.0.0.1", 0), request.param) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Config(
            kafka_bootstrap="127.0.0.1:1",
            redis={"local:home": "redis://127.0.0.1:1"},
            flink_rest=f"http://127.0.0.1:{server.server_port}",
        )
        server.shutdown()


@pytest.fixture(autouse=True)
def _check_jobs_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "_JOB_CHECK_INTERVAL_S", 0.0)


@pytest.mark.parametrize("config", [Flink], indirect=True)
def test_progress_is_shown_until_the_step_is_done(config: Config) -> None:
    observer, shown = StubObserver(done_when_asked=4), []
    wait_for_step(
        observer,
        config,
        END_MS,
        DEADLINE_S,
        too_late="too late",
        waiting=lambda: shown.append(observer.asked),
    )
    assert shown == [1, 2, 3]


@pytest.mark.parametrize("config", [FailedFlink], indirect=True)
def test_a_job_that_has_ended_is_not_waited_for(config: Config) -> None:
    observer = StubObserver(done_when_asked=-1)
    with pytest.raises(JobError, match=rf"job {JOB} \(features: t\) is FAILED: disk full"):
        wait_for_step(observer, config, END_MS, DEADLINE_S, too_late="too late")


@pytest.mark.parametrize("config", [Flink], indirect=True)
def test_the_deadline_ends_the_wait_with_the_message(config: Config) -> None:
    observer = StubObserver(done_when_asked=-1)
    with pytest.raises(JobError, match="too late"):
        wait_for_step(observer, config, END_MS, 0.0, too_late="too late")
