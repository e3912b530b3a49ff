"""The child process that runs a feature function: ``python -m freshet.functions.worker``.

Two levels. The *supervisor* loads the function once and forks the *serving process*, which
computes. When a call hangs or crashes, only the serving process is replaced, by a fork that takes
milliseconds, not by an interpreter that imports everything again.

Its standard output and error are one pipe to the parent, which logs them, so a function may print.
Calls come over sockets of their own, which printing can't touch.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from freshet.functions import protocol
from freshet.functions.base import FeatureFunction, has_own_batch
from freshet.functions.channel import (
    HEAD,
    MAX_RESULT_BYTES,
    Command,
    Frame,
    receive_exactly,
    send_frame,
)
from freshet.functions.limits import RateLimited
from freshet.functions.protocol import Status
from freshet.functions.serialization import load_function
from freshet.values import encode_payload

MAX_STACK_CHARS = 16_384
MAX_REASON_CHARS = 2_048
PARENT_CHECK_S = 1.0
HUNG_DUMP_S = 0.2  # what a hung process gets to print its stack before it is killed
PR_SET_PDEATHSIG = 1


class KeyTimeout(BaseException):
    """Raised inside a feature function that runs too long; no Exception, so few catch it."""


class Deadline:
    """Interrupts Python code that runs longer than the timeout, through SIGALRM.

    Code in C that does not return to the interpreter is not interrupted; the parent then kills the
    process.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._armed = False
        self._signals = signal.pthread_sigmask(signal.SIG_BLOCK, [])

    def _on_alarm(self, signum: int, frame: FrameType | None) -> None:
        # Disarmed between the end of the call and the end of the timer: the call was in time.
        if self._armed:
            self._armed = False
            raise KeyTimeout

    def __enter__(self) -> None:
        """Starts the timer: from here to the end of the block KeyTimeout may be raised."""
        # Again for each call, because the function before may have changed both.
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signals)
        signal.signal(signal.SIGALRM, self._on_alarm)
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, self._timeout_s)

    def __exit__(self, *exc_info: object) -> None:
        """Stops the timer."""
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)


class Server:
    """The serving process: answers calls until its channel closes.

    When the function says that a third party takes no more calls for now, the keys that come until
    then are answered without calling it.
    """

    def __init__(self, function: FeatureFunction, timeout_s: float, channel: socket.socket) -> None:
        self._function = function
        self._name = type(function).__name__
        self._timeout_s = timeout_s
        self._deadline = Deadline(timeout_s)
        self._channel = channel
        self._limited_until = -math.inf
        """When the function may be called again, seconds on the monotonic clock."""

    def serve(self) -> None:
        """Serves calls; returns when the parent has closed the channel."""
        send_frame(self._channel, Frame.READY)
        while (head := receive_exactly(self._channel, HEAD.size)) is not None:
            kind, length = HEAD.unpack(head)
            request = receive_exactly(self._channel, length)
            if request is None:
                return
            parts = protocol.split_request(request)
            if kind == Frame.CALL_BATCH and self._try_batch(parts):
                continue
            for part in parts:
                send_frame(self._channel, Frame.RESULT, self._compute_one(part))

    def _try_batch(self, parts: Sequence[memoryview]) -> bool:
        """Computes all keys together and answers; False if that failed."""
        if self._limited_for_s() > 0:
            return self._put_off(parts, self._limited_for_s())
        items = [protocol.unpack_item(part) for part in parts]
        started = time.perf_counter_ns()
        try:
            with self._deadline:
                values = self._function.compute_batch([item.window for item in items])
            if len(values) != len(items):
                raise ValueError(f"compute_batch returned {len(values)} values of {len(items)}")
        except BaseException as e:
            if isinstance(e, RateLimited):
                self._limit(e)
                return self._put_off(parts, e.retry_after_s)
            print(
                f"{self._name}.compute_batch failed for {len(items)} keys, computing them one by "
                f"one: {_describe(e, self._timeout_s)}",
                file=sys.stderr,
            )
            send_frame(self._channel, Frame.FALLBACK)
            return False
        nanos = (time.perf_counter_ns() - started) // max(1, len(items))
        frames = bytearray()
        for item, value in zip(items, values, strict=True):
            result = self._pack(item.context, item.window.key, nanos, value)
            frames += HEAD.pack(Frame.RESULT, len(result))
            frames += result
        self._channel.sendall(frames)
        return True

    def _compute_one(self, part: memoryview) -> bytes:
        limited_for_s = self._limited_for_s()
        if limited_for_s > 0:
            context, _ = protocol.item_names(part)
            return protocol.pack_rate_limited(context, 0, limited_for_s)
        item = protocol.unpack_item(part)
        started = time.perf_counter_ns()
        try:
            with self._deadline:
                value = self._function.compute(item.window)
        except BaseException as e:
            nanos = time.perf_counter_ns() - started
            if isinstance(e, RateLimited):
                self._limit(e)
                return protocol.pack_rate_limited(item.context, nanos, e.retry_after_s)
            return self._pack_failure(item.context, item.window.key, nanos, e, _stack(e))
        nanos = time.perf_counter_ns() - started
        return self._pack(item.context, item.window.key, nanos, value)

    def _put_off(self, parts: Sequence[memoryview], retry_after_s: float) -> bool:
        """Answers that all keys are to be tried again later. True: they are answered."""
        for part in parts:
            context, _ = protocol.item_names(part)
            result = protocol.pack_rate_limited(context, 0, retry_after_s)
            send_frame(self._channel, Frame.RESULT, result)
        return True

    def _limit(self, limit: RateLimited) -> None:
        self._limited_until = time.monotonic() + limit.retry_after_s

    def _limited_for_s(self) -> float:
        """How long the function must not be called, seconds; 0 or less when it may be."""
        return self._limited_until - time.monotonic()

    def _pack(self, context: bytes, key: str, nanos: int, value: object) -> bytes:
        try:
            with self._deadline:
                encoding, payload = encode_payload(value)
            if len(payload) > MAX_RESULT_BYTES:
                raise ValueError(
                    f"the value takes {len(payload)} bytes, and at most {MAX_RESULT_BYTES} are "
                    "taken"
                )
        except BaseException as e:
            return self._pack_failure(context, key, nanos, e)
        return protocol.pack_result(context, Status.OK, nanos, encoding, payload)

    def _pack_failure(
        self, context: bytes, key: str, nanos: int, error: BaseException, stack: str = ""
    ) -> bytes:
        status = Status.TIMED_OUT if isinstance(error, KeyTimeout) else Status.FAILED
        reason = (
            f"feature function {self._name} failed for key '{key}': "
            f"{_describe(error, self._timeout_s)}"
        )
        return protocol.pack_failure(context, status, nanos, reason, stack)


def _describe(error: BaseException, timeout_s: float) -> str:
    if isinstance(error, KeyTimeout):
        return (
            f"it ran longer than its timeout of {timeout_s * 1000:.0f} ms; make it faster or raise "
            "function_timeout"
        )
    try:
        message = str(error)
    except BaseException as e:
        message = f"(its message raised {type(e).__name__})"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text if len(text) <= MAX_REASON_CHARS else text[:MAX_REASON_CHARS] + " ..."


def _stack(error: BaseException) -> str:
    """The stack from the function's own frame on, its end if it is long."""
    try:
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        text = "".join(traceback.format_exception(type(error), error, frames))
    except BaseException as e:
        return f"(formatting the stack raised {type(e).__name__})"
    return text[-MAX_STACK_CHARS:]


class Supervisor:
    """Owns the serving process: starts it, replaces it, ends it with the parent."""

    def __init__(
        self,
        control: socket.socket,
        parent_pid: int,
        timeout_s: float,
        load: Callable[[], FeatureFunction],
    ) -> None:
        self._control = control
        self._parent_pid = parent_pid
        self._timeout_s = timeout_s
        self._load = load
        self._serving_pid: int | None = None

    def run(self) -> None:
        """Obeys commands until the parent is gone."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        # The end of the control channel tells that the parent is gone; its process id is the second
        # line, for a parent that forked a copy of the channel. PR_SET_PDEATHSIG would not do: it
        # fires when the *thread* that started us ends.
        while os.getppid() == self._parent_pid:
            if not poll.poll(PARENT_CHECK_S * 1000):
                continue
            command = self._control.recv(1)
            if not command:
                break
            self._replace(hung=command == Command.HUNG)
        self._end_serving(hung=False)

    def _replace(self, hung: bool) -> None:
        status = self._end_serving(hung)
        ours, theirs = socket.socketpair()
        gc.freeze()  # shared pages of the parent stay shared
        pid = os.fork()
        if pid == 0:
            theirs.close()
            self._become_server(ours)
        ours.close()
        self._serving_pid = pid
        answer = json.dumps({"pid": pid, "previous_status": status}).encode() + b"\n"
        socket.send_fds(self._control, [answer], [theirs.fileno()])
        theirs.close()

    def _become_server(self, channel: socket.socket) -> NoReturn:
        supervisor_pid = os.getppid()
        try:
            _die_with(supervisor_pid)
            os.setsid()  # so that processes that the function starts die with it
            self._control.close()
            Server(self._load(), self._timeout_s, channel).serve()
        except BaseException:
            traceback.print_exc()
            _exit(1)
        _exit(0)

    def _end_serving(self, hung: bool) -> int | None:
        """Ends the serving process and all that it started; its wait status, None without one."""
        pid = self._serving_pid
        if pid is None:
            return None
        self._serving_pid = None
        if hung:
            _dump_stacks(pid)
        # Not yet reaped, so neither the id nor that of its group can be another process's.
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]


def _dump_stacks(pid: int) -> None:
    """Has faulthandler in a hung process print its stacks, and waits for that a moment."""
    os.kill(pid, signal.SIGABRT)
    deadline = time.monotonic() + HUNG_DUMP_S
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return
        time.sleep(0.002)


def _die_with(parent_pid: int) -> None:
    """Has the kernel kill this process when its single-threaded parent ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        _exit(1)


def _exit(code: int) -> NoReturn:
    """Ends a forked process without the cleanup that belongs to its parent."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _limit_core_dumps() -> None:
    """No core dumps: a crash here is an expected, reported event. 1 also stops dumps to pipes."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (limit, hard))


def _has_other_threads() -> bool:
    try:
        return len(list(Path("/proc/self/task").iterdir())) > 1
    except OSError:
        return False


def _load_from(function_fd: int) -> FeatureFunction:
    size = os.fstat(function_fd).st_size
    function = load_function(os.pread(function_fd, size, 0))
    function.prepare()
    return function


def main(arguments: Sequence[str]) -> None:
    """Runs the supervisor.

    Args:
        arguments: one JSON object: control_fd, function_fd (of a file with the pickled function),
            parent_pid, timeout_s, and ready: null, or what a supervisor that loaded the function
            before found out about it.
    """
    settings: dict[str, Any] = json.loads(arguments[0])
    control = socket.socket(fileno=settings["control_fd"])
    function_fd = settings["function_fd"]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    # The parent may be a thread of a JVM, with signals blocked that are needed here.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    faulthandler.enable()
    _limit_core_dumps()
    if settings["ready"] is None:
        try:
            function = _load_from(function_fd)
        except BaseException as e:
            answer = {"error": f"{type(e).__name__}: {e}", "stack": traceback.format_exc()}
            control.sendall(json.dumps(answer).encode() + b"\n")
            return
        ready = {"batched": has_own_batch(function), "name": type(function).__name__}
        if _has_other_threads():
            _restart_without_preload(settings, ready)
        load = _always(function)
    else:
        ready = settings["ready"]
        load = partial(_load_from, function_fd)
    control.sendall(json.dumps(ready).encode() + b"\n")
    Supervisor(control, settings["parent_pid"], settings["timeout_s"], load).run()


def _always(function: FeatureFunction) -> Callable[[], FeatureFunction]:
    return lambda: function


def _restart_without_preload(settings: dict[str, Any], ready: dict[str, Any]) -> NoReturn:
    """Starts the supervisor over, to have each serving process load the function by itself.

    Loading has started threads, and the fork of a process with threads may deadlock.
    """
    for fd in (settings["control_fd"], settings["function_fd"]):
        os.set_inheritable(fd, True)
    command = [sys.executable, "-P", "-m", "freshet.functions.worker"]
    os.execv(sys.executable, [*command, json.dumps({**settings, "ready": ready})])


if __name__ == "__main__":
    main(sys.argv[1:])
