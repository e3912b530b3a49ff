"""One region's Redis: a server on loopback that a fault test can kill, empty and bring back."""

from __future__ import annotations

import contextlib
import shutil
import socket
from dataclasses import dataclass, field
from pathlib import Path

from freshet.errors import StackError
from freshet.stack.layout import redis_server
from freshet.stack.ports import LOOPBACK
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    start_process,
    stop_processes,
    wait_until,
)

_READY_DEADLINE_S = 30.0


@dataclass(frozen=True)
class RedisOptions:
    """How the stack's Redis servers run."""

    persistent: bool = True
    """Append-only file: what was acknowledged outlives a killed server process."""

    maxmemory_mb: int = 0
    """Limit of the data, MB; 0 for none. Beyond it writes fail: nothing is ever evicted."""

    settings: dict[str, str] = field(default_factory=dict)
    """Further settings, by Redis's names."""


class RedisServer:
    """The Redis server of one region."""

    def __init__(
        self,
        region: str,
        port: int,
        directory: Path,
        logs: Path,
        options: RedisOptions,
        stack_id: str,
    ) -> None:
        """Describes the server; :meth:`start` starts it.

        Args:
            region: ``provider:region``.
            port: free port on loopback.
            directory: for its data; made when missing.
            logs: folder for its log.
            options: how it runs.
            stack_id: of the stack that it belongs to.
        """
        self.region = region
        self.port = port
        self.options = options
        self.process: ServerProcess | None = None
        self._directory = directory
        self._log = logs / f"redis-{region.replace(':', '-')}.log"
        self._stack_id = stack_id

    @property
    def url(self) -> str:
        """For clients."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    @property
    def pid(self) -> int | None:
        """Process id; None when it does not run."""
        return self.process.pid if self.process is not None and self.process.is_alive() else None

    def start(self) -> None:
        """Starts the server with the data that is there, and waits until it answers.

        Raises:
            StackError: it did not start.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        self.process = start_process(
            f"Redis of {self.region}", self._command(), stack_id=self._stack_id, output=self._log
        )
        wait_until(
            self._answers,
            server=self.process,
            deadline_s=_READY_DEADLINE_S,
            what=f"answer on port {self.port}",
        )

    def stop(self) -> None:
        """Stops the server in good order; its data stays."""
        if self.process is not None:
            stop_processes([self.process], TERMINATE_DEADLINE_S)

    def kill(self) -> None:
        """Kills the server at once, as a crash would.

        Raises:
            StackError: it does not run.
        """
        if self.process is None or not self.process.is_alive():
            raise StackError(f"Redis of {self.region} does not run, so it cannot be killed")
        self.process.kill()

    def restart(self, *, keep_data: bool = True) -> None:
        """Starts the server again on its port, killing it first when it still runs.

        Args:
            keep_data: False brings it back empty.

        Raises:
            StackError: it did not start, or it should keep data that was never on disk.
        """
        if keep_data and not self.options.persistent:
            raise StackError(
                f"Redis of {self.region} keeps nothing on disk; start the stack with"
                " RedisOptions(persistent=True) to restart it with its data"
            )
        if self.process is not None:
            self.process.kill()
        if not keep_data:
            shutil.rmtree(self._directory, ignore_errors=True)
        self.start()

    def _command(self) -> list[str]:
        options = {
            "bind": LOOPBACK,
            "port": str(self.port),
            "dir": str(self._directory),
            "daemonize": "no",
            # So that `ps` shows how to start it again by hand.
            "set-proc-title": "no",
            "save": "",
            "appendonly": "yes" if self.options.persistent else "no",
            # Replies follow the write to the file, so a killed process loses nothing it
            # acknowledged; only a crash of the machine loses up to a second.
            "appendfsync": "everysec",
            "maxmemory": f"{self.options.maxmemory_mb}mb",
            "maxmemory-policy": "noeviction",
            **self.options.settings,
        }
        return [
            str(redis_server()),
            *(part for name, value in options.items() for part in (f"--{name}", value)),
        ]

    def _answers(self) -> bool:
        # While it loads its data it answers PING with an error.
        with (
            contextlib.suppress(OSError),
            socket.create_connection((LOOPBACK, self.port), timeout=1.0) as connection,
        ):
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        return False
