"""A feature job of a test: submitted to the session's cluster, watched, cancelled at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from freshet import avro
from freshet.config import Config
from freshet.stack.stack import Stack
from freshet.submission import submit_table
from freshet.table import FeatureTable, load_table
from tests.integration.polling import eventually
from tests.integration.store import Store
from tests.integration.topics import Follower, Topics
from tests.reference.model import Version


class Change(NamedTuple):
    """A change event, with where it lies."""

    partition: int
    offset: int
    key: str
    version: Version
    event_time_ms: int
    computed_at_ms: int
    encoding: str
    payload: bytes
    regret_removed: float
    operation: str
    table: str


class Job:
    """One table and its job."""

    def __init__(self, stack: Stack, file: Path, config: Config | None = None) -> None:
        self.stack = stack
        self.file = file
        self.config = config or stack.config
        self.table: FeatureTable = load_table(file)
        self.definition = self.table.to_dict(self.config.topic_prefix)
        self.topics = Topics(self.config.kafka_bootstrap)
        self.store = Store(self.config.home_redis, self.table.name)
        self.parallelism = self.table.parallelism
        self.id: str | None = None

    @property
    def events_topic(self) -> str:
        """Where producers write."""
        return str(self.definition["source"]["topic"])

    @property
    def feedback_topic(self) -> str:
        """Where models write."""
        return str(self.definition["feedback_topic"])

    @property
    def changes_topic(self) -> str:
        """Where each acknowledged write is told."""
        return str(self.definition["changes_topic"])

    def create_topics(self, inputs: int = 2, changes: int = 1) -> None:
        """Creates the table's topics; changes keep every record, where a job would compact them."""
        self.topics.create(
            {self.events_topic: inputs, self.feedback_topic: inputs, self.changes_topic: changes}
        )

    def start(self, savepoint: str | None = None) -> None:
        """Submits the job, once an earlier one has left its slots, and waits until it runs."""
        eventually(self._slots_are_free, f"{self.parallelism} free slots")
        submission = submit_table(self.file, self.config, stack=self.stack, savepoint=savepoint)
        self.id = submission.job.id
        assert submission.job.parallelism == self.parallelism

    def cancel(self) -> None:
        """Ends the job and waits until its slots are free."""
        if self.id is None:
            return
        job, self.id = self.id, None
        with contextlib.suppress(Exception):  # it may have ended
            self.stack.flink.rest.cancel(job)
        eventually(
            lambda: (
                self.stack.flink.rest.job(job).state in ("CANCELED", "FAILED", "FINISHED")
                and self._slots_are_free()
            ),
            f"job {job} ends",
        )

    def stop_with_savepoint(self) -> str:
        """Stops the job without draining it; returns the savepoint's path."""
        job, self.id = self.id, None
        trigger = self.stack.flink.rest.post(f"/jobs/{job}/stop", {"drain": False})["request-id"]

        def completed() -> Any:
            answer = self.stack.flink.rest.get(f"/jobs/{job}/savepoints/{trigger}")
            return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

        operation = eventually(completed, f"savepoint of job {job}")
        assert "location" in operation, operation
        eventually(
            lambda: (
                self.stack.flink.rest.job(job or "").state == "FINISHED" and self._slots_are_free()
            ),
            f"job {job} stops",
        )
        return str(operation["location"])

    # What it does.

    @property
    def restarts(self) -> int:
        """How often it was restarted after a failure."""
        assert self.id is not None
        return self.stack.flink.rest.job(self.id).restarts

    def is_running(self) -> bool:
        """Whether every subtask runs."""
        assert self.id is not None
        return self.stack.flink.rest.is_running(self.id)

    def checkpoints(self) -> int:
        """Completed checkpoints."""
        counts = self.stack.flink.rest.get(f"/jobs/{self.id}/checkpoints")["counts"]
        return int(counts["completed"])

    def metric(self, name: str) -> float:
        """A metric of ours, summed over operators and subtasks, as Flink's REST API tells it."""
        # Flink writes an underscore for a dot inside a name.
        wanted = f".freshet.table.{self.table.name.replace('.', '_')}.{name}"
        total = 0.0
        for vertex in self.stack.flink.rest.get(f"/jobs/{self.id}")["vertices"]:
            path = f"/jobs/{self.id}/vertices/{vertex['id']}/subtasks/metrics"
            for metric in self.stack.flink.rest.get(path):
                if metric["id"].endswith(wanted):
                    got = self.stack.flink.rest.get(f"{path}?get={metric['id']}&agg=sum")
                    total += got[0]["sum"]
        return total

    def wait_until_stored(self, time_ms: int, deadline_s: float = 90.0) -> None:
        """Waits until everything that was chosen up to this event time is in the store."""
        reported: dict[int, int] = {}

        with self.topics.follow(self.definition["progress_topic"]) as progress:

            def passed() -> bool:
                reported.update(self._new_watermarks(progress))
                subtasks = [reported.get(i, -1) for i in range(self.parallelism)]
                assert min(subtasks) >= time_ms, f"watermarks {subtasks}, wanted {time_ms}"
                return True

            eventually(passed, f"progress of {self.table.name} up to {time_ms}", deadline_s)

    def _new_watermarks(self, progress: Follower) -> dict[int, int]:
        found = {}
        for record in progress.new():
            if record.value is not None:
                schema, values = avro.decode(record.value)
                if schema == "Progress" and values["table"] == self.table.name:
                    found[values["subtask"]] = values["watermark"]
        return found

    def changes(self) -> list[Change]:
        """Every change event, by partition and offset."""
        found = []
        for record in self.topics.read(self.changes_topic):
            assert record.value is not None
            fields = avro.decode_as("FeatureChange", record.value)
            assert record.key == fields["key"].encode(), "the topic is keyed by entity"
            found.append(_change(record.partition, record.offset, fields))
        return found

    def dead_letters(self) -> list[dict[str, Any]]:
        """Every dead letter."""
        return self.topics.read_as("DeadLetter", self.definition["dead_letters_topic"])

    def _slots_are_free(self) -> bool:
        overview = self.stack.flink.rest.overview()
        return bool(overview["slots-available"] >= self.parallelism)


@contextlib.contextmanager
def running(job: Job, savepoint: str | None = None) -> Iterator[Job]:
    """The job while it runs; it is cancelled at the end, whatever happened meanwhile."""
    try:
        job.start(savepoint)
        yield job
    finally:
        job.cancel()


def _change(partition: int, offset: int, fields: dict[str, Any]) -> Change:
    return Change(
        partition=partition,
        offset=offset,
        key=fields["key"],
        version=Version(fields["version_timestamp"], fields["version_origin"]),
        event_time_ms=fields["event_time"],
        computed_at_ms=fields["computed_at"],
        encoding=fields["encoding"],
        payload=fields["value"],
        regret_removed=fields["regret_removed"],
        operation=fields["operation"],
        table=fields["table"],
    )
