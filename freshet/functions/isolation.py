"""Runs a feature function in a child process, so that nothing it does can harm its caller.

::

    operator ── call(request) ──► IsolatedFunction ═ data channel ═► serving process
                                        ║                                ▲ fork
                                        ╚══ control channel ═══════► supervisor

A key that raises, returns what can't be stored, hangs or kills its process gets a failed result
with the reason; all other keys of the batch are computed.

The caller may be a Python interpreter embedded in a JVM: nothing here forks the caller without
exec, starts a thread, or installs a signal handler.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from dataclasses import dataclass

from freshet.functions import protocol
from freshet.functions.base import FeatureFunction
from freshet.functions.channel import Frame
from freshet.functions.child import (
    Child,
    ChildDiedError,
    ChildHungError,
    ChildSettings,
    FunctionStartError,
    default_python,
    describe_status,
)
from freshet.functions.protocol import Status
from freshet.functions.serialization import dump_function

__all__ = ["FunctionStartError", "IsolatedFunction"]

DEFAULT_GRACE_S = 1.0
"""What a key gets beyond its timeout before its process is killed, seconds."""

DEFAULT_START_TIMEOUT_S = 120.0
"""What importing and loading the function may take, seconds."""

_MAX_IDLE_DEATHS = 3  # in a row; then something outside kills the process, and the job must know

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Interruption:
    """The serving process failed in the middle of a batch."""

    status: Status
    what: str
    stack: str
    elapsed_nanos: int
    together: bool
    """It was computing keys together, so that the guilty one is not known yet."""


class IsolatedFunction:
    """A feature function in a process of its own, for one caller.

    Args:
        function: the function, or what :func:`~freshet.functions.serialization.dump_function` made
            of it, so that the caller need not be able to import it.
        timeout_s: what one key may take, seconds. Computing a whole batch together may take as
            long; after that its keys are computed one by one.
        python: the interpreter to run; None for the caller's own.
        grace_s: what a key gets beyond its timeout before its process is killed, seconds.
        start_timeout_s: what importing and loading may take, seconds.

    Raises:
        FunctionStartError: the function can't be loaded in the child.
    """

    def __init__(
        self,
        function: FeatureFunction | bytes,
        *,
        timeout_s: float,
        python: str | None = None,
        grace_s: float = DEFAULT_GRACE_S,
        start_timeout_s: float = DEFAULT_START_TIMEOUT_S,
    ) -> None:
        if timeout_s <= 0 or grace_s <= 0 or start_timeout_s <= 0:
            raise ValueError("timeout_s, grace_s and start_timeout_s must be above 0")
        pickled = function if isinstance(function, bytes) else dump_function(function)
        self._settings = ChildSettings(
            pickled, python or default_python(), timeout_s, start_timeout_s
        )
        self._hard_timeout_s = timeout_s + grace_s
        self._lock = threading.Lock()
        self._closed = False
        self._child = Child(self._settings)
        self.restarts = 0
        """How often a serving process was replaced."""

    @property
    def name(self) -> str:
        """Class name of the function."""
        return self._child.name

    def call(self, request: bytes) -> bytes:
        """Computes a batch.

        It takes at most (timeout + grace) for each key, once more for a batch that is computed
        together first, and what replacing failed processes takes.

        Args:
            request: a batch in the format of :mod:`freshet.functions.protocol`.

        Returns:
            The response: one result for each key, in order, whatever the function did.

        Raises:
            ProtocolError: the request breaks the format.
            FunctionStartError: the child is gone and can't be started again.
            RuntimeError: closed.
        """
        count = protocol.count_items(request)
        results: list[bytes] = []
        with self._lock:
            self._check_open()
            together = self._child.batched and count > 1
            interruption = self._attempt(request, count, together, results)
            if interruption is not None:
                self._finish_one_by_one(request, interruption, results)
        return protocol.join_response(results)

    def close(self) -> None:
        """Ends the child and all that it started; idempotent, and safe beside a running call."""
        self._closed = True
        self._child.close()
        with self._lock:
            self._child.close()  # again, for a child that the running call had just replaced
            self._child.release()

    def __enter__(self) -> IsolatedFunction:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the isolated function is closed")

    def _finish_one_by_one(
        self, request: bytes, interruption: _Interruption | None, results: list[bytes]
    ) -> None:
        """Computes what an interrupted attempt left over; each interruption costs one key."""
        parts = protocol.split_request(request)
        while True:
            if interruption is not None and not interruption.together:
                results.append(self._blame(parts[len(results)], interruption))
            if len(results) == len(parts):
                return
            rest = parts[len(results) :]
            interruption = self._attempt(protocol.join_request(rest), len(rest), False, results)

    def _attempt(
        self, request: bytes, count: int, together: bool, results: list[bytes]
    ) -> _Interruption | None:
        """Computes a batch until it is done (None) or the serving process fails."""
        self._child.begin_call()
        started = time.perf_counter_ns()
        try:
            self._send(Frame.CALL_BATCH if together else Frame.CALL_SINGLY, request)
            while count > 0:
                frame, body = self._child.receive(self._hard_timeout_s)
                if frame == Frame.FALLBACK:
                    together = False
                else:
                    results.append(body)
                    count -= 1
                started = time.perf_counter_ns()
        except (ChildDiedError, ChildHungError) as e:
            return self._interrupted(e, together, time.perf_counter_ns() - started)
        return None

    def _send(self, kind: Frame, request: bytes) -> None:
        """Sends a batch; a process that died since the last one is replaced and blames no key."""
        for _ in range(_MAX_IDLE_DEATHS):
            try:
                self._child.send(kind, request)
                return
            except ChildDiedError:
                ended = describe_status(self._replace(hung=False))
                _log.warning("the idle worker process of %s %s; replaced it", self.name, ended)
        raise FunctionStartError(
            f"the worker process of {self.name} ended {_MAX_IDLE_DEATHS} times before it took a "
            "key; something outside ends it, look for the out-of-memory killer"
        )

    def _interrupted(self, cause: Exception, together: bool, nanos: int) -> _Interruption:
        hung = isinstance(cause, ChildHungError)
        status = self._replace(hung)
        stack = self._child.report()
        if hung and _ended_by_us(status):
            what = (
                f"it ran longer than its timeout of {self._settings.timeout_s * 1000:.0f} ms and "
                "could not be interrupted, so that its process was killed; make it faster or raise "
                "function_timeout"
            )
            return _Interruption(Status.TIMED_OUT, what, stack, nanos, together)
        what = f"its process {describe_status(status)}"
        return _Interruption(Status.FAILED, what, stack, nanos, together)

    def _replace(self, hung: bool) -> int | None:
        """Replaces the serving process, or the whole child when its supervisor is gone too."""
        self._check_open()
        self.restarts += 1
        try:
            return self._child.replace(hung)
        except FunctionStartError as e:
            self._check_open()
            _log.warning("starting the worker of %s anew: %s", self.name, e)
            self._child.close()
            self._child.release()
            self._child = Child(self._settings)
            return None

    def _blame(self, part: memoryview, interruption: _Interruption) -> bytes:
        context, key = protocol.item_names(part)
        return protocol.pack_failure(
            context,
            interruption.status,
            interruption.elapsed_nanos,
            f"feature function {self.name} failed for key '{key}': {interruption.what}",
            interruption.stack,
        )


def _ended_by_us(status: int | None) -> bool:
    """Whether a hung process ended by our signals, and not by itself beforehand."""
    return status is None or os.waitstatus_to_exitcode(status) in (
        -signal.SIGABRT,
        -signal.SIGKILL,
    )
