"""What the containers of docker-compose.yml run, without containers.

Goal: each command, script and health check of the file does what it is there for.

Method: the commands are taken from docker-compose.yml and run in the checkout, which the image has
under another path. Only what differs on one machine is replaced: that path, hosts, ports and
folders. Kafka runs with the file's settings; Redis, Flink and the submission run by its commands.

Fails when: a command fails, a health check is content before its server is there or not content
after, a job does not run or is submitted twice, a feature does not get to both regions, or the
metrics that Prometheus is told to scrape are not there.

Not run here: the images' own entry points, and Prometheus.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from freshet.stack import KafkaOptions, Stack, StackOptions
from freshet.stack.flink_rest import ENDED_STATES, FlinkRest
from freshet.stack.layout import CHECKOUT, redis_server
from freshet.stack.ports import LOOPBACK, PortPicker, is_listening
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    start_process,
    stop_processes,
    tail,
)
from tests.deployment import files
from tests.deployment.files import IMAGE_ROOT, compose_of, read_files, stages_of
from tests.deployment.parts import kafka_settings, own_services
from tests.stack.waiting import wait_for

STATE = "/var/lib/freshet"
_COMMAND_DEADLINE_S = 180.0
_JOB_MANAGER_CONF = "jobmanager-conf"
_TASK_MANAGER_CONF = "taskmanager-conf"
_KEYS = ("a", "b")
_REPLAYED_MS = 600_000
"""Time of the recording that is replayed, which ends now: two or three readings of a machine."""

TABLE = """
from dataclasses import dataclass

from freshet import FeatureFunction, FeatureTable, Points, Source, TimeShare


@dataclass
class Newest(FeatureFunction):
    def compute(self, window):
        return [float(window.values[-1])]


table = FeatureTable(
    name="newest",
    source=Source(key="key", timestamp="ts", value="value"),
    window=Points(3),
    function=Newest(),
    budget=TimeShare(0.9),
    freshness_slo="2s",
    regions=("aws:eu-west-1", "aws:us-east-1"),
)
"""


OTHER_TABLE = """
name: other
source: {key: key, timestamp: ts, value: value}
window: {points: 48}
function: {name: stl, period: 24}
budget: {kind: time-share, share: 0.2}
"""


@dataclass(frozen=True)
class Local:
    """A deployment's files and commands as they are on this machine."""

    folder: Path
    kafka: int
    redis_home: int
    redis_destination: int
    rest: int
    rpc: int
    jobmanager_metrics: int
    taskmanager_metrics: int

    def text(self, text: str, metrics: int = 0) -> str:
        """A text of the containers with this machine's paths, hosts and ports.

        Args:
            text: of a file, or of a command.
            metrics: port of the Flink process that it is about.
        """
        for container, here in (
            (f"{IMAGE_ROOT}/", f"{CHECKOUT}/"),
            (STATE, str(self.folder / "state")),
            ("kafka:19092", f"{LOOPBACK}:{self.kafka}"),
            (f"{LOOPBACK}/19092", f"{LOOPBACK}/{self.kafka}"),
            ("redis-home:6379", f"{LOOPBACK}:{self.redis_home}"),
            ("redis-destination:6379", f"{LOOPBACK}:{self.redis_destination}"),
            ("jobmanager:8081", f"{LOOPBACK}:{self.rest}"),
            ("localhost:8081", f"{LOOPBACK}:{self.rest}"),
            ("localhost:9249", f"{LOOPBACK}:{metrics}"),
        ):
            text = text.replace(container, here)
        return text

    def write_flink_conf(self, name: str, metrics: int, more: Mapping[str, str]) -> Path:
        """The folder of Flink's settings for one process on this machine."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        for file in (CHECKOUT / files.FLINK_SETTINGS).parent.iterdir():
            text = self.text(file.read_text(encoding="utf-8"))
            if file.name == "config.yaml":
                for setting, value in {
                    "jobmanager.rpc.address": LOOPBACK,
                    "jobmanager.rpc.port": str(self.rpc),
                    "jobmanager.bind-host": LOOPBACK,
                    "taskmanager.bind-host": LOOPBACK,
                    "rest.address": LOOPBACK,
                    "rest.port": str(self.rest),
                    "rest.bind-address": LOOPBACK,
                    "metrics.reporter.prom.port": str(metrics),
                    **more,
                }.items():
                    pattern = rf"^{re.escape(setting)}: .*$"
                    text, count = re.subn(pattern, f"{setting}: {value}", text, flags=re.MULTILINE)
                    assert count == 1, setting
            (folder / file.name).write_text(text, encoding="utf-8")
        return folder

    def write_configs(self) -> None:
        """Freshet's configurations, and a folder of tables."""
        for path in (files.HOME, files.DESTINATION):
            text = (CHECKOUT / path).read_text(encoding="utf-8")
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.text(text), encoding="utf-8")
        tables = self.folder / "docker/tables"
        tables.mkdir()
        (tables / "newest.py").write_text(TABLE, encoding="utf-8")


class Containers:
    """The services' commands, each as its container would run it."""

    def __init__(self, local: Local, stack_id: str) -> None:
        self.local = local
        texts = read_files()
        self.compose = compose_of(texts[files.COMPOSE])
        self.image = stages_of(texts[files.DOCKERFILE])[-1].environment()
        self._stack_id = stack_id
        self._started: list[ServerProcess] = []

    def stop(self) -> None:
        """Stops what was started."""
        stop_processes(self._started, TERMINATE_DEADLINE_S)

    def environment(self, service: str, more: Mapping[str, str]) -> dict[str, str]:
        """Variables of a service of our image."""
        given = {**self.image, **self.compose["services"][service]["environment"]}
        here = {name: self.local.text(value) for name, value in given.items()}
        # The image's Java is elsewhere.
        here.pop("JAVA_HOME")
        here["PATH"] += os.pathsep + os.environ["PATH"]
        return {
            **{name: value for name, value in os.environ.items() if "FRESHET" not in name},
            **here,
            "FRESHET_CONFIG": str(self.local.folder / files.HOME),
            "FLINK_CONF_DIR": str(self.local.folder / _JOB_MANAGER_CONF),
            "TMPDIR": str(self.local.folder),
            "JVM_ARGS": "-XX:TieredStopAtLevel=1",
            **more,
        }

    def start_flink(self, service: str, conf: Path) -> Path:
        """Starts a Flink process; returns its log."""
        log = self.local.folder / f"{service}.log"
        process = start_process(
            service,
            self.compose["services"][service]["command"],
            stack_id=self._stack_id,
            output=log,
            environment=self.environment(service, {"FLINK_CONF_DIR": str(conf)}),
            directory=CHECKOUT,
        )
        self._started.append(process)
        return log

    def stop_newest(self) -> None:
        """Stops the process that was started last."""
        stop_processes([self._started.pop()], TERMINATE_DEADLINE_S)

    def start_redis(self, service: str, port: int) -> None:
        """Starts a region's Redis."""
        program, *arguments = self.compose["services"][service]["command"]
        assert program == "redis-server"
        folder = self.local.folder / service
        folder.mkdir()
        here = ["--port", str(port), "--bind", LOOPBACK, "--dir", str(folder)]
        process = start_process(
            service,
            [str(redis_server()), *arguments, *here],
            stack_id=self._stack_id,
            output=self.local.folder / f"{service}.log",
        )
        self._started.append(process)

    def is_healthy(self, service: str, port: int) -> bool:
        """Runs a service's health check."""
        kind, *command = self.compose["services"][service]["healthcheck"]["test"]
        assert kind == "CMD"
        here = [self.local.text(word, port) for word in command]
        if service.startswith("redis"):
            here = [word.replace(f"{LOOPBACK}/6379", f"{LOOPBACK}/{port}") for word in here]
        environment = dict(os.environ)
        if service in own_services(self.compose):
            environment = self.environment(service, {})
        done = subprocess.run(
            here, cwd=CHECKOUT, env=environment, capture_output=True, check=False, timeout=30
        )
        return done.returncode == 0

    def run(self, *command: str, **more: str) -> str:
        """Runs a command of our image; returns what it prints."""
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            env=self.environment("submit", more),
            capture_output=True,
            text=True,
            timeout=_COMMAND_DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def fail(self, *command: str, **more: str) -> str:
        """Runs a command of our image that fails; returns what it says."""
        with pytest.raises(AssertionError) as failed:
            self.run(*command, **more)
        return str(failed.value)

    def submission(self) -> list[str]:
        """The one-shot service's command, on the configurations and tables of this machine."""
        return [
            str(self.local.folder / word)
            if word.startswith(("docker/config/", "docker/tables"))
            else word
            for word in self.compose["services"]["submit"]["command"]
        ]

    def submit(self) -> str:
        """Runs the one-shot service."""
        return self.run(*self.submission())


def test_a_submission_without_tables_says_so(tmp_path: Path) -> None:
    service = compose_of(read_files()[files.COMPOSE])["services"]["submit"]
    command = [str(tmp_path) if word == "docker/tables" else word for word in service["command"]]
    done = subprocess.run(
        [sys.executable, *command[1:]], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"no table definition (.py, .yaml) is in {tmp_path}" in done.stderr


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    """All servers of the profile ``core``."""
    folder = tmp_path_factory.mktemp("compose")
    compose = compose_of(read_files()[files.COMPOSE])
    here = ("listener", "log.dirs", "controller.quorum.voters")
    settings = {
        name: value
        for name, value in kafka_settings(compose).items()
        if not any(word in name for word in here)
    }
    options = StackOptions(
        regions=(), kafka=KafkaOptions(short_lived=True, settings=settings), flink=None
    )
    with contextlib.ExitStack() as stopping:
        stack = stopping.enter_context(Stack(folder / "stack", options))
        ports = PortPicker()
        local = Local(folder, stack.kafka.port, *(ports.pick() for _ in range(6)))
        running = Containers(local, stack.id)
        stopping.callback(running.stop)
        local.write_configs()
        running.start_redis("redis-home", local.redis_home)
        running.start_redis("redis-destination", local.redis_destination)
        metrics = local.jobmanager_metrics
        conf = local.write_flink_conf(_JOB_MANAGER_CONF, metrics, {})
        log = running.start_flink("jobmanager", conf)
        _wait_until_healthy(running, "jobmanager", local.rest, log)
        # One process with as many slots as the deployment's TaskManagers have together.
        slots = {"taskmanager.numberOfTaskSlots": "3"}
        local.write_flink_conf(_TASK_MANAGER_CONF, local.taskmanager_metrics, slots)
        _start_task_manager(running)
        yield running


def _start_task_manager(running: Containers) -> None:
    log = running.start_flink("taskmanager", running.local.folder / _TASK_MANAGER_CONF)
    _wait_until_healthy(running, "taskmanager", running.local.taskmanager_metrics, log)


def _wait_until_healthy(running: Containers, service: str, port: int, log: Path) -> None:
    def healthy() -> bool:
        return is_listening(port) and running.is_healthy(service, port)

    try:
        wait_for(healthy, f"{service} is healthy")
    except AssertionError as error:
        error.add_note(tail(log))
        raise


@pytest.mark.integration
def test_health_checks_tell_servers_that_are_there_from_others(containers: Containers) -> None:
    local = containers.local
    nobody = PortPicker().pick()
    for service, port in (
        ("redis-home", local.redis_home),
        ("redis-destination", local.redis_destination),
        ("taskmanager", local.taskmanager_metrics),
    ):
        assert containers.is_healthy(service, port), service
        assert not containers.is_healthy(service, nobody), service
    assert containers.is_healthy("kafka", 0)
    assert containers.is_healthy("jobmanager", 0)
    # Kafka listens, and does not answer as Redis does.
    assert not containers.is_healthy("redis-home", local.rest)


@pytest.mark.integration
def test_features_get_to_both_regions_and_jobs_are_resumed(
    containers: Containers,
) -> None:
    names = ["region aws:us-east-1", "multicast newest", "freshet-newest"]
    first = containers.submit()
    assert re.findall(r"^Job (.+) is RUNNING: [0-9a-f]{32}$", first, re.MULTILINE) == names
    second = containers.submit()
    assert sorted(second.splitlines()) == sorted(f"Job {name} runs already." for name in names)

    _send_events(containers, 1.0, 2.0, 3.0)
    _wait_for_values(containers, [3.0, 3.0])

    assert "aws:us-east-1" in containers.run("freshet", "status")
    listed = containers.run("docker/flink", "list")
    for name in names:
        assert f"{name} (RUNNING)" in listed

    # What outlives the containers: the logs of submissions, and checkpoints.
    assert list((containers.local.folder / "state/home/logs").glob("submit-*.log"))
    checkpoints = containers.local.folder / "state/checkpoints"
    wait_for(lambda: len(list(checkpoints.glob("*/chk-*/_metadata"))) >= len(names), "checkpoints")

    for process, port in (
        ("jobmanager", containers.local.jobmanager_metrics),
        ("taskmanager", containers.local.taskmanager_metrics),
    ):
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics") as answer:
            assert f"flink_{process}_" in answer.read().decode()

    job = re.search(r"([0-9a-f]{32}) : freshet-newest", listed)
    assert job is not None
    arguments = ("stop", "--type", "native", job[1])
    stopped = containers.run("docker/flink", *arguments)
    path = re.search(r"Savepoint completed. Path: file:(\S+)", stopped)
    assert path is not None, stopped
    assert (Path(path[1]) / "_metadata").is_file()
    assert Path(path[1]).is_relative_to(containers.local.folder / "state/savepoints")

    # As docs/compose.md has it for an upgrade, and for reading a feature.
    table = str(containers.local.folder / "docker/tables/newest.py")
    containers.run("freshet", "submit", table, "--from-savepoint", path[1])
    third = containers.submit()
    assert sorted(third.splitlines()) == sorted(f"Job {name} runs already." for name in names)
    _send_events(containers, 4.0)
    _wait_for_values(containers, [4.0, 4.0])
    recording = ("--data", str(CHECKOUT / "examples/data/azure_vm_cpu.npz"))
    since = ("--from", str(int(time.time() * 1_000) - _REPLAYED_MS))
    assert " of 129 series " in containers.run("freshet", "replay", "newest", *recording, *since)
    wait_for(lambda: _machine(containers) != [None], "a replayed machine's feature")


@pytest.mark.integration
def test_a_job_that_would_take_no_checkpoints_is_refused(containers: Containers) -> None:
    conf = containers.local.folder / "unsafe-conf"
    shutil.copytree(containers.local.folder / _JOB_MANAGER_CONF, conf)
    settings = (conf / "config.yaml").read_text("utf-8")
    kept = re.sub("^execution.checkpointing.interval: .*$", "", settings, flags=re.MULTILINE)
    (conf / "config.yaml").write_text(kept, "utf-8")
    other = containers.local.folder / "other.yaml"
    other.write_text(OTHER_TABLE, "utf-8")
    told = containers.fail("freshet", "submit", str(other), FLINK_CONF_DIR=str(conf))
    assert "execution.checkpointing.interval is not set" in told
    assert str(conf) in told


@pytest.mark.integration
def test_jobs_that_are_there_and_do_not_run_are_told(containers: Containers) -> None:
    containers.submit()
    containers.stop_newest()
    rest = FlinkRest(f"http://{LOOPBACK}:{containers.local.rest}")
    try:
        wait_for(lambda: not any(_run(rest)), "Flink has no slots")
        told = containers.fail(*containers.submission())
        for name in ("region aws:us-east-1", "multicast newest", "freshet-newest"):
            assert f"Job {name} is there, and waits." in told
            assert f"job {name} (" in told
        assert "runs already" not in told
    finally:
        _start_task_manager(containers)
    wait_for(lambda: all(_run(rest)), "what waited runs by itself")
    assert "and waits" not in containers.submit()


def _run(rest: FlinkRest) -> list[bool]:
    return [rest.is_running(job.id) for job in rest.jobs() if job.state not in ENDED_STATES]


def _wait_for_values(containers: Containers, expected: list[float]) -> None:
    for path in (files.HOME, files.DESTINATION):
        config = str(containers.local.folder / path)
        wait_for(lambda c=config: _values(containers, c) == expected, f"features by {path}")


def _values(containers: Containers, config: str, *keys: str) -> list[Any]:
    """What the region of a configuration has of the keys."""
    command = ("freshet", "get", "newest", *(keys or _KEYS), "--json")
    told = json.loads(containers.run(*command, FRESHET_CONFIG=config))
    return [value for feature in told["features"] for value in feature["value"] or [None]]


def _machine(containers: Containers) -> list[Any]:
    return _values(containers, str(containers.local.folder / files.HOME), "m1633748")


def _send_events(containers: Containers, *values: float) -> None:
    bootstrap = f"{LOOPBACK}:{containers.local.kafka}"
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    now = int(time.time() * 1_000)
    for number, value in enumerate(values):
        for key in _KEYS:
            event = {"key": key, "ts": now + number, "value": value}
            producer.produce("events.newest", json.dumps(event), key)
    assert producer.flush(30) == 0
