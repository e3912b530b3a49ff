"""A Kafka broker in KRaft mode: one JVM that is broker and controller, on loopback."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from freshet.errors import StackError
from freshet.stack.layout import QUICK_JVM, java, kafka_class_path
from freshet.stack.ports import LOOPBACK, is_listening
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    start_process,
    stop_processes,
    tail,
    wait_until,
)

_READY_DEADLINE_S = 120.0
_FORMAT_DEADLINE_S = 60.0

_META_FILE = "meta.properties"
"""In a formatted storage."""

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
"""Largest record batch; above a table's limit, so that an oversized event reaches its job."""

# A long run must not fill the disk with logs: two files of 20 MB at most.
_LOG4J = """\
status = warn
appenders = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %-5p %c{{1}} - %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


@dataclass(frozen=True)
class KafkaOptions:
    """How the stack's broker runs."""

    heap_mb: int = 512
    """Largest heap of its JVM, MB."""

    short_lived: bool = False
    """Whether it is for minutes: then it compiles its code fast instead of well."""

    settings: dict[str, str] = field(default_factory=dict)
    """Further broker settings, by Kafka's names."""


@dataclass(frozen=True)
class Security:
    """What a listener asks of clients."""

    protocol: str
    """Kafka's name: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Broker settings for it, by Kafka's names without the listener's prefix: key store, logins."""


PLAINTEXT = Security("PLAINTEXT")


@dataclass(frozen=True)
class Listener:
    """A further port of the broker for clients that reach it through something else."""

    name: str
    """Kafka's name for it: capitals, digits and '_'."""

    port: int
    """Where the broker listens, on loopback."""

    advertised_port: int
    """Port that it tells such clients to connect to, on loopback: that of what is in between."""

    security: Security = PLAINTEXT
    """What it asks of such clients."""


class KafkaBroker:
    """The stack's Kafka."""

    def __init__(
        self,
        port: int,
        controller_port: int,
        directory: Path,
        logs: Path,
        options: KafkaOptions,
        stack_id: str,
        listeners: Sequence[Listener] = (),
    ) -> None:
        """Describes the broker; :meth:`start` starts it.

        Args:
            port: free port on loopback for clients.
            controller_port: another one, for the broker's controller.
            directory: for its data and settings; made when missing.
            logs: folder for its logs.
            options: how it runs.
            stack_id: of the stack that it belongs to.
            listeners: further ones.
        """
        self.port = port
        self.listeners = tuple(listeners)
        self.controller_port = controller_port
        self.options = options
        self.process: ServerProcess | None = None
        self._directory = directory
        self._log = logs / "kafka.log"
        self._output = logs / "kafka.out"
        self._stack_id = stack_id

    @property
    def bootstrap(self) -> str:
        """For clients: ``host:port``."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Process id; None when it does not run."""
        return self.process.pid if self.process is not None and self.process.is_alive() else None

    def start(self) -> None:
        """Starts the broker with the data that is there, and waits until it answers.

        Raises:
            StackError: it did not start.
        """
        self.format()
        options = [f"-Xmx{self.options.heap_mb}m", *(QUICK_JVM if self.options.short_lived else ())]
        self.process = start_process(
            "Kafka broker",
            self._java(["kafka.Kafka", str(self._settings_file)], options),
            stack_id=self._stack_id,
            output=self._output,
            log=self._log,
        )
        wait_until(
            self._answers,
            server=self.process,
            deadline_s=_READY_DEADLINE_S,
            what=f"answer on port {self.port}",
        )

    def format(self) -> None:
        """Makes the broker's empty storage, unless it has one; :meth:`start` does it as well.

        Raises:
            StackError: it cannot be made.
        """
        self._write_settings()
        if not (self._data / _META_FILE).exists():
            self._format()

    def copy_format(self, other: KafkaBroker) -> None:
        """Makes the broker's empty storage from another's, which takes no JVM and its two seconds.

        Args:
            other: formatted, and never started.
        """
        shutil.copytree(other._data, self._data)
        meta = self._data / _META_FILE
        text = meta.read_text(encoding="utf-8")
        # They are clusters of their own.
        meta.write_text(
            re.sub("(?m)^cluster.id=.*$", f"cluster.id={_cluster_id()}", text), encoding="utf-8"
        )

    def stop(self) -> None:
        """Stops the broker in good order; its data stays."""
        if self.process is not None:
            stop_processes([self.process], TERMINATE_DEADLINE_S)

    def kill(self) -> None:
        """Kills the broker at once, as a crash would.

        Raises:
            StackError: it does not run.
        """
        if self.process is None or not self.process.is_alive():
            raise StackError("Kafka does not run, so it cannot be killed")
        self.process.kill()

    def restart(self, *, keep_data: bool = True) -> None:
        """Starts the broker again on its ports, killing it first when it still runs.

        Args:
            keep_data: False brings it back without topics.

        Raises:
            StackError: it did not start.
        """
        if self.process is not None:
            self.process.kill()
        if not keep_data:
            shutil.rmtree(self._data, ignore_errors=True)
        self.start()

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def _settings_file(self) -> Path:
        return self._directory / "server.properties"

    @property
    def _log4j_file(self) -> Path:
        return self._directory / "log4j2.properties"

    def _write_settings(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log4j_file.write_text(_LOG4J.format(log=self._log), encoding="utf-8")
        lines = [f"{name}={value}\n" for name, value in self._settings().items()]
        self._settings_file.write_text("".join(lines), encoding="utf-8")

    def _settings(self) -> dict[str, str]:
        internal_topics = {
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{LOOPBACK}:{self.controller_port}",
            **self._listener_settings(),
            "log.dirs": str(self._data),
            # A mistyped topic name is an error, not a new topic.
            "auto.create.topics.enable": "false",
            # How long a broker that was killed is not let in again.
            "broker.session.timeout.ms": "5000",
            "group.initial.rebalance.delay.ms": "0",
            "message.max.bytes": str(MESSAGE_BYTES_MAX),
            # Retention goes by the records' own time: replayed history would be deleted at once.
            "log.retention.ms": "-1",
            "log.message.timestamp.after.max.ms": str(2**63 - 1),
            "log.segment.bytes": str(64 * 1024 * 1024),
            "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
            # One machine with few cores needs few threads.
            "num.network.threads": "2",
            "num.io.threads": "4",
            "num.recovery.threads.per.data.dir": "2",
            "background.threads": "2",
            # Else the cleaner of compacted topics takes a whole core for a second now and then, and
            # all that is on its way waits. It reads twice: this is for 8 MB/s of changes.
            "log.cleaner.io.max.bytes.per.second": str(16 * 1024 * 1024),
            **internal_topics,
            **self.options.settings,
        }

    def _listener_settings(self) -> dict[str, str]:
        clients = [Listener("PLAINTEXT", self.port, self.port), *self.listeners]
        ports = {each.name: each.port for each in clients} | {"CONTROLLER": self.controller_port}
        protocols = {each.name: each.security.protocol for each in clients}
        protocols["CONTROLLER"] = PLAINTEXT.protocol
        return {
            "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items()),
            "advertised.listeners": ",".join(
                f"{each.name}://{LOOPBACK}:{each.advertised_port}" for each in clients
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in protocols.items()
            ),
            **{
                f"listener.name.{each.name.lower()}.{name}": value
                for each in clients
                for name, value in each.security.settings.items()
            },
        }

    def _format(self) -> None:
        arguments = ["format", "-t", _cluster_id(), "-c", str(self._settings_file)]
        output = self._output.with_name("kafka-format.out")
        process = start_process(
            "Kafka storage tool",
            self._java(["kafka.tools.StorageTool", *arguments], [*QUICK_JVM]),
            stack_id=self._stack_id,
            output=output,
        )
        assert process.popen is not None, "this process started the tool"
        try:
            code = process.popen.wait(_FORMAT_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise process.failure(f"did not end within {_FORMAT_DEADLINE_S:.0f} s") from None
        if code != 0:
            raise StackError(
                f"Kafka's storage in {self._data} cannot be formatted:\n{tail(output)}"
            )

    def _java(self, arguments: list[str], options: list[str]) -> list[str]:
        return [
            java(),
            *options,
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self._log4j_file}",
            "-cp",
            kafka_class_path(),
            *arguments,
        ]

    def _answers(self) -> bool:
        # The library complains on standard error about a broker that is not there yet, so it is
        # asked only when something listens.
        if not is_listening(self.port):
            return False
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": "0"})
            return bool(client.list_topics(timeout=2.0).brokers)
        except KafkaException:
            return False


def _cluster_id() -> str:
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # The id goes into an argument, where a leading dash would be an option.
    return "A" + made[1:]
