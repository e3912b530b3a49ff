"""Makes savepoints of a feature, a multicast and a region job, for later builds to restore.

::

    python -m tests.releases.make_savepoints [--out tests/data/savepoints/<version>]

A generated workload of a few keys runs through the three jobs, each with two subtasks. The state
has something of every kind in it: events of a step that has not ended, computed values that a
frozen Redis at home has not acknowledged, changes that wait for company on their way, and a chunk
that the other region's frozen Redis has not taken.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from freshet import __version__
from freshet.stack import FlinkOptions, KafkaOptions, Stack, StackOptions
from freshet.stack.layout import CHECKOUT
from freshet.stack.redis import RedisServer
from tests.integration import kept
from tests.integration.job import Job
from tests.integration.polling import eventually
from tests.integration.tables import DigestModel, write_definition
from tests.integration.topics import Topics
from tests.integration.two_regions import AWAY, FEATURE, HOME, KINDS, MULTICAST, REGION, TwoRegions
from tests.integration.workload import BEGIN_MS, Shape, Step, disordered, extend, generate
from tests.reference.model import Input, Settings

PARALLELISM = 2
PARTITIONS = 2
PREFIX = f"kept-{__version__}."
NAME = "kept"
SHAPE = Shape(keys=8, steps=6)
SEED = 31


def _define(folder: Path) -> Path:
    return write_definition(
        folder,
        NAME,
        policy="'regret-proportional'",
        window="Points(4)",
        budget="EventTimeStep(updates=3.7, step='1m', initial_updates=6)",
        default_regret="0.25",
        out_of_orderness="'1m'",
        idle_timeout="None",
        regions=repr((HOME, AWAY)),
        freshness_slo="'20s'",
        parallelism=str(PARALLELISM),
    )


@contextlib.contextmanager
def _frozen(server: RedisServer) -> Iterator[None]:
    """A server that keeps its connections open and answers nothing."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def _send(job: Job, steps: list[Step]) -> None:
    inputs: list[Input] = [given for step in steps for given in step.inputs]
    rng = random.Random(steps[0].end_ms)
    job.topics.send_inputs(
        job.events_topic, job.feedback_topic, disordered(inputs, rng, lag_ms=SHAPE.step_ms)
    )
    job.topics.heartbeat(steps[-1].end_ms, job.events_topic, job.feedback_topic)


def _savepoints(stack: Stack, jobs: dict[str, str]) -> dict[str, Path]:
    """Takes savepoints of running jobs, at the same time."""
    rest = stack.flink.rest
    triggers = {
        kind: rest.post(f"/jobs/{job}/savepoints", {"cancel-job": False})["request-id"]
        for kind, job in jobs.items()
    }
    paths = {}
    for kind, job in jobs.items():

        def completed(kind: str = kind, job: str = job) -> str | None:
            answer = rest.get(f"/jobs/{job}/savepoints/{triggers[kind]}")
            if answer["status"]["id"] != "COMPLETED":
                return None
            assert "location" in answer["operation"], answer
            return str(answer["operation"]["location"])

        paths[kind] = Path(eventually(completed, f"savepoint of {kind}").removeprefix("file:"))
    return paths


def _read(topics: Topics, prefix: str, name: str) -> tuple[int, list[kept.Record]]:
    records = topics.read(prefix + name)
    for partition in {record.partition for record in records}:
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(len(offsets))), f"{name} has gaps"
    return topics.partitions(prefix + name), records


def make(out: Path, scratch: Path) -> None:
    """Runs the jobs and writes what is kept."""
    options = StackOptions(
        regions=(HOME, AWAY),
        kafka=KafkaOptions(short_lived=True),
        flink=FlinkOptions(
            task_managers=3,
            slots=2,
            checkpoint_interval_ms=1_000,
            short_lived=True,
            settings={
                "metrics.fetcher.update-interval": "1000",
                "execution.checkpointing.data-inline-threshold": "1mb",
            },
        ),
    )
    with Stack(scratch / "stack", options) as stack:
        file = _define(scratch)
        regions = TwoRegions(stack, stack.redis[AWAY].url, scratch, file, PREFIX)
        job, topics = regions.job, regions.topics
        job.create_topics(inputs=PARTITIONS, changes=PARTITIONS)
        workload = generate(
            Settings.from_definition(job.definition), PARALLELISM, DigestModel(), SHAPE, SEED
        )
        for part in range(1, 4):
            extend(workload, SEED + part)
        n = SHAPE.steps
        parts = [workload.steps[i * n : (i + 1) * n] for i in range(4)]
        # The last part is decided but for its last step, of which half has come.
        upcoming = parts[3].pop()
        regions.start(PARALLELISM)
        _send(job, parts[0])
        job.wait_until_stored(parts[0][-1].end_ms)
        regions.wait_until_equal()
        with _frozen(stack.redis[AWAY]):
            before = sum(topics.ends(regions.inbox).values())
            _send(job, parts[1])
            job.wait_until_stored(parts[1][-1].end_ms)
            eventually(
                lambda: sum(topics.ends(regions.inbox).values()) > before, "chunks wait for Redis"
            )
            _send(job, parts[2])
            job.wait_until_stored(parts[2][-1].end_ms)
            jobs = {kind: regions.jobs[kind] for kind in (MULTICAST, REGION)}
            savepoints = _savepoints(stack, jobs)
            counted = {report["subtask"]: report for report in regions.reports("REGION")}
        with _frozen(stack.redis[HOME]):
            _send(job, parts[3])
            job.topics.send_inputs(job.events_topic, job.feedback_topic, upcoming.inputs[::2])
            decided = [c for c in workload.model.choices if c.step_ms < upcoming.end_ms]
            eventually(lambda: job.metric("updates") >= len(decided), "all steps are decided")
            savepoints |= _savepoints(stack, {FEATURE: regions.jobs[FEATURE]})
            regions.cancel()
        names = [f"events.{NAME}", f"feedback.{NAME}", f"changes.{NAME}", regions.inbox]
        kept_topics = {
            name: _read(topics, PREFIX, name) for name in (n.removeprefix(PREFIX) for n in names)
        }
        facts = {
            "release": __version__,
            "build": _build(),
            "table": NAME,
            "topic_prefix": PREFIX,
            "parallelism": PARALLELISM,
            "begin_ms": BEGIN_MS,
            "step_ms": SHAPE.step_ms,
            "decided_ms": parts[3][-1].end_ms,
            "region_applied": sum(report["applied"] for report in counted.values()),
            "region_epoch": max(report["epoch"] for report in counted.values()),
        }
        kept.write(out, facts, file.read_text("utf-8"), kept_topics, savepoints)
    assert set(savepoints) == set(KINDS)


def _build() -> str:
    """The commit, which must be the whole build."""
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--abbrev=12", "--dirty"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make savepoints for later builds to restore.")
    parser.add_argument("--out", type=Path, default=kept.FOLDER / __version__)
    with tempfile.TemporaryDirectory(prefix="freshet-savepoints-") as folder:
        make(parser.parse_args().out, Path(folder))
