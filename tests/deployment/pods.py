"""The pods of a FlinkDeployment as processes: what Kubernetes and Flink's operator make of one.

Commands, variables, mounted files and Flink's settings are the manifests'. A path of the image is
the checkout's; any other that a container knows is in a folder of the test. In place of Flink's
Kubernetes part, which needs a cluster, its standalone part runs the job's main class in the same
way, and the TaskManager is started by hand.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from freshet.errors import StackError
from freshet.stack.flink_rest import FlinkRest
from freshet.stack.layout import CHECKOUT, QUICK_JVM
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    start_process,
    stop_processes,
    tail,
)
from tests.deployment.chart import Manifests, containers_of
from tests.deployment.files import DOCKERFILE, IMAGE_ROOT, stages_of
from tests.integration.polling import eventually

_OF_A_CLUSTER = ("kubernetes.", "high-availability.")
_COMMAND_DEADLINE_S = 120.0
_DEADLINE_S = 150.0
"""Flink's processes and Python begin from nothing, on a machine that other tests keep busy."""

_TAIL_LINES = 60

T = TypeVar("T")


class Pods:
    """The JobManager's pod and the TaskManager's of one job, with all that is mounted in them."""

    def __init__(
        self,
        manifests: Manifests,
        name: str,
        folder: Path,
        stack_id: str,
        secrets: Mapping[tuple[str, str], str],
    ) -> None:
        """Makes the folders; :meth:`prepare` and :meth:`start` start processes.

        Args:
            manifests: of a release.
            name: of a FlinkDeployment.
            folder: for everything; made.
            stack_id: of the stack that the processes end with, at the latest.
            secrets: contents of the cluster's Secrets, by name and key.
        """
        self.job_id = uuid.uuid4().hex
        self.output = folder / "output"
        """What the containers print, which is all that a cluster keeps of them."""

        ports = PortPicker()
        self._ports = {each: ports.pick() for each in ("rest", "rpc", "jobmanager", "taskmanager")}
        self.rest = FlinkRest(f"http://{LOOPBACK}:{self._ports['rest']}")
        self._manifests, self._name, self._job = manifests, name, manifests.jobs[name]
        self._settings = self._job["flinkConfiguration"]
        self._main, self._before = containers_of(self._job)
        self._folder, self._stack_id, self._secrets = folder, stack_id, secrets
        dockerfile = (CHECKOUT / DOCKERFILE).read_text(encoding="utf-8")
        self._image = stages_of(dockerfile)[-1].environment()
        self._mounts = {each["name"]: each["mountPath"] for each in self._main["volumeMounts"]}
        self._conf = self._settings["kubernetes.flink.conf.dir"]
        self._places = {IMAGE_ROOT: str(CHECKOUT)} | {
            path: f"{folder}/root{path}" for path in (*self._mounts.values(), self._conf)
        }
        self._tmp = folder / "tmp"
        self._started: list[ServerProcess] = []
        for made in (self.output, self._tmp):
            made.mkdir(parents=True)
        self._mount()
        self._configure_flink()

    def text(self, text: str) -> str:
        """A text of the containers with this machine's paths."""
        names = sorted(self._places, key=len, reverse=True)
        pattern = "|".join(map(re.escape, names))
        return re.sub(pattern, lambda match: self._places[match[0]], text)

    def path(self, path: str) -> Path:
        """Where a path of the containers is on this machine."""
        return Path(self.text(path))

    def prepare(self) -> str:
        """Runs the container that comes before the JobManager; returns what it prints."""
        return self.run(self._before, self._before["command"])

    def run(self, container: Mapping[str, Any], command: Sequence[str]) -> str:
        """Runs a container's command to its end; returns what it prints."""
        done = subprocess.run(
            [self.text(word) for word in command],
            cwd=CHECKOUT,
            env=self._environment(container),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COMMAND_DEADLINE_S,
            check=False,
        )
        (self.output / f"{container['name']}.log").write_text(done.stdout, encoding="utf-8")
        assert done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def start(self) -> None:
        """Starts the JobManager, which starts the job, and the TaskManager; waits for neither."""
        job = self._job["job"]
        arguments = [self.text(word) for word in job["args"]]
        # The operator gives each start an id, with which Flink lets the script have one job only.
        entry = ["--job-id", self.job_id, "--job-classname", job["entryClass"]]
        self._start("jobmanager", "standalone-job.sh", *entry, *arguments)
        # Kubernetes gives each pod an address; here they share one.
        metrics = f"metrics.reporter.prom.port={self._ports['taskmanager']}"
        self._start("taskmanager", "taskmanager.sh", "-D", metrics)

    def stop(self) -> None:
        """Stops what was started."""
        stop_processes(self._started, TERMINATE_DEADLINE_S)

    def wait(self, probe: Callable[[], T], what: str) -> T:
        """Polls until the probe gives something true; fails at once when a container has ended."""

        def checked() -> T | None:
            for process in self._started:
                if not process.is_alive():
                    raise process.failure("ended")
            # Nothing listens yet, or Flink does not know the job yet.
            with contextlib.suppress(StackError):
                return probe()
            return None

        try:
            found = eventually(checked, what, _DEADLINE_S)
        except BaseException as error:
            for process in self._started:
                error.add_note(f"{process.name}:\n{tail(process.log, _TAIL_LINES)}")
            raise
        assert found is not None
        return found

    def _start(self, name: str, script: str, *arguments: str) -> None:
        """Starts a container of Flink's, with the command that Flink's Kubernetes part gives it."""
        entry = self.text(self._settings["kubernetes.entry.path"])
        command = shlex.join([script, "start-foreground", *arguments])
        process = start_process(
            name,
            [entry, "bash", "-c", command],
            stack_id=self._stack_id,
            output=self.output / f"{name}.log",
            environment=self._environment(self._main),
            directory=CHECKOUT,
        )
        self._started.append(process)

    def _environment(self, container: Mapping[str, Any]) -> dict[str, str]:
        given = dict(self._image)
        for each in container["env"]:
            given[each["name"]] = each["value"] if "value" in each else self._secret_of(each)
        here = {name: self.text(value) for name, value in given.items()}
        # The image's Java is elsewhere.
        here.pop("JAVA_HOME")
        here["PATH"] += os.pathsep + os.environ["PATH"]
        return {
            **{name: value for name, value in os.environ.items() if "FRESHET" not in name},
            **here,
            "FRESHET_HOME": str(self._folder / "home"),
            "TMPDIR": str(self._tmp),
            # PyFlink leaves files of the job's script where Java's temporary ones are.
            "JVM_ARGS": " ".join([*QUICK_JVM, f"-Djava.io.tmpdir={self._tmp}"]),
        }

    def _secret_of(self, variable: Mapping[str, Any]) -> str:
        reference = variable["valueFrom"]["secretKeyRef"]
        return self._secrets[reference["name"], reference["key"]]

    def _mount(self) -> None:
        for volume in self._job["podTemplate"]["spec"]["volumes"]:
            folder = self.path(self._mounts[volume["name"]])
            folder.mkdir(parents=True)
            for name, content in self._files_of(volume):
                file = folder / name
                file.parent.mkdir(exist_ok=True)
                file.write_text(content, encoding="utf-8")

    def _files_of(self, volume: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Paths and contents of what a volume has from the beginning."""
        if "secret" in volume:
            for item in volume["secret"]["items"]:
                yield item["path"], self._secrets[volume["secret"]["secretName"], item["key"]]
        for source in volume.get("projected", {}).get("sources", ()):
            (data,) = (
                each["data"]
                for each in self._manifests.of("ConfigMap")
                if each["metadata"]["name"] == source["configMap"]["name"]
            )
            everything = [{"key": key, "path": key} for key in data]
            for item in source["configMap"].get("items", everything):
                yield item["path"], self.text(data[item["key"]])

    def _configure_flink(self) -> None:
        """Writes the folder of settings that Flink's Kubernetes part mounts in both pods."""
        folder = self.path(self._conf)
        folder.mkdir(parents=True)
        settings = yaml.safe_dump(self._flink_settings(), width=10_000)
        (folder / "config.yaml").write_text(settings, encoding="utf-8")
        for name, content in self._job["logConfiguration"].items():
            (folder / name).write_text(content, encoding="utf-8")

    def _flink_settings(self) -> dict[str, str]:
        settings = {
            name: self.text(value)
            for name, value in self._settings.items()
            if not name.startswith(_OF_A_CLUSTER)
        }
        # The operator adds these; the last one must not become the job's name.
        by_operator = {
            "execution.shutdown-on-application-finish": "false",
            "parallelism.default": str(self._job["job"]["parallelism"]),
            "pipeline.jars": self.text(self._job["job"]["jarURI"]),
            **{
                f"{part.lower()}.memory.process.size": self._job[part]["resource"]["memory"]
                for part in ("jobManager", "taskManager")
            },
            "pipeline.name": self._name,
        }
        by_machine = {
            "jobmanager.rpc.address": LOOPBACK,
            "jobmanager.rpc.port": str(self._ports["rpc"]),
            "jobmanager.bind-host": LOOPBACK,
            "taskmanager.bind-host": LOOPBACK,
            "rest.address": LOOPBACK,
            "rest.port": str(self._ports["rest"]),
            "rest.bind-address": LOOPBACK,
            "metrics.reporter.prom.port": str(self._ports["jobmanager"]),
            "io.tmp.dirs": str(self._tmp),
            # A TaskManager that is up before the JobManager would wait 10 s for its next try.
            "cluster.registration.error-delay": "300 ms",
            "cluster.registration.refused-registration-delay": "300 ms",
            # How old a job's state may be that the REST API tells; otherwise 3 s.
            "web.refresh-interval": "300 ms",
        }
        return settings | by_operator | by_machine
