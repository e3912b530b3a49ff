"""The caller's end of the solver: asks, looks for the answer without ever waiting, and ends it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time

from freshet.functions.child import child_environment, default_python
from freshet.multicast.requests import Answer, Outcome, Request

_READ_BYTES = 1 << 16
_PIPE_BYTES = 1 << 20
"""Room for a request of a hundred regions, so that writing it does not wait either."""

_END_DEADLINE_S = 5.0


class SolverProcess:
    """A process that solves one request at a time; it is replaced when it hangs or dies.

    Args:
        python: its interpreter; None for this environment's.
        time_limit_s: what a request may take, seconds, before the process is killed.
        start_limit_s: what its start may take.
    """

    def __init__(
        self, python: str | None = None, time_limit_s: float = 5.0, start_limit_s: float = 120.0
    ) -> None:
        self._python = python or default_python()
        self._time_limit_s = time_limit_s
        self._start_limit_s = start_limit_s
        self._received = b""
        self._is_ready = False
        self._deadline_s: float | None = None
        self._process = self._start()

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet."""
        return self._deadline_s is not None

    @property
    def pid(self) -> int:
        """Of the process that solves now."""
        return self._process.pid

    def ask(self, asked: Request) -> None:
        """Hands over a request; the one before must be answered."""
        assert not self.is_busy, "poll() until there is an answer"
        if self._process.poll() is not None:
            self._process = self._start()
        limit_s = self._time_limit_s if self._is_ready else self._start_limit_s
        self._deadline_s = time.monotonic() + limit_s
        assert self._process.stdin is not None
        # A process that has just died is found by poll().
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asked.to_dict()).encode() + b"\n")
            self._process.stdin.flush()

    def poll(self) -> Answer | str | None:
        """The answer, or why there is none; None as long as it is being looked for."""
        line = self._next_line()
        while line is not None:
            answer = json.loads(line)
            if "ready" not in answer:
                return self._answered(answer)
            self._is_ready = True
            if self.is_busy:
                self._deadline_s = time.monotonic() + self._time_limit_s
            line = self._next_line()
        return self._failure() if self.is_busy else None

    def close(self) -> None:
        """Ends the process."""
        self._kill()

    def _answered(self, answer: dict[str, str]) -> Answer | str:
        self._deadline_s = None
        if "error" in answer:
            return answer["error"]
        return Answer(**{**answer, "outcome": Outcome(answer["outcome"])})  # type: ignore[arg-type]

    def _failure(self) -> str | None:
        assert self._deadline_s is not None, "nothing was asked"
        code = self._process.poll()
        if code is not None:
            reason = f"the solver's process ended with exit code {code}"
        elif time.monotonic() > self._deadline_s:
            reason = (
                f"no plan was found within {self._time_limit_s:g} s"
                if self._is_ready
                else f"the solver did not start within {self._start_limit_s:g} s"
            )
        else:
            return None
        self._kill()
        self._process = self._start()
        return reason

    def _next_line(self) -> bytes | None:
        assert self._process.stdout is not None
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._process.stdout.fileno(), _READ_BYTES):
                self._received += chunk
        line, newline, rest = self._received.partition(b"\n")
        if not newline:
            return None
        self._received = rest
        return line

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            # -P: the working directory is not ours to import from.
            [self._python, "-P", "-m", "freshet.multicast.solver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(),
            start_new_session=True,  # a Ctrl-C in the terminal is the caller's to handle
        )
        assert process.stdin is not None
        assert process.stdout is not None
        fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(process.stdout.fileno(), False)
        self._received, self._is_ready, self._deadline_s = b"", False, None
        return process

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait(_END_DEADLINE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
