"""A deployment over several regions on the emulated WAN: servers, configurations and one Flink.

Home, three destinations and a waypoint, which is by far the cheapest way to all of them. Links to
one destination have a tenth of the others' bandwidth, the clocks of two are five minutes off, and
one's broker is reached by TLS and with a login.
All jobs run on one Flink cluster, each with a TaskManager to itself: what makes them another
region's is their configuration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from freshet import avro
from freshet.config import Config
from freshet.stack import FlinkOptions, Stack, StackOptions
from freshet.stack.together import run_together
from freshet.submission import (
    PreparedJob,
    prepare_multicast,
    prepare_region,
    submit_together,
)
from freshet.table import load_table
from freshet.wan.regions import Regions, RegionsOptions
from freshet.wan.scenario import Scenario, scenario_from_mapping
from tests.integration.polling import eventually
from tests.integration.secured import Secured, secured
from tests.integration.topics import Follower, Topics

HOME, NEAR, FAR, SLOW, WAY = "local:home", "local:near", "local:far", "local:slow", "local:way"
DESTINATIONS = (NEAR, FAR, SLOW)
AWAY = (*DESTINATIONS, WAY)
MBPS = 1e6

_LINKS = {
    (HOME, NEAR): 15,
    (HOME, FAR): 20,
    (HOME, SLOW): 20,
    (HOME, WAY): 10,
    (WAY, NEAR): 10,
    (WAY, FAR): 15,
    (WAY, SLOW): 15,
}
"""One-way delays, ms. Beside these there is each region's way to home, for its reports."""

_USD_PER_GB = {(HOME, WAY): 0.01, **{(WAY, region): 0.02 for region in DESTINATIONS}}
_OTHER_USD_PER_GB = 0.12
_BANDWIDTH_BPS = 100 * MBPS
_SLOW_BANDWIDTH_BPS = _BANDWIDTH_BPS / 10

CLOCK_AHEAD_MS = {FAR: 300_000, SLOW: -300_000}
"""What these regions' clocks are ahead of the others'."""

FLINK = FlinkOptions(
    task_managers=5,
    # Each job starts alone on a TaskManager; the other slots are for those that have lost theirs.
    slots=5,
    checkpoint_interval_ms=1_000,
    short_lived=True,
    prometheus=True,
    # Flink's REST API tells metrics that are at most so old; the default is 10 s.
    settings={"metrics.fetcher.update-interval": "1000"},
)


def _bandwidth_bps(source: str, target: str) -> float:
    return _SLOW_BANDWIDTH_BPS if SLOW in (source, target) else _BANDWIDTH_BPS


def scenario() -> Scenario:
    """The regions and their links."""
    delays = {**_LINKS, **{(region, HOME): 15 for region in AWAY}}
    return scenario_from_mapping(
        {
            "regions": [
                {"name": HOME, "role": "home"},
                *({"name": region} for region in DESTINATIONS),
                {"name": WAY, "role": "waypoint"},
            ],
            "links": [
                {"source": u, "target": v, "bandwidth_bps": _bandwidth_bps(u, v), "delay_ms": delay}
                for (u, v), delay in delays.items()
            ],
        }
    )


def write_profiles(folder: Path) -> Path:
    """The planner's view of the same network."""
    folder.mkdir()
    regions = (HOME, *AWAY)
    pairs = [(u, v) for u in regions for v in regions if u != v]
    prices = [f"{u},{v},{_USD_PER_GB.get((u, v), _OTHER_USD_PER_GB)}" for u, v in pairs]
    speeds = [f"{u},{v},{_bandwidth_bps(u, v) if (u, v) in _LINKS else 0}" for u, v in pairs]
    (folder / "cost.csv").write_text("\n".join(["src,dest,cost", *prices]))
    (folder / "throughput.csv").write_text(
        "\n".join(["src_region,dst_region,throughput_sent", *speeds])
    )
    (folder / "limits.json").write_text('{"default": {"max_vms": 1}}')
    return folder


class WideArea:
    """The running deployment."""

    def __init__(
        self,
        folder: Path,
        regions: Regions,
        flink: Stack,
        far: Secured,
        running: contextlib.ExitStack,
    ) -> None:
        self.folder = folder
        self.regions = regions
        self.flink = flink
        self.far_properties = far.client_properties
        self._far_references = far.references
        """Kafka properties of those who reach the far region's broker through a link."""

        self.profiles = write_profiles(folder / "profiles")
        self.topics = Topics(regions[HOME].bootstrap)
        self.jobs: dict[str, str] = {}
        """Ids of the jobs that run: the multicast job's under home's name."""

        self._files: tuple[Path, ...] = ()
        self._running = running
        self._progress: Follower | None = None
        self._reports: list[dict[str, Any]] = []

    def config(self, region: str) -> Config:
        """A region's configuration: its own servers, and the links that it has."""
        roles = {r.name: "destination" if r.keeps_features else "waypoint" for r in self._all}
        others = {
            link.target: {
                "kafka_bootstrap": self.regions.addresses(region, link.target).bootstrap,
                "role": roles[link.target],
                "inbox_partitions": 2,
                "kafka_properties": self._far_references if link.target == FAR else {},
            }
            for link in self.regions.scenario.links
            if link.source == region
        }
        own: dict[str, Any] = {} if region == HOME else {region: {"role": roles[region]}}
        if own:
            own[region]["inbox_partitions"] = 2
        keeps = roles[region] == "destination"
        return Config.from_dict(
            {
                "kafka_bootstrap": self.regions[region].bootstrap,
                "redis": {region: self.regions[region].redis.url} if keeps else {},
                "home_region": HOME,
                "region": region,
                "regions": others | own,
                "profiles": str(self.profiles),
                "flink_rest": self.flink.flink.rest.url,
            }
        )

    @property
    def _all(self) -> tuple[Any, ...]:
        return self.regions.scenario.regions

    # Jobs.

    def submit(self, *files: Path, parallelism: int = 1) -> None:
        """Submits the multicast job and all region jobs, by one client.

        Args:
            files: definitions of the tables.
            parallelism: of the multicast job and of the destinations' jobs.
        """
        self._files = files
        subtasks = dict.fromkeys((HOME, *DESTINATIONS), parallelism)
        prepared: dict[str, PreparedJob] = {}
        run_together([self._prepare(prepared, region, subtasks) for region in (HOME, *AWAY)])
        jobs = submit_together([prepared[region] for region in (HOME, *AWAY)], stack=self.flink)
        self.jobs = {region: each.job.id for region, each in zip((HOME, *AWAY), jobs, strict=True)}

    def resume(self, savepoints: Mapping[str, str], parallelism: int) -> None:
        """Submits stopped jobs again, each by a client of its own.

        Args:
            savepoints: by region; home's is the multicast job's.
            parallelism: of each.
        """
        subtasks = dict.fromkeys(savepoints, parallelism)
        while self.flink.flink.rest.overview()["slots-available"] < sum(subtasks.values()):
            self.flink.flink.start_task_manager()

        def submit(region: str) -> Callable[[], None]:
            def submit_one() -> None:
                prepared: dict[str, PreparedJob] = {}
                self._prepare(prepared, region, subtasks, savepoints[region])()
                (submitted,) = submit_together([prepared[region]], stack=self.flink)
                self.jobs[region] = submitted.job.id

            return submit_one

        run_together([submit(region) for region in savepoints])

    def _prepare(
        self,
        prepared: dict[str, PreparedJob],
        region: str,
        subtasks: Mapping[str, int],
        savepoint: str | None = None,
    ) -> Callable[[], None]:
        config, parallelism = self.config(region), subtasks.get(region, 1)

        def home() -> None:
            prepared[HOME] = prepare_multicast(
                self._files, config, stack=self.flink, parallelism=parallelism, savepoint=savepoint
            )

        def away() -> None:
            prepared[region] = prepare_region(
                [f for f in self._files if region == WAY or region in load_table(f).regions],
                config,
                stack=self.flink,
                parallelism=parallelism,
                savepoint=savepoint,
                clock_ahead_ms=CLOCK_AHEAD_MS.get(region, 0),
            )

        return home if region == HOME else away

    def stop(self, regions: Iterable[str]) -> dict[str, str]:
        """Stops jobs with a savepoint each; gives the savepoints' paths, by region."""
        rest, jobs = self.flink.flink.rest, {region: self.jobs.pop(region) for region in regions}
        triggers = {
            region: rest.post(f"/jobs/{job}/stop", {"drain": False})["request-id"]
            for region, job in jobs.items()
        }

        def operation(region: str) -> Any:
            answer = rest.get(f"/jobs/{jobs[region]}/savepoints/{triggers[region]}")
            return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

        savepoints = {}
        for region, job in jobs.items():
            done = eventually(lambda r=region: operation(r), f"savepoint of {region}'s job")  # type: ignore[misc]
            assert "location" in done, done
            savepoints[region] = str(done["location"])
            eventually(lambda j=job: rest.job(j).state == "FINISHED", f"job of {region} stops")  # type: ignore[misc]
        return savepoints

    def restarts(self) -> dict[str, int]:
        """How often each job was restarted after a failure."""
        rest = self.flink.flink.rest
        return {region: rest.job(job).restarts for region, job in self.jobs.items()}

    def restored(self, region: str) -> dict[str, Any]:
        """What a job was last restored from, as Flink tells it; empty if it was not."""
        checkpoints = self.flink.flink.rest.get(f"/jobs/{self.jobs[region]}/checkpoints")
        return dict(checkpoints["latest"]["restored"] or {})

    def completed(self, region: str) -> int:
        """Id of a job's newest checkpoint; 0 if it has none."""
        checkpoints = self.flink.flink.rest.get(f"/jobs/{self.jobs[region]}/checkpoints")
        return int((checkpoints["latest"]["completed"] or {"id": 0})["id"])

    def task_managers_of(self, region: str) -> set[str]:
        """Ids of the TaskManagers that a region's job has slots of."""
        return {
            name
            for name in self.flink.flink.task_managers
            if self.jobs[region] in self._jobs_on(name)
        }

    def _jobs_on(self, task_manager: str) -> set[str]:
        details = self.flink.flink.rest.get(f"/taskmanagers/{task_manager}")
        return {slot["jobId"] for slot in details["allocatedSlots"]}

    def task_managers_in_use(self) -> set[str]:
        """Ids of the TaskManagers that have jobs."""
        return {name for name in self.flink.flink.task_managers if self._jobs_on(name)}

    def kill_alone(self, region: str) -> None:
        """Kills the TaskManager of one region's job, which no other job is on."""
        (name,) = self.task_managers_of(region)
        assert self._jobs_on(name) == {self.jobs[region]}, "the job is alone there"
        self.kill_task_manager(name)

    def kill_task_manager(self, name: str) -> None:
        """Kills a TaskManager; a spare one is started first, so that its jobs have where to go."""
        flink = self.flink.flink
        flink.start_task_manager()
        process = flink.task_managers[name]
        assert process.is_alive()
        flink.kill_task_manager(name)
        assert not process.is_alive(), f"{name} survived"

    def kill_everywhere(self) -> None:
        """Kills every TaskManager with jobs; a spare one is started first, with room for all."""
        flink = self.flink.flink
        spare = flink.start_task_manager()
        killed = {n: process for n, process in flink.task_managers.items() if n != spare}
        assert self.task_managers_in_use() <= killed.keys()
        for name in killed:
            flink.kill_task_manager(name)
        assert not any(process.is_alive() for process in killed.values())

    # What it does.

    def reports(self) -> list[dict[str, Any]]:
        """Every report that was made so far, oldest first."""
        if self._progress is None:
            self._progress = self._running.enter_context(self.topics.follow("progress"))
        for record in self._progress.to_the_end():
            name, report = avro.decode(record.value or b"")
            if name == "RegionReport":
                self._reports.append(report)
        return self._reports


@contextlib.contextmanager
def wide_area(folder: Path, flink: FlinkOptions = FLINK) -> Iterator[WideArea]:
    """The deployment while it runs: brokers, Redis servers, links, and a Flink."""
    options = StackOptions(regions=(), kafka=None, flink=flink)
    stack = Stack(folder / "flink", options)
    areas: list[WideArea] = []
    with contextlib.ExitStack() as running:

        def start_regions() -> None:
            far = secured(folder / "secured")
            regions = Regions(
                folder / "regions", scenario(), RegionsOptions(security={FAR: far.broker})
            )
            running.enter_context(regions)
            areas.append(WideArea(folder, regions, stack, far, running))

        run_together([start_regions, lambda: running.enter_context(stack) and None])
        yield areas[0]
