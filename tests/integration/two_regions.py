"""One table in two regions that share a broker and a Flink: feature, multicast and region job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from freshet import avro
from freshet.config import DEFAULT_HOME_REGION, Config
from freshet.stack.stack import Stack
from freshet.submission import submit_multicast, submit_region
from tests.integration.job import Job
from tests.integration.polling import eventually
from tests.integration.store import Store, Stored

HOME, AWAY = DEFAULT_HOME_REGION, "local:away"
FEATURE, MULTICAST, REGION = "feature", "multicast", "region"
KINDS = (REGION, MULTICAST, FEATURE)
"""Of jobs, in the order in which they start."""

INBOX_PARTITIONS = 2


def write_profiles(folder: Path) -> Path:
    """The planner's view of two regions with one fast way each."""
    folder.mkdir()
    pairs = ((HOME, AWAY), (AWAY, HOME))
    (folder / "cost.csv").write_text(
        "\n".join(["src,dest,cost", *(f"{u},{v},0.1" for u, v in pairs)])
    )
    (folder / "throughput.csv").write_text(
        "\n".join(["src_region,dst_region,throughput_sent", *(f"{u},{v},1e8" for u, v in pairs)])
    )
    (folder / "limits.json").write_text('{"default": {"max_vms": 1}}')
    return folder


class TwoRegions:
    """The jobs of a table, and what each region has of it."""

    def __init__(
        self, stack: Stack, away_redis: str, folder: Path, file: Path, topic_prefix: str
    ) -> None:
        """Describes them; :meth:`start` starts them.

        Args:
            stack: with home's Redis.
            away_redis: URL of the other region's.
            folder: for the planner's profiles.
            file: definition of the table.
            topic_prefix: tells these topics from those of other tests.
        """
        broker = {"kafka_bootstrap": stack.config.kafka_bootstrap}
        shared = {
            **broker,
            "home_region": HOME,
            "regions": {HOME: broker, AWAY: {**broker, "inbox_partitions": INBOX_PARTITIONS}},
            "profiles": str(write_profiles(folder / "profiles")),
            "flink_rest": stack.config.flink_rest,
            "topic_prefix": topic_prefix,
        }
        self.home = Config.from_dict(
            {**shared, "redis": {HOME: stack.config.home_redis}, "region": HOME}
        )
        self.away = Config.from_dict({**shared, "redis": {AWAY: away_redis}, "region": AWAY})
        self.stack = stack
        self.file = file
        self.job = Job(stack, file, self.home)
        self.topics = self.job.topics
        self.store_away = Store(away_redis, self.job.table.name)
        self.jobs: dict[str, str] = {}
        """Ids of the jobs that run."""

    @property
    def inbox(self) -> str:
        """Topic of what is sent to the other region."""
        return f"{self.home.topic_prefix}inbox.{AWAY.replace(':', '.')}"

    def start(self, parallelism: int, savepoints: Mapping[str, str] | None = None) -> None:
        """Submits the jobs, each from its savepoint if there is one."""
        given = savepoints or {}
        for kind, submit, config in (
            (REGION, submit_region, self.away),
            (MULTICAST, submit_multicast, self.home),
        ):
            submitted = submit(
                [self.file],
                config,
                stack=self.stack,
                parallelism=parallelism,
                savepoint=given.get(kind),
            )
            self.jobs[kind] = submitted.job.id
        assert self.job.parallelism == parallelism
        self.job.start(given.get(FEATURE))
        self.jobs[FEATURE] = self.job.id or ""

    def cancel(self) -> None:
        """Ends the jobs that still run."""
        rest = self.stack.flink.rest
        jobs, self.jobs, self.job.id = self.jobs, {}, None
        for job in jobs.values():
            rest.cancel(job)
        for job in jobs.values():
            eventually(lambda j=job: rest.job(j).state == "CANCELED", f"job {job} ends")  # type: ignore[misc]

    def values(self) -> tuple[dict[str, Stored], dict[str, Stored]]:
        """What the two regions have."""
        home, away = self.job.store, self.store_away
        return home.get_many(home.keys() or ["-"]), away.get_many(away.keys() or ["-"])

    def wait_until_equal(self) -> None:
        """Waits until the other region has what home has."""

        def is_equal() -> bool:
            home, away = self.values()
            wrong = [key for key in home if away.get(key) != home[key]]
            assert not wrong, f"{len(wrong)} of {len(home)} keys, such as {wrong[:3]}"
            return home.keys() == away.keys()

        eventually(is_equal, f"{AWAY} has what {HOME} has")

    def reports(self, reporter: str) -> Iterator[dict[str, Any]]:
        """The reports of one kind of job, oldest first: ``REGION`` or ``MULTICAST``."""
        for record in self.topics.read(self.job.definition["progress_topic"]):
            name, report = avro.decode(record.value or b"")
            if name == "RegionReport" and report["reporter"] == reporter:
                yield report
