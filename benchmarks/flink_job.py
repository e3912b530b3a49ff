"""Runs a PyFlink script of ours on a stack's cluster, as a user would: with ``flink run``."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from freshet.stack import Stack
from freshet.stack.layout import flink_home, flink_jar

_SUBMIT_DEADLINE_S = 180.0
_POLL_S = 0.2
_JOB_ID = re.compile(r"submitted with JobID ([0-9a-f]{32})")
_ENDED_BADLY = ("FAILED", "CANCELED", "SUSPENDED")


def run_job(stack: Stack, script: Path, arguments: Sequence[str], deadline_s: float) -> None:
    """Submits a bounded job and waits for its end.

    Raises:
        RuntimeError: it failed, or did not end in time.
    """
    address = stack.flink.rest.url.removeprefix("http://")
    command = [
        *("bash", str(flink_home() / "bin" / "flink"), "run", "--detached"),
        *("--jobmanager", address, "--jarfile", str(flink_jar()), "--python", str(script)),
        *("-pyexec", sys.executable, "-pyclientexec", sys.executable),
        *arguments,
    ]
    done = subprocess.run(
        command,
        env=stack.flink.client_environment(),
        capture_output=True,
        text=True,
        timeout=_SUBMIT_DEADLINE_S,
        check=False,
    )
    submitted = _JOB_ID.search(done.stdout)
    if submitted is None:
        raise RuntimeError(f"{script.name} was not submitted:\n{done.stdout}{done.stderr}")
    _wait(stack, submitted[1], time.monotonic() + deadline_s)


def _wait(stack: Stack, job: str, deadline: float) -> None:
    while (state := stack.flink.rest.job(job).state) != "FINISHED":
        if state in _ENDED_BADLY or time.monotonic() > deadline:
            raise RuntimeError(f"job {job} is {state}: {stack.flink.rest.failure(job)}")
        time.sleep(_POLL_S)
