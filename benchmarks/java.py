"""Builds and runs the Java benchmarks, against the jar that ships."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.context import REPOSITORY, Context
from freshet.stack.layout import flink_jar, java

_MODULE = REPOSITORY / "benchmarks"
_RUN_DEADLINE_S = 1_800.0
_OPENS = (
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)

_CPU_TIME = "dev.freshet.benchmarks.WorkerCpuTime"

_WARMUPS = 2
_MEASUREMENTS = 3


def class_path() -> str:
    """Compiles the module and returns its class path.

    Raises:
        RuntimeError: Maven failed.
    """
    jar = flink_jar()
    command = [
        os.environ.get("MVN", "mvn"),
        *("-q", "-B", "-ntp", "-f", str(_MODULE / "pom.xml"), f"-Dfreshet.jar={jar}"),
        "process-classes",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Maven did not build the benchmarks:\n{done.stdout}{done.stderr}")
    target = _MODULE / "target"
    return f"{target / 'classes'}:{(target / 'class-path.txt').read_text(encoding='utf-8')}"


def run_main(
    main: str, arguments: Sequence[str], *, classes: str, flags: Sequence[str] = ()
) -> list[Any]:
    """Runs a Java program and returns the JSON values that it printed, one a line.

    Raises:
        RuntimeError: it failed.
    """
    command = [java(), *_OPENS, *flags, "-cp", classes, main, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_RUN_DEADLINE_S
    )
    if done.returncode:
        raise RuntimeError(f"{main} failed:\n{done.stdout[-2_000:]}{done.stderr[-4_000:]}")
    return [
        json.loads(line)
        for line in done.stdout.splitlines()
        if line.startswith(("{", *"0123456789"))
    ]


def run_jmh(
    context: Context,
    pattern: str,
    *,
    classes: str,
    parameters: Mapping[str, str] | None = None,
    label: str,
    seconds: float = 2.0,
    cpu_time: bool = False,
) -> dict[tuple[str, ...], float]:
    """One fork of each JMH benchmark that matches.

    Args:
        pattern: regular expression that the benchmarks' names contain.
        parameters: values of their parameters, separated by commas; else all that they have.
        label: of this run, for its files.
        seconds: of each iteration; quick runs take at most one.
        cpu_time: scores are nanoseconds of CPU time for an operation, whatever else runs.

    Returns:
        The score by the benchmark's method and the values of its parameters, in order of their
        names.
    """
    result = context.scratch / f"jmh-{label}.json"
    millis = int(1_000 * (min(seconds, 1.0) if context.quick else seconds))
    selected = (f"-p{name}={value}" for name, value in (parameters or {}).items())
    command = [
        java(),
        # JMH's lock is in there: without it, another user's stale file would stop us.
        f"-Djava.io.tmpdir={context.scratch}",
        *("-cp", classes, "org.openjdk.jmh.Main", pattern, *selected),
        *("-foe", "true", "-f", "1"),
        *("-wi", "1" if context.quick else str(_WARMUPS), "-w", f"{millis}ms"),
        *("-i", "1" if context.quick else str(_MEASUREMENTS), "-r", f"{millis}ms"),
        *(("-prof", _CPU_TIME) if cpu_time else ()),
        *("-rf", "json", "-rff", str(result)),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_RUN_DEADLINE_S,
        cwd=context.scratch,
    )
    if done.returncode or not result.exists():
        raise RuntimeError(f"JMH failed:\n{done.stdout[-4_000:]}{done.stderr[-2_000:]}")
    return _scores(result, cpu_time)


def _scores(result: Path, cpu_time: bool) -> dict[tuple[str, ...], float]:
    scores = {}
    for run in json.loads(result.read_text(encoding="utf-8")):
        method = run["benchmark"].rsplit(".", 1)[1]
        values = [value for _, value in sorted(run.get("params", {}).items())]
        metric = run["secondaryMetrics"]["cpu"] if cpu_time else run["primaryMetric"]
        scores[(method, *values)] = float(metric["score"])
    return scores
