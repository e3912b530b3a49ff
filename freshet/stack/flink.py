"""A Flink session cluster: one JobManager and some TaskManagers, each a JVM on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from freshet.errors import StackError
from freshet.files import write_atomically
from freshet.stack.flink_rest import FlinkRest
from freshet.stack.layout import QUICK_JVM, flink_home, flink_jar, java
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    start_process,
    stop_processes,
    wait_until,
)

_READY_DEADLINE_S = 120.0
_LOST_DEADLINE_S = 60.0

STATE_BACKENDS = {"heap": "hashmap", "rocksdb": "rocksdb"}
"""Our name of a state backend to Flink's."""

_JOB_MANAGER = "jobmanager"
_JOB_MANAGER_HEAP_MB = 384

_FRAMEWORK_HEAP_MB = 64
_FRAMEWORK_OFF_HEAP_MB = 128
_TASK_OFF_HEAP_MB = 64
_NETWORK_MB = 48
_METASPACE_MB = 256
_DIRECT_MB = _FRAMEWORK_OFF_HEAP_MB + _TASK_OFF_HEAP_MB + _NETWORK_MB

PRELOADED_JAR = "freshet-flink.jar"
_LOG4J_FILES = ("log4j-console.properties", "log4j-cli.properties")

# As for Kafka: at most two files of 20 MB a server.
_LOG4J = """\
monitorInterval = 0
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = File
appender.file.name = File
appender.file.type = RollingFile
appender.file.append = true
appender.file.fileName = ${{sys:log.file}}
appender.file.filePattern = ${{sys:log.file}}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss,SSS}} %-5p %-60c %x - %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
logger.kafka.name = org.apache.kafka
logger.kafka.level = {kafka_level}
# It logs all of the environment, where secrets may be.
logger.environment.name = org.apache.flink.client.python.PythonEnvUtils
logger.environment.level = WARN
logger.netty.name = org.jboss.netty.channel.DefaultChannelPipeline
logger.netty.level = OFF
"""


@dataclass(frozen=True)
class FlinkOptions:
    """How the stack's Flink cluster runs."""

    task_managers: int = 2

    slots: int = 1
    """Of each TaskManager. In thread mode the slots of a JVM share one Python interpreter, so
    feature jobs should have TaskManagers of their own; jobs without Python may share them."""

    state_backend: str = "heap"
    """``heap`` or ``rocksdb``."""

    checkpoint_interval_ms: int = 5_000
    """Time between checkpoints."""

    task_heap_mb: int = 512
    """Heap of a TaskManager for operators and, with the heap backend, their state; MB."""

    managed_memory_mb: int = 256
    """Memory of a TaskManager for RocksDB and for Python workers; MB."""

    short_lived: bool = False
    """Whether it is for minutes: then it compiles its code fast instead of well."""

    preloaded: bool = False
    """Whether the processes load Freshet's jar once, when they start, and not anew with each job:
    all jobs of a process share its compiled code then. A jar that is built later is not seen."""

    prometheus: bool = False
    """Whether each process tells its metrics to a Prometheus, on a port of its own; unlike all
    others it is open on every address of the machine, as Flink's reporter knows no other way."""

    kafka_log_level: str = "WARN"
    """What Kafka's clients log, by log4j's names; at ``INFO`` each lists its properties."""

    settings: dict[str, str] = field(default_factory=dict)
    """Further Flink settings, by Flink's names."""


class FlinkCluster:
    """The stack's Flink."""

    def __init__(
        self,
        rest_port: int,
        rpc_port: int,
        directory: Path,
        logs: Path,
        options: FlinkOptions,
        stack_id: str,
    ) -> None:
        """Describes the cluster; :meth:`start` starts it.

        Args:
            rest_port: free port on loopback for REST and the web UI.
            rpc_port: another one, for the JobManager.
            directory: for settings, checkpoints and temporary files; made when missing.
            logs: folder for its logs.
            options: how it runs.
            stack_id: of the stack that it belongs to.

        Raises:
            StackError: the options make no sense.
        """
        if options.state_backend not in STATE_BACKENDS:
            raise StackError(
                f"state backend {options.state_backend!r} is none of {', '.join(STATE_BACKENDS)}"
            )
        if options.task_managers < 1 or options.slots < 1:
            raise StackError("a Flink cluster needs at least 1 TaskManager with at least 1 slot")
        self.rest_port = rest_port
        self.rpc_port = rpc_port
        self.options = options
        self.rest = FlinkRest(f"http://{LOOPBACK}:{rest_port}")
        self.job_manager: ServerProcess | None = None
        self.task_managers: dict[str, ServerProcess] = {}
        """By the id that Flink knows a TaskManager by."""
        self.task_managers_started = 0
        """How many there ever were: no id is given twice."""
        self._directory = directory
        self._logs = logs
        self._stack_id = stack_id
        self._reporter_ports: dict[str, int] = {}
        self._free_ports = PortPicker()

    @property
    def configuration_directory(self) -> Path:
        """Flink's ``FLINK_CONF_DIR``, also for clients that submit."""
        return self._directory / "conf"

    @property
    def prometheus_targets(self) -> Path:
        """Where Prometheus reads which processes to scrape, if ``FlinkOptions.prometheus``."""
        return self._directory / "prometheus-targets.json"

    def start(self) -> None:
        """Starts all processes at once, and waits until every TaskManager is registered.

        Raises:
            StackError: one did not start.
        """
        self._write_settings()
        self._start_job_manager()
        names = [self._start_task_manager() for _ in range(self.options.task_managers)]
        self._wait_for_job_manager()
        for name in names:
            self._wait_for_task_manager(name)

    def is_managed(self) -> bool:
        """Whether the JobManager runs."""
        return self.job_manager is not None and self.job_manager.is_alive()

    def replace_lost_task_managers(self) -> list[str]:
        """Starts a TaskManager for each one that has ended by itself; returns their ids.

        Does not wait for them.
        """
        lost = [name for name, process in self.task_managers.items() if not process.is_alive()]
        for name in lost:
            del self.task_managers[name]
        return [self._start_task_manager() for _ in lost]

    def processes(self) -> list[ServerProcess]:
        """The processes that should run now."""
        job_manager = [] if self.job_manager is None else [self.job_manager]
        return [*self.task_managers.values(), *job_manager]

    def stop(self) -> None:
        """Stops the cluster; its jobs end with it."""
        stop_processes(self.processes(), TERMINATE_DEADLINE_S)

    def kill_task_manager(self, name: str | None = None) -> str:
        """Kills a TaskManager at once, as a crash would.

        Args:
            name: its id; None for the one that has run longest.

        Returns:
            The id of the killed one. The cluster notices its loss some seconds later.

        Raises:
            StackError: there is no such TaskManager.
        """
        chosen = name or next(iter(self.task_managers), None)
        process = self.task_managers.pop(chosen or "", None)
        if chosen is None or process is None:
            raise StackError(
                f"no TaskManager {name or ''} runs; there are {', '.join(self.task_managers)}"
            )
        process.kill()
        return chosen

    def start_task_manager(self) -> str:
        """Adds a TaskManager and waits until the cluster has it; returns its id.

        Raises:
            StackError: it did not start.
        """
        name = self._start_task_manager()
        self._wait_for_task_manager(name)
        return name

    def wait_until_lost(self, name: str) -> None:
        """Waits until the cluster has noticed that a TaskManager is gone.

        Raises:
            StackError: it did not notice in time.
        """
        assert self.job_manager is not None, "the cluster was started"
        wait_until(
            lambda: name not in self.rest.task_managers(),
            server=self.job_manager,
            deadline_s=_LOST_DEADLINE_S,
            what=f"notice the loss of {name}",
        )

    def client_environment(self) -> dict[str, str]:
        """Environment for Flink's own command line, so that it talks to this cluster."""
        return self._environment()

    def _start_job_manager(self) -> None:
        self.job_manager = self._start(
            _JOB_MANAGER,
            "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
            [f"-Xmx{_JOB_MANAGER_HEAP_MB}m"],
            [],
        )

    def _start_task_manager(self) -> str:
        self.task_managers_started += 1
        name = f"taskmanager-{self.task_managers_started}"
        self.task_managers[name] = self._start(
            name,
            "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
            [
                f"-Xmx{_FRAMEWORK_HEAP_MB + self.options.task_heap_mb}m",
                f"-XX:MaxDirectMemorySize={_DIRECT_MB}m",
                f"-XX:MaxMetaspaceSize={_METASPACE_MB}m",
            ],
            ["-D", f"taskmanager.resource-id={name}"],
        )
        return name

    def _start(
        self, name: str, main_class: str, options: list[str], arguments: list[str]
    ) -> ServerProcess:
        reporter = self._reporter_settings(name) if self.options.prometheus else {}
        # Flink's start scripts end in such a command too, but take 4 s a process to work out from
        # the settings what is known here.
        log = self._logs / f"{name}.log"
        return start_process(
            f"Flink {name}",
            [
                java(),
                *options,
                *(QUICK_JVM if self.options.short_lived else ()),
                *_module_options(),
                f"-Dlog.file={log}",
                f"-Dlog4j.configurationFile={self.configuration_directory / _LOG4J_FILES[0]}",
                "-classpath",
                self._class_path(),
                main_class,
                "--configDir",
                str(self.configuration_directory),
                *(word for each in reporter.items() for word in ("-D", "=".join(each))),
                *arguments,
            ],
            stack_id=self._stack_id,
            output=self._logs / f"{name}.out",
            log=log,
            environment=self._environment(),
        )

    def _class_path(self) -> str:
        """The distribution's jars, with PyFlink's among them, and Freshet's if it is preloaded.

        Flink would load PyFlink's jar anew with each job. The native library of the embedded
        interpreter can be loaded by one class loader of a JVM only, so a TaskManager's second job
        in thread mode would fail; on the system's class path it is loaded once.
        """
        home = flink_home()
        jars = sorted(home.glob("lib/*.jar")) + sorted(home.glob("opt/flink-python-*.jar"))
        # As Flink's scripts do: flink-dist last.
        jars.sort(key=lambda jar: jar.name.startswith("flink-dist"))
        if self.options.preloaded:
            jars.append(self._directory / PRELOADED_JAR)
        return os.pathsep.join(str(jar) for jar in jars)

    def _reporter_settings(self, name: str) -> dict[str, str]:
        """Settings of a process' Prometheus reporter; Prometheus is told of it."""
        running = {_JOB_MANAGER, *self.task_managers}
        self._reporter_ports = {n: p for n, p in self._reporter_ports.items() if n in running}
        self._reporter_ports[name] = port = self._free_ports.pick()
        targets = [f"{LOOPBACK}:{each}" for each in self._reporter_ports.values()]
        write_atomically(self.prometheus_targets, json.dumps([{"targets": targets}]).encode())
        return {
            f"metrics.reporter.prom.{setting}": value
            for setting, value in {
                "factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
                "port": str(port),
                "filterLabelValueCharacters": "false",
            }.items()
        }

    def _wait_for_job_manager(self) -> None:
        assert self.job_manager is not None, "it was started"

        def answers() -> bool:
            with contextlib.suppress(StackError):
                return bool(self.rest.overview())
            return False

        wait_until(
            answers,
            server=self.job_manager,
            deadline_s=_READY_DEADLINE_S,
            what=f"answer at {self.rest.url}",
        )

    def _wait_for_task_manager(self, name: str) -> None:
        wait_until(
            lambda: name in self.rest.task_managers(),
            server=self.task_managers[name],
            deadline_s=_READY_DEADLINE_S,
            what="register with the JobManager",
        )

    def _environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        environment.pop("PYTHONHOME", None)
        interpreter_directory = Path(sys.prefix) / "bin"
        return environment | {
            "FLINK_CONF_DIR": str(self.configuration_directory),
            "FLINK_LOG_DIR": str(self._logs),
            "FLINK_IDENT_STRING": "freshet",
            # Where the reporter is.
            **(
                {"FLINK_PLUGINS_DIR": str(flink_home() / "plugins")}
                if self.options.prometheus
                else {}
            ),
            # In thread mode Python is found through the activated virtual environment.
            "VIRTUAL_ENV": sys.prefix,
            "PATH": f"{interpreter_directory}{os.pathsep}{environment.get('PATH', os.defpath)}",
        }

    def _write_settings(self) -> None:
        self.configuration_directory.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        for folder in ("checkpoints", "savepoints", "tmp"):
            (self._directory / folder).mkdir(exist_ok=True)
        for name in _LOG4J_FILES:
            (self.configuration_directory / name).write_text(
                _LOG4J.format(kafka_level=self.options.kafka_log_level), encoding="utf-8"
            )
        if self.options.preloaded:
            # A copy, as a build may replace the jar under a running process.
            shutil.copyfile(flink_jar(), self._directory / PRELOADED_JAR)
        text = yaml.safe_dump(self._settings(), sort_keys=True, width=10_000)
        (self.configuration_directory / "config.yaml").write_text(text, encoding="utf-8")

    def _settings(self) -> dict[str, str | int]:
        return {
            **self._network_settings(),
            **self._memory_settings(),
            **self._recovery_settings(),
            "env.java.opts.all": " ".join(_module_options()),
            # See _class_path.
            **(
                {"classloader.resolve-order": "parent-first"}
                if self.options.preloaded
                else {"classloader.parent-first-patterns.additional": "pemja"}
            ),
            "env.java.opts.client": " ".join(QUICK_JVM),
            "io.tmp.dirs": str(self._directory / "tmp"),
            "parallelism.default": 1,
            "python.executable": sys.executable,
            "python.client.executable": sys.executable,
            "taskmanager.numberOfTaskSlots": self.options.slots,
            # Otherwise one TaskManager is filled before the next is used.
            "taskmanager.load-balance.mode": "SLOTS",
            # Metrics are read anew only when all TaskManagers have answered, or after this time: it
            # is how long a lost one keeps the others' from being told; otherwise 10 minutes.
            "web.timeout": "20 s",
            # How old a job's state may be that the REST API tells; otherwise 3 s.
            "web.refresh-interval": "300 ms",
            **self.options.settings,
        }

    def _network_settings(self) -> dict[str, str | int]:
        return {
            # A TaskManager that is up before the JobManager would wait 10 s for its next try.
            "cluster.registration.error-delay": "300 ms",
            "cluster.registration.refused-registration-delay": "300 ms",
            "jobmanager.bind-host": LOOPBACK,
            "jobmanager.rpc.address": LOOPBACK,
            "jobmanager.rpc.port": self.rpc_port,
            "rest.address": LOOPBACK,
            "rest.bind-address": LOOPBACK,
            "rest.bind-port": self.rest_port,
            "rest.port": self.rest_port,
            "taskmanager.bind-host": LOOPBACK,
            "taskmanager.host": LOOPBACK,
        }

    def _memory_settings(self) -> dict[str, str | int]:
        return {
            "jobmanager.memory.heap.size": f"{_JOB_MANAGER_HEAP_MB}m",
            "taskmanager.cpu.cores": "1.0",
            "taskmanager.memory.framework.heap.size": f"{_FRAMEWORK_HEAP_MB}m",
            "taskmanager.memory.framework.off-heap.size": f"{_FRAMEWORK_OFF_HEAP_MB}m",
            "taskmanager.memory.task.heap.size": f"{self.options.task_heap_mb}m",
            "taskmanager.memory.task.off-heap.size": f"{_TASK_OFF_HEAP_MB}m",
            "taskmanager.memory.managed.size": f"{self.options.managed_memory_mb}m",
            "taskmanager.memory.managed.consumer-weights": (
                "OPERATOR:70,STATE_BACKEND:70,PYTHON:30"
            ),
            "taskmanager.memory.network.min": f"{_NETWORK_MB}m",
            "taskmanager.memory.network.max": f"{_NETWORK_MB}m",
            "taskmanager.memory.jvm-metaspace.size": f"{_METASPACE_MB}m",
            # Where an embedded interpreter's own memory is accounted for.
            "taskmanager.memory.jvm-overhead.min": "192m",
            "taskmanager.memory.jvm-overhead.max": "192m",
        }

    def _recovery_settings(self) -> dict[str, str | int]:
        return {
            "state.backend.type": STATE_BACKENDS[self.options.state_backend],
            "execution.checkpointing.interval": f"{self.options.checkpoint_interval_ms} ms",
            "execution.checkpointing.storage": "filesystem",
            "execution.checkpointing.dir": (self._directory / "checkpoints").as_uri(),
            "execution.checkpointing.savepoint-dir": (self._directory / "savepoints").as_uri(),
            "execution.checkpointing.incremental": "true",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            # Short, and never giving up: a server that is away comes back.
            "restart-strategy.type": "exponential-delay",
            "restart-strategy.exponential-delay.initial-backoff": "500 ms",
            "restart-strategy.exponential-delay.max-backoff": "10 s",
            "restart-strategy.exponential-delay.jitter-factor": "0.1",
            # A lost TaskManager is noticed by two failed heartbeats. The long timeout keeps a
            # machine that is merely busy from being taken for lost.
            "heartbeat.interval": "2000",
            "heartbeat.timeout": "50000",
        }


def _module_options() -> list[str]:
    """The JVM options that the distribution needs, which only its own config.yaml names."""
    file = flink_home() / "conf" / "config.yaml"
    try:
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
        return str(settings["env"]["java"]["opts"]["all"]).split()
    except (OSError, KeyError, TypeError) as error:
        raise StackError(f"{file} does not name Flink's JVM options: {error!r}") from error
