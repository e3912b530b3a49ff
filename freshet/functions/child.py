"""The parent's handle on the worker process of a feature function: start, talk, replace, end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freshet.functions.channel import HEAD, Command, Frame, send_frame

_RECEIVE_BYTES = 1 << 18
_SOCKET_BUFFER_BYTES = 1 << 20
_MAX_LOGGED_LINES = 100  # per call, so that a chatty function does not fill the log
_MAX_KEPT_OUTPUT = 16_384  # bytes, for the report of a crash
_MAX_LAST_WORDS = 2_000  # characters of output in an error message
_MAX_DRAIN_READS = 64
_OUTPUT_READ_BYTES = 65_536
_CLOSE_TIMEOUT_S = 2.0
_FATAL = b"Fatal Python error"  # how faulthandler starts its report
_AFTER_STACK = b"\n\nExtension modules:"  # and what it adds

_SINGLE_THREADED = {
    # One subtask is one core; the BLAS threads of many subtasks would only fight over them.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    # pyarrow, which pandas imports, would start a thread: the supervisor forks only without one.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}

_output_log = logging.getLogger("freshet.functions.output")


class FunctionStartError(RuntimeError):
    """The function could not be started; the message has the child's reason and stack."""


class ChildDiedError(Exception):
    """The serving process has ended."""


class ChildHungError(Exception):
    """The serving process did not answer in time."""


@dataclass(frozen=True)
class ChildSettings:
    """How to run the worker process."""

    pickled: bytes
    """What ``dump_function`` made of the function."""

    python: str
    """Path of the interpreter."""

    timeout_s: float
    """What one key may take before it is interrupted, seconds."""

    start_timeout_s: float
    """What importing and loading may take, seconds."""


class Child:
    """One supervisor and its current serving process.

    The standard output and error of both come through one pipe, which is read whenever the child is
    waited for and logged as ``freshet.functions.output``; no thread is needed for it.

    Raises:
        FunctionStartError: the function can't be loaded.
    """

    def __init__(self, settings: ChildSettings) -> None:
        self._settings = settings
        self._data: socket.socket | None = None
        self._buffer = bytearray()
        self._output = bytearray()
        self._line = b""
        self._logged_lines = 0
        self._control, self._process, self._output_fd = _spawn(settings)
        try:
            ready = self._read_ready()
            self.name: str = ready["name"]
            """Class name of the function."""
            self.batched: bool = ready["batched"]
            """Whether it can compute several keys together."""
            self._start_serving(hung=False)
        except BaseException:
            self.close()
            raise

    def begin_call(self) -> None:
        """Forgets the output so far and grants new lines of log."""
        self._output.clear()
        self._logged_lines = 0

    def send(self, kind: Frame, body: bytes) -> None:
        """Sends a frame to the serving process.

        Raises:
            ChildDiedError: it has ended before it could take the frame.
            ChildHungError: it does not take the frame.
        """
        data = self._data_channel()
        if _is_readable(data):  # nothing is due, so that this is the end of the channel
            raise ChildDiedError
        try:
            send_frame(data, kind, body)
        except TimeoutError as e:
            raise ChildHungError from e
        except OSError as e:
            raise ChildDiedError from e

    def receive(self, timeout_s: float) -> tuple[Frame, bytes]:
        """The next frame of the serving process.

        Raises:
            ChildDiedError: it has ended.
            ChildHungError: nothing came in time.
        """
        data = self._data_channel()
        deadline = time.monotonic() + timeout_s
        while (frame := self._next_frame()) is None:
            if not self._wait_readable(data, deadline):
                raise ChildHungError
            try:
                chunk = data.recv(_RECEIVE_BYTES)
            except OSError as e:
                raise ChildDiedError from e
            if not chunk:
                raise ChildDiedError
            self._buffer += chunk
        return frame

    def replace(self, hung: bool) -> int | None:
        """Ends the serving process and starts a new one.

        Args:
            hung: the process is to print its stacks before.

        Returns:
            The wait status of the one before; None if it is not known.

        Raises:
            FunctionStartError: the supervisor is gone too, or the new process does not come up.
        """
        return self._start_serving(hung)

    def report(self) -> str:
        """What the child printed since the call began: a crash's stack if there is one."""
        self._drain_output()
        text = bytes(self._output)
        fatal = text.rfind(_FATAL)
        if fatal >= 0:
            text = text[fatal:].partition(_AFTER_STACK)[0]
        return text.decode(errors="replace")

    def _last_words(self) -> str:
        return self.report()[-_MAX_LAST_WORDS:] or "(nothing)"

    def close(self) -> None:
        """Ends the child and all that it started; idempotent, and safe beside a running call."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # the supervisor takes this as our end
        try:
            self._process.wait(_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def release(self) -> None:
        """Closes the channels of a closed child; not beside a running call."""
        self._control.close()
        if self._data is not None:
            self._data.close()
            self._data = None
        if self._output_fd >= 0:
            self._drain_output()
            os.close(self._output_fd)
            self._output_fd = -1

    def _data_channel(self) -> socket.socket:
        if self._data is None:
            raise ChildDiedError
        return self._data

    def _next_frame(self) -> tuple[Frame, bytes] | None:
        if len(self._buffer) < HEAD.size:
            return None
        kind, length = HEAD.unpack_from(self._buffer)
        end = HEAD.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(memoryview(self._buffer)[HEAD.size : end])
        del self._buffer[:end]
        return Frame(kind), body

    # Starting

    def _read_ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + self._settings.start_timeout_s
        try:
            ready, _ = self._read_answer(deadline)
        except ChildDiedError:
            raise FunctionStartError(
                f"the worker process of the feature function ended while it started; "
                f"{self._settings.python} printed: {self._last_words()}"
            ) from None
        except ChildHungError:
            raise FunctionStartError(
                "loading the feature function took longer than "
                f"{self._settings.start_timeout_s:g} s; move slow work out of its imports and "
                f"prepare(). It printed: {self._last_words()}"
            ) from None
        if "error" in ready:
            raise FunctionStartError(
                f"the feature function can't be loaded in its worker: {ready['error']}; the "
                f"modules that it imports must be installed where the job runs\n{ready['stack']}"
            )
        return ready

    def _start_serving(self, hung: bool) -> int | None:
        if self._data is not None:
            self._data.close()
            self._data = None
        self._buffer.clear()
        deadline = time.monotonic() + self._settings.start_timeout_s
        try:
            self._control.sendall(Command.HUNG if hung else Command.START)
            answer, fds = self._read_answer(deadline)
            self._data = socket.socket(fileno=fds[0])
            self._data.settimeout(self._settings.timeout_s)
            self._data.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
            self.receive(deadline - time.monotonic())  # READY
        except (ChildDiedError, ChildHungError, OSError) as e:
            raise FunctionStartError(
                f"the worker process of {self.name} can't be started again ({e!r}); it printed: "
                f"{self._last_words()}"
            ) from e
        status: int | None = answer["previous_status"]
        return status

    def _read_answer(self, deadline: float) -> tuple[dict[str, Any], list[int]]:
        """One line of JSON from the supervisor, and the file descriptors that came with it."""
        line, fds = b"", list[int]()
        while not line.endswith(b"\n"):
            if not self._wait_readable(self._control, deadline):
                raise ChildHungError
            chunk, received, _, _ = socket.recv_fds(self._control, _OUTPUT_READ_BYTES, 1)
            fds += received
            if not chunk:
                raise ChildDiedError
            line += chunk
        return json.loads(line), fds

    # Output

    def _wait_readable(self, channel: socket.socket, deadline: float) -> bool:
        """Waits until the channel has something, reading output meanwhile; False if too late."""
        poll = select.poll()
        poll.register(channel, select.POLLIN)
        poll.register(self._output_fd, select.POLLIN)
        channel_fd = channel.fileno()
        while True:
            remaining_ms = max(0.0, (deadline - time.monotonic()) * 1000)
            events = dict(poll.poll(remaining_ms))
            if self._output_fd in events and not self._drain_output():
                poll.unregister(self._output_fd)
            if channel_fd in events:
                return True
            if remaining_ms == 0:
                return False

    def _drain_output(self) -> bool:
        """Takes what the child has printed; False at the end of its output."""
        for _ in range(_MAX_DRAIN_READS):
            try:
                chunk = os.read(self._output_fd, _OUTPUT_READ_BYTES)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._output += chunk
            del self._output[:-_MAX_KEPT_OUTPUT]
            self._log_output(chunk)
        return True

    def _log_output(self, chunk: bytes) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        self._line = self._line[-_MAX_KEPT_OUTPUT:]
        granted = lines[: max(0, _MAX_LOGGED_LINES - self._logged_lines)]
        for line in granted:
            _output_log.info("%s", line[:_MAX_KEPT_OUTPUT].decode(errors="replace"))
        if len(granted) < len(lines) and self._logged_lines <= _MAX_LOGGED_LINES:
            _output_log.warning(
                "a call printed more than %d lines; the rest is dropped", _MAX_LOGGED_LINES
            )
            self._logged_lines = _MAX_LOGGED_LINES + 1
        else:
            self._logged_lines += len(granted)


def _is_readable(channel: socket.socket) -> bool:
    # Not select(), which fails for a descriptor above 1023: a TaskManager has more.
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    return bool(poll.poll(0))


def default_python() -> str:
    """The interpreter of this environment, also where ``sys.executable`` is the JVM's."""
    if sys.executable and Path(sys.executable).name.startswith("python"):
        return sys.executable
    return str(Path(sys.prefix) / "bin" / "python3")


def _spawn(settings: ChildSettings) -> tuple[socket.socket, subprocess.Popen[bytes], int]:
    """Starts the supervisor: control channel, process, and the read end of its output."""
    ours, theirs = socket.socketpair()
    output_fd, output_write_fd = os.pipe()
    os.set_blocking(output_fd, False)
    with tempfile.TemporaryFile() as pickled, theirs:
        pickled.write(settings.pickled)
        pickled.flush()
        arguments = {
            "control_fd": theirs.fileno(),
            "function_fd": pickled.fileno(),
            "parent_pid": os.getpid(),
            "timeout_s": settings.timeout_s,
            "ready": None,
        }
        # -P: the working directory is not ours to import from.
        command = [settings.python, "-P", "-m", "freshet.functions.worker", json.dumps(arguments)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output_write_fd,
                stderr=output_write_fd,
                pass_fds=(theirs.fileno(), pickled.fileno()),
                env=child_environment(),
                start_new_session=True,  # a Ctrl-C in the terminal is the parent's to handle
            )
        except OSError as e:
            ours.close()
            os.close(output_fd)
            raise FunctionStartError(
                f"the interpreter {settings.python} can't be run: {e}; give the path of a Python "
                "that has freshet installed"
            ) from e
        finally:
            os.close(output_write_fd)
    return ours, process, output_fd


def child_environment() -> dict[str, str]:
    """The environment of the child: what is importable here is importable there."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    paths = [
        path
        for path in sys.path
        if path and path not in standard and not path.endswith(("lib-dynload", ".zip"))
    ]
    package_parent = str(Path(__file__).resolve().parents[2])
    if package_parent not in paths:
        paths.append(package_parent)
    return {**os.environ, **_SINGLE_THREADED, "PYTHONPATH": os.pathsep.join(paths)}


def describe_status(status: int | None) -> str:
    """How a process ended, from its wait status."""
    if status is None:
        return "ended in an unknown way"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"
