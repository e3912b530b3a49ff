"""The few calls of Flink's REST API that the stack and the command line need."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

from freshet.errors import JobError, StackError
from freshet.secrets import mask_url

REQUEST_TIMEOUT_S = 30.0
"""How long one request may take."""

ENDED_STATES = frozenset({"FAILED", "CANCELED", "FINISHED"})
"""States that a job never leaves."""


class JobStatus(NamedTuple):
    """What ``freshet status`` says of a job."""

    id: str
    name: str
    state: str
    parallelism: int
    """Largest parallelism of its operators."""

    restarts: int
    """How often it was restarted after a failure."""


class FlinkRest:
    """Client of one Flink cluster's REST API; safe to share between threads."""

    def __init__(self, url: str, *, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        """Keeps the address.

        Args:
            url: ``http://host:port``.
            timeout_s: how long one request may take, seconds.
        """
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s

    def get(self, path: str) -> Any:
        """Answer to a GET request, decoded.

        Args:
            path: from the root on, such as ``/jobs/overview``.

        Raises:
            StackError: no answer, or an error.
        """
        return self._request("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Answer to a POST request, decoded.

        Args:
            path: from the root on, such as ``/jobs/<id>/stop``.
            body: sent as JSON.

        Raises:
            StackError: no answer, or an error.
        """
        return self._request("POST", path, json.dumps(body).encode())

    def overview(self) -> dict[str, Any]:
        """Counts of the cluster's TaskManagers, slots and jobs."""
        return dict(self.get("/overview"))

    def task_managers(self) -> list[str]:
        """Ids of the TaskManagers that are registered now."""
        return [worker["id"] for worker in self.get("/taskmanagers")["taskmanagers"]]

    def jobs(self) -> list[JobStatus]:
        """Every job that the cluster remembers, newest first."""
        listed = self.get("/jobs/overview")["jobs"]
        listed.sort(key=lambda job: job["start-time"], reverse=True)
        return [self.job(job["jid"]) for job in listed]

    def job(self, job_id: str) -> JobStatus:
        """Status of one job.

        Raises:
            StackError: there is no such job.
        """
        return self.status_of(job_id, self.get(f"/jobs/{job_id}"))

    def status_of(self, job_id: str, details: Mapping[str, Any]) -> JobStatus:
        """Status of a job of which ``/jobs/<id>`` was asked already.

        Raises:
            StackError: there is no such job.
        """
        metrics = self.get(f"/jobs/{job_id}/metrics?get=numRestarts")
        return JobStatus(
            id=job_id,
            name=details["name"],
            state=details["state"],
            parallelism=max((v["parallelism"] for v in details["vertices"]), default=0),
            restarts=int(float(metrics[0]["value"])) if metrics else 0,
        )

    def is_running(self, job_id: str) -> bool:
        """Whether the job runs with every one of its subtasks.

        Raises:
            JobError: it has ended, so it never will.
        """
        details = self.get(f"/jobs/{job_id}")
        if details["state"] in ENDED_STATES:
            raise JobError(
                f"job {job_id} ({details['name']}) is {details['state']}: {self.failure(job_id)}"
            )
        return details["state"] == "RUNNING" and all(
            vertex["status"] in ("RUNNING", "FINISHED") for vertex in details["vertices"]
        )

    def failure(self, job_id: str) -> str:
        """The job's last failure in one line."""
        history = self.get(f"/jobs/{job_id}/exceptions").get("exceptionHistory", {})
        entries = history.get("entries", [])
        if not entries:
            return "no failure is known"
        return root_cause(entries[0]["stacktrace"])

    def cancel(self, job_id: str) -> None:
        """Cancels a job.

        Raises:
            StackError: Flink refuses.
        """
        self._request("PATCH", f"/jobs/{job_id}?mode=cancel", b"")

    def _request(self, method: str, path: str, body: bytes | None) -> Any:
        headers = {"Content-Type": "application/json"} if body else {}
        request = urllib.request.Request(
            f"{self.url}{path}", data=body, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            reason = error.read().decode("utf-8", errors="replace")
            raise StackError(f"Flink refused {method} {path}: {root_cause(reason)}") from error
        except OSError as error:
            raise StackError(
                f"Flink does not answer at {mask_url(self.url)} ({error}); see 'freshet status'"
            ) from error
        return json.loads(text) if text else {}


_CAUSE = "Caused by: "
_OURS = "dev.freshet."


def root_cause(stack_trace: str) -> str:
    """The "Caused by" of a Java stack trace that a user can act on: the last of ours, or of all.

    Ours names the place and the fix, and has what made it.
    """
    lines = [line.strip() for line in stack_trace.replace("\\n", "\n").splitlines()]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    first = next((line for line in lines if line), "unknown")
    ours = [cause for cause in (first, *causes) if cause.startswith(_OURS)]
    return (ours or causes or [first])[-1]
