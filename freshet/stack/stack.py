"""The embedded stack as a whole: started together, known again later, ended without a rest."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from freshet.config import DEFAULT_HOME_REGION, Config, stack_config_file, stack_home
from freshet.errors import ConfigError, StackError
from freshet.stack.flink import FlinkCluster, FlinkOptions
from freshet.stack.kafka import KafkaBroker, KafkaOptions
from freshet.stack.ports import PortPicker
from freshet.stack.processes import (
    POLL_INTERVAL_S,
    TERMINATE_DEADLINE_S,
    ProcessIdentity,
    ServerProcess,
    kill_stack_processes,
    processes_of_stack,
    require_linux,
    start_process,
    start_watchdog,
    stop_processes,
)
from freshet.stack.redis import RedisOptions, RedisServer
from freshet.stack.together import run_together

_STATE_FILE = "stack.json"
_LOCK_FILE = "lock"
_LOCK_DEADLINE_S = 10.0


@dataclass(frozen=True)
class StackOptions:
    """What a stack is made of."""

    regions: tuple[str, ...] = (DEFAULT_HOME_REGION,)
    """Each gets a Redis; the first is home, where the feature jobs write."""

    redis: RedisOptions = field(default_factory=RedisOptions)
    kafka: KafkaOptions | None = field(default_factory=KafkaOptions)
    """None for a stack without Kafka."""

    flink: FlinkOptions | None = field(default_factory=FlinkOptions)
    """None for a stack without Flink."""

    topic_prefix: str = ""


class Stack:
    """Kafka, a Redis for each region, and Flink, all on loopback.

    As a context manager it ends with the block, and, should this process be killed, without it.
    :meth:`start_detached` starts one that outlives the process, for ``freshet up``.
    """

    def __init__(self, directory: Path, options: StackOptions | None = None) -> None:
        """Describes a stack.

        Args:
            directory: for its data and logs; ``data`` and ``logs`` in it are emptied at the start.
            options: what it is made of.

        Raises:
            StackError: the options make no sense, or this is no Linux.
        """
        require_linux()
        self.directory = directory.absolute()
        self.options = options or StackOptions()
        self.id = uuid.uuid4().hex
        self.logs = self.directory / "logs"
        self.redis: dict[str, RedisServer] = {}
        self._kafka: KafkaBroker | None = None
        self._flink: FlinkCluster | None = None
        self._watchdog: ServerProcess | None = None
        ports = PortPicker()
        self._describe_servers([ports.pick() for _ in range(4 + len(self.options.regions))])

    @property
    def kafka(self) -> KafkaBroker:
        """The broker.

        Raises:
            StackError: the stack has none.
        """
        if self._kafka is None:
            raise StackError("this stack was made without Kafka")
        return self._kafka

    @property
    def flink(self) -> FlinkCluster:
        """The Flink cluster.

        Raises:
            StackError: the stack has none.
        """
        if self._flink is None:
            raise StackError("this stack was made without Flink")
        return self._flink

    @property
    def home_region(self) -> str:
        """Region where the feature jobs write."""
        return self.options.regions[0]

    @property
    def home_redis(self) -> RedisServer:
        """Redis of the home region."""
        return self.redis[self.home_region]

    @property
    def config(self) -> Config:
        """What clients and jobs need to know of this stack."""
        return Config(
            kafka_bootstrap=self.kafka.bootstrap,
            redis={region: server.url for region, server in self.redis.items()},
            home_region=self.home_region,
            topic_prefix=self.options.topic_prefix,
            flink_rest=self._flink.rest.url if self._flink is not None else None,
        )

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts every server and waits until all answer; ends them all when one does not.

        The servers also end when this process does, however it does.

        Raises:
            StackError: a server did not start; with the tail of its log.
        """
        self._prepare()
        # First of all, so that nothing can be left behind.
        self._watchdog = start_watchdog(self.id, self.logs / "watchdog.out")
        self._start_servers()

    def start_detached(self, home: Path | None = None) -> None:
        """Starts a stack that outlives this process; :meth:`attach` finds it again.

        Args:
            home: folder of the state; None for ``$FRESHET_HOME`` or ``./.freshet``.

        Raises:
            StackError: a server did not start, or a stack runs there already.
        """
        state_directory = stack_home() if home is None else home.absolute()
        with _locked(state_directory):
            running = Stack.attach(state_directory)
            if running is not None and running.is_running():
                raise StackError(
                    f"a stack runs already (state in {state_directory}); use it, or stop it with"
                    " 'freshet down'"
                )
            if running is not None:
                kill_stack_processes(running.id)
            self._prepare()
            # Written before the first start as well: should this process be killed meanwhile,
            # `freshet down` still finds what it had started.
            self.save(state_directory)
            try:
                self._start_servers()
                self._start_supervisor(state_directory)
                self.save(state_directory)
                self.config.write(stack_config_file(state_directory))
            except BaseException:
                self.stop()
                _forget(state_directory)
                raise

    def stop(self) -> None:
        """Ends every process of the stack and removes its data; the logs stay.

        Raises:
            StackError: a process cannot be ended.
        """
        # Data goes anyway, so nothing is gained by stopping one after the other.
        try:
            stop_processes(self._processes(), TERMINATE_DEADLINE_S)
        finally:
            kill_stack_processes(self.id)
            shutil.rmtree(self.directory / "data", ignore_errors=True)

    def is_running(self) -> bool:
        """Whether any process of the stack runs."""
        return bool(processes_of_stack(self.id))

    def pids(self) -> list[int]:
        """Ids of every process that carries this stack's mark, servers' own children included."""
        return sorted(identity.pid for identity in processes_of_stack(self.id))

    def save(self, home: Path) -> None:
        """Writes what :meth:`attach` needs; call it after changing a detached stack's processes."""
        home.mkdir(parents=True, exist_ok=True)
        file = home / _STATE_FILE
        draft = file.with_suffix(".tmp")
        draft.write_text(json.dumps(self._state(), indent=1), encoding="utf-8")
        draft.replace(file)

    @classmethod
    def attach(cls, home: Path | None = None) -> Stack | None:
        """The stack that :meth:`start_detached` left in this folder; None when there is none.

        Raises:
            StackError: its state cannot be read.
        """
        file = (stack_home() if home is None else home.absolute()) / _STATE_FILE
        if not file.exists():
            return None
        try:
            return cls._from_state(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StackError(
                f"{file} is damaged ({error!r}); end the servers that it names and remove it"
            ) from error

    @staticmethod
    def replace_lost_task_managers(home: Path) -> bool:
        """Replaces TaskManagers of the stack of this folder that ended; False without a stack.

        Raises:
            StackError: one could not be started.
        """
        with _locked(home):
            stack = Stack.attach(home)
            if stack is None:
                return False
            flink = stack._flink
            if flink is not None and flink.is_managed() and flink.replace_lost_task_managers():
                stack.save(home)
            return True

    @staticmethod
    def stop_detached(home: Path | None = None) -> Stack | None:
        """Ends the stack of this folder; None when there is none.

        Raises:
            StackError: a process cannot be ended.
        """
        state_directory = stack_home() if home is None else home.absolute()
        if not (state_directory / _STATE_FILE).exists():
            return None
        with _locked(state_directory):
            stack = Stack.attach(state_directory)
            if stack is not None:
                stack.stop()
                _forget(state_directory)
            return stack

    def _describe_servers(self, ports: list[int]) -> None:
        options, data = self.options, self.directory / "data"
        if len(set(options.regions)) != len(options.regions):
            raise StackError(f"a region is named twice in {', '.join(options.regions)}")
        self._ports = ports
        if options.kafka is not None:
            self._kafka = KafkaBroker(
                ports[0], ports[1], data / "kafka", self.logs, options.kafka, self.id
            )
        if options.flink is not None:
            self._flink = FlinkCluster(
                ports[2], ports[3], data / "flink", self.logs, options.flink, self.id
            )
        for port, region in zip(ports[4:], options.regions, strict=True):
            folder = data / f"redis-{region.replace(':', '-')}"
            self.redis[region] = RedisServer(
                region, port, folder, self.logs, options.redis, self.id
            )
        if options.kafka is not None and options.regions:
            try:
                _ = self.config
            except ConfigError as error:
                raise StackError(str(error)) from error

    def _prepare(self) -> None:
        for name in ("data", "logs"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
            (self.directory / name).mkdir(parents=True)

    def _start_servers(self) -> None:
        servers: list[KafkaBroker | FlinkCluster | RedisServer] = [*self.redis.values()]
        if self._kafka is not None:
            servers.append(self._kafka)
        if self._flink is not None:
            servers.append(self._flink)
        try:
            run_together([server.start for server in servers])
        except BaseException as error:
            self._abandon(error)
            raise

    def _start_supervisor(self, home: Path) -> None:
        if self._flink is not None:
            start_process(
                "stack supervisor",
                [sys.executable, "-m", "freshet.stack.supervisor", str(home)],
                stack_id=self.id,
                output=self.logs / "supervisor.out",
            )

    def _abandon(self, error: BaseException) -> None:
        """Ends what a failed start leaves; a failure to do so is told, but hides nothing."""
        try:
            self.stop()
        except StackError as leftover:
            error.add_note(str(leftover))

    def _processes(self) -> list[ServerProcess]:
        owned = [server.process for server in self.redis.values()]
        if self._kafka is not None:
            owned.append(self._kafka.process)
        if self._flink is not None:
            owned.extend(self._flink.processes())
        owned.append(self._watchdog)
        return [process for process in owned if process is not None]

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "id": self.id,
            "directory": str(self.directory),
            "options": dataclasses.asdict(self.options),
            "ports": self._ports,
            "redis": {
                region: _process_state(server.process) for region, server in self.redis.items()
            },
        }
        if self._kafka is not None:
            state["kafka"] = _process_state(self._kafka.process)
        if self._flink is not None:
            state["flink"] = {
                "job_manager": _process_state(self._flink.job_manager),
                "task_managers": {
                    name: _process_state(process)
                    for name, process in self._flink.task_managers.items()
                },
                "task_managers_started": self._flink.task_managers_started,
            }
        return state

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Stack:
        stack = cls.__new__(cls)
        stack.directory = Path(state["directory"])
        stack.options = _options_from_state(state["options"])
        stack.id = state["id"]
        stack.logs = stack.directory / "logs"
        stack.redis, stack._kafka, stack._flink, stack._watchdog = {}, None, None, None
        stack._describe_servers(state["ports"])
        for region, process in state["redis"].items():
            stack.redis[region].process = _process_from_state(process)
        if stack._kafka is not None:
            stack._kafka.process = _process_from_state(state["kafka"])
        if stack._flink is not None:
            flink = state["flink"]
            stack._flink.job_manager = _process_from_state(flink["job_manager"])
            stack._flink.task_managers_started = flink["task_managers_started"]
            for name, described in flink["task_managers"].items():
                process = _process_from_state(described)
                if process is not None:
                    stack._flink.task_managers[name] = process
        return stack


def _options_from_state(state: dict[str, Any]) -> StackOptions:
    kafka, flink = state["kafka"], state["flink"]
    return StackOptions(
        regions=tuple(state["regions"]),
        redis=RedisOptions(**state["redis"]),
        kafka=None if kafka is None else KafkaOptions(**kafka),
        flink=None if flink is None else FlinkOptions(**flink),
        topic_prefix=state["topic_prefix"],
    )


def _process_state(process: ServerProcess | None) -> dict[str, Any] | None:
    if process is None:
        return None
    identity = process.identity
    return {
        "name": process.name,
        "pid": identity.pid,
        "started": identity.started,
        "log": str(process.log),
    }


def _process_from_state(state: dict[str, Any] | None) -> ServerProcess | None:
    if state is None:
        return None
    identity = ProcessIdentity(state["pid"], state["started"])
    return ServerProcess(state["name"], identity, Path(state["log"]))


def _forget(home: Path) -> None:
    for file in (home / _STATE_FILE, stack_config_file(home)):
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Keeps two processes from changing the same stack at once."""
    home.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + _LOCK_DEADLINE_S
    with (home / _LOCK_FILE).open("w", encoding="utf-8") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise StackError(
                        f"another command is starting or stopping the stack of {home}; wait for it"
                    ) from error
                time.sleep(POLL_INTERVAL_S)
        yield
