"""Regions on the emulated WAN with one Flink for all their jobs, and what their traffic costs.

Tokyo is home; São Paulo, Mumbai and Sydney serve the tables. What leaves any of the four is dear,
so Oregon, from where it is cheap, is there to pass chunks on.
"""

from __future__ import annotations

import contextlib
import csv
import json
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.context import Context
from benchmarks.multicast_jobs import PROFILES
from benchmarks.progress import Reports, reports
from freshet.config import Config
from freshet.stack import FlinkOptions, Stack, StackOptions
from freshet.stack.together import run_together
from freshet.submission import (
    PreparedJob,
    prepare_multicast,
    prepare_region,
    submit_multicast,
    submit_together,
)
from freshet.table import load_table
from freshet.topics import create_missing_topics, topics_of_multicast, topics_of_region
from freshet.wan.client import LinkState
from freshet.wan.regions import Regions
from freshet.wan.scenario import Link, Region, Role, Scenario

HOME = "aws:ap-northeast-1"
WAYPOINT = "aws:us-west-2"
DESTINATIONS = ("aws:sa-east-1", "aws:ap-south-1", "aws:ap-southeast-2")

BANDWIDTH_BPS = 100e6
"""Of each link and direction: one machine cannot pass the gigabits that the profiles tell."""

UNLIMITED_BPS = 1e9
"""What the planner is told of a link without limit."""

_DELAYS_MS = {
    (HOME, WAYPOINT): 49,
    (HOME, "aws:sa-east-1"): 128,
    (HOME, "aws:ap-south-1"): 62,
    (HOME, "aws:ap-southeast-2"): 53,
    (WAYPOINT, "aws:sa-east-1"): 88,
    (WAYPOINT, "aws:ap-south-1"): 109,
    (WAYPOINT, "aws:ap-southeast-2"): 70,
}
"""One way: about half of the usual round trips."""

_ENDED = ("CANCELED", "FAILED", "FINISHED")
_ENDED_DEADLINE_S = 60.0
_RUNNING_DEADLINE_S = 300.0
_POLL_S = 0.1
_INBOX_PARTITIONS = 2
_GB = 1e9


def scenario(
    delays_ms: Mapping[tuple[str, str], float],
    destinations: tuple[str, ...],
    bps: float | None,
    slow: Mapping[str, float] | None = None,
) -> Scenario:
    """Links as the delays have them, and each region's way to home, for its reports.

    Args:
        delays_ms: of each link that data may take.
        destinations: that keep features; other regions pass them on.
        bps: bandwidth of each link; None for no limit.
        slow: bandwidth of the links to and from some regions, in place of that.
    """
    of_region = dict(slow or {})
    names = dict.fromkeys(region for link in delays_ms for region in link)
    roles = dict.fromkeys(destinations, Role.DESTINATION) | {HOME: Role.HOME}
    back = {(v, u): delay for (u, v), delay in delays_ms.items() if u == HOME}
    return Scenario(
        tuple(Region(name, roles.get(name, Role.WAYPOINT)) for name in names),
        tuple(
            Link(u, v, of_region.get(u, of_region.get(v, bps)), delay)
            for (u, v), delay in {**delays_ms, **back}.items()
        ),
    )


def cloud(bps: float = BANDWIDTH_BPS, slow: Mapping[str, float] | None = None) -> Scenario:
    """The five regions.

    Args:
        bps: bandwidth of each link.
        slow: of the links to and from some regions, in place of that.
    """
    return scenario(_DELAYS_MS, DESTINATIONS, bps, slow)


def usd_per_gb() -> dict[tuple[str, str], float]:
    """Prices between regions, of the profiles that ship."""
    with (Path(PROFILES) / "cost.csv").open(encoding="utf-8") as file:
        return {(row["src"], row["dest"]): float(row["cost"]) for row in csv.DictReader(file)}


@dataclass(frozen=True)
class Traffic:
    """What has gone over the links in both directions, as the proxies count it."""

    out_bytes: Mapping[tuple[str, str], int]
    """Payload from a region to another, whichever of them had opened the connections."""

    def since(self, earlier: Traffic) -> Traffic:
        """What has come to it."""
        return Traffic(
            {pair: count - earlier.out_bytes[pair] for pair, count in self.out_bytes.items()}
        )

    @property
    def total_bytes(self) -> int:
        """Over all links."""
        return sum(self.out_bytes.values())

    def usd(self, prices: Mapping[tuple[str, str], float]) -> float:
        """What it costs: each byte at the price of where it left."""
        return sum(count / _GB * prices[pair] for pair, count in self.out_bytes.items())


def traffic(regions: Regions) -> Traffic:
    """What has gone so far."""
    counted: dict[tuple[str, str], int] = {}
    states: Mapping[str, LinkState] = regions.wan.states()
    for link in regions.scenario.links:
        there, back = (link.source, link.target), (link.target, link.source)
        counted[there] = counted.get(there, 0) + states[link.name].forward.bytes_out
        counted[back] = counted.get(back, 0) + states[link.name].backward.bytes_out
    return Traffic(counted)


def wait_for(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Polls until it holds.

    Raises:
        RuntimeError: it does not in time.
    """
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {deadline_s:g} s: {what}")
        time.sleep(_POLL_S)


class WideArea:
    """The running regions.

    Args:
        folder: for the planner's profiles and table definitions.
        regions: that run.
        flink: for the jobs of all of them.
    """

    def __init__(self, folder: Path, regions: Regions, flink: Stack) -> None:
        self.regions = regions
        self.flink = flink
        self._folder = folder
        self._profiles = self._write_profiles()
        self._jobs: dict[str, str] = {}

    @property
    def destinations(self) -> tuple[str, ...]:
        """Regions that keep features."""
        roles = self.regions.scenario.regions
        return tuple(each.name for each in roles if each.keeps_features and each.name != HOME)

    @property
    def others(self) -> tuple[str, ...]:
        """All regions but home."""
        return tuple(each.name for each in self.regions.scenario.regions if each.name != HOME)

    @property
    def waypoints(self) -> tuple[str, ...]:
        """Regions that only pass on."""
        return tuple(region for region in self.others if region not in self.destinations)

    def stores(self, *regions: str) -> dict[str, str]:
        """URL of each destination's Redis; none named for all."""
        return {each: self.regions[each].redis.url for each in regions or self.destinations}

    def config(
        self, region: str, without: tuple[str, ...] = (), priority_share: float | None = None
    ) -> Config:
        """A region's configuration: its own servers, and the links that it has.

        Args:
            region: whose.
            without: regions that it shall not know.
            priority_share: as in :class:`Config`; None for its default.
        """
        keeps = region in (HOME, *self.destinations)
        others = {
            link.target: self.regions.addresses(region, link.target).bootstrap
            for link in self.regions.scenario.links
            if link.source == region and link.target not in without
        }
        known = others if region == HOME else {**others, region: None}
        share = {} if priority_share is None else {"priority_share": priority_share}
        return Config.from_dict(
            {
                "kafka_bootstrap": self.regions[region].bootstrap,
                "redis": {region: self.regions[region].redis.url} if keeps else {},
                "home_region": HOME,
                "region": region,
                "regions": {name: self._region(name, way) for name, way in known.items()},
                "profiles": str(self._profiles),
                "flink_rest": self.flink.flink.rest.url,
                **share,
            }
        )

    def _region(self, name: str, bootstrap: str | None) -> dict[str, Any]:
        role = "destination" if name in (HOME, *self.destinations) else "waypoint"
        described: dict[str, Any] = {"role": role, "inbox_partitions": _INBOX_PARTITIONS}
        return described | ({} if bootstrap is None else {"kafka_bootstrap": bootstrap})

    def define(self, table: str, slo_ms: int, destinations: tuple[str, ...] | None = None) -> Path:
        """Writes the definition of a table.

        Args:
            table: its name.
            slo_ms: its freshness objective.
            destinations: that keep it; None for all.
        """
        regions = (HOME, *(self.destinations if destinations is None else destinations))
        file = self._folder / f"{table}.py"
        file.write_text(
            "from freshet import *\n\n"
            f"table = FeatureTable(name={table!r}, function=Aggregate(), window=Points(4),"
            f" regions={regions!r}, freshness_slo='{slo_ms}ms')\n",
            encoding="utf-8",
        )
        return file

    def submit(
        self,
        file: Path,
        *,
        left_out: tuple[str, ...] = (),
        without_job: tuple[str, ...] = (),
        priority_share: float | None = None,
    ) -> None:
        """Submits the jobs of all regions for one table, and waits until they run.

        Args:
            file: its definition.
            left_out: regions that home shall not know, and that get no job.
            without_job: further regions that get no job now.
            priority_share: as in :class:`Config`; None for its default.
        """
        regions = [each for each in self.others if each not in left_out and each not in without_job]

        def home() -> PreparedJob:
            config = self.config(HOME, left_out, priority_share)
            return prepare_multicast([file], config, stack=self.flink)

        def region(name: str) -> PreparedJob:
            config = self.config(name, priority_share=priority_share)
            return prepare_region([file], config, stack=self.flink)

        # The topics are on several brokers, and far ones take a while.
        prepared: dict[str, PreparedJob] = {}
        run_together(
            [
                lambda: prepared.update({HOME: home()}),
                *(lambda name=each: prepared.update({name: region(name)}) for each in regions),
            ]
        )
        self._submit(prepared)

    def submit_home(self, file: Path, savepoint: str) -> None:
        """Submits the multicast job again.

        Args:
            file: the table's definition.
            savepoint: to start from.
        """
        submission = submit_multicast(
            [file],
            self.config(HOME),
            stack=self.flink,
            savepoint=savepoint,
            running_deadline_s=_RUNNING_DEADLINE_S,
        )
        self._jobs[HOME] = submission.job.id

    def submit_region(self, file: Path, region: str) -> None:
        """Submits a region's job."""
        prepared = prepare_region([file], self.config(region), stack=self.flink)
        self._submit({region: prepared})

    def _submit(self, prepared: Mapping[str, PreparedJob]) -> None:
        submitted = submit_together(
            list(prepared.values()), stack=self.flink, running_deadline_s=_RUNNING_DEADLINE_S
        )
        jobs = zip(prepared, submitted, strict=True)
        self._jobs |= {region: submission.job.id for region, submission in jobs}

    def create_topics(self, file: Path, region: str) -> None:
        """Creates the topics of a table, and those of one other region."""
        config, away = self.config(HOME), self.config(region)
        definition = load_table(file).to_dict()
        create_missing_topics(config, topics_of_multicast(config, [definition]))
        create_missing_topics(away, topics_of_region(away))

    def stop_home_with_savepoint(self) -> str:
        """Stops the multicast job; returns where its state is."""
        rest, job = self.flink.flink.rest, self._jobs.pop(HOME)
        path = f"{rest.url}/jobs/{job}/stop"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(path, b'{"drain": false}', headers)
        with urllib.request.urlopen(request, timeout=_ENDED_DEADLINE_S) as response:
            trigger = json.load(response)["request-id"]

        def state() -> dict[str, Any]:
            return dict(rest.get(f"/jobs/{job}/savepoints/{trigger}"))

        wait_for(
            lambda: state()["status"]["id"] == "COMPLETED", _ENDED_DEADLINE_S, "a savepoint is made"
        )
        operation = state()["operation"]
        if "location" not in operation:
            raise RuntimeError(f"the multicast job made no savepoint: {operation}")
        self._wait_until_ended([job])
        return str(operation["location"])

    def cancel(self) -> None:
        """Cancels the jobs, and waits until they are gone."""
        for job in self._jobs.values():
            self.flink.flink.rest.cancel(job)
        self._wait_until_ended(self._jobs.values())
        self._jobs = {}

    def _wait_until_ended(self, jobs: Iterable[str]) -> None:
        rest = self.flink.flink.rest
        for job in jobs:
            wait_for(
                lambda job=job: rest.job(job).state in _ENDED, _ENDED_DEADLINE_S, f"{job} ends"
            )

    def failures(self) -> list[str]:
        """Why jobs failed, the newest failure of each that did."""
        rest, found = self.flink.flink.rest, []
        for region, job in self._jobs.items():
            if rest.job(job).restarts:
                history = rest.get(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
                found += [f"{region}: {entry['stacktrace']}" for entry in history[:1]]
        return found

    def _write_profiles(self) -> Path:
        """The planner's view of the same network: the prices that ship, the emulated links."""
        folder = self._folder / "profiles"
        folder.mkdir()
        names = [each.name for each in self.regions.scenario.regions]
        pairs = [(u, v) for u in names for v in names if u != v]
        usd = usd_per_gb()
        bps = {
            (link.source, link.target): link.bandwidth_bps or UNLIMITED_BPS
            for link in self.regions.scenario.links
            if link.target != HOME
        }
        prices = [f"{u},{v},{usd[u, v]}" for u, v in pairs]
        speeds = [f"{u},{v},{bps.get((u, v), 0.0)}" for u, v in pairs]
        _write_lines(folder / "cost.csv", ["src,dest,cost", *prices])
        _write_lines(folder / "throughput.csv", ["src_region,dst_region,throughput_sent", *speeds])
        (folder / "limits.json").write_text('{"default": {"max_vms": 1}}', encoding="utf-8")
        return folder


def _write_lines(file: Path, lines: list[str]) -> None:
    file.write_text("\n".join(lines), encoding="utf-8")


@contextlib.contextmanager
def multicast(
    area: WideArea,
    table: str,
    slo_ms: int,
    *,
    destinations: tuple[str, ...] | None = None,
    left_out: tuple[str, ...] = (),
    without_job: tuple[str, ...] = (),
    priority_share: float | None = None,
) -> Iterator[Reports]:
    """The jobs of one table, once a plan reaches its regions; what they report.

    Args:
        area: the running regions.
        table: its name.
        slo_ms: its freshness objective.
        destinations: that keep it; None for all.
        left_out: as in :meth:`WideArea.submit`, as the following.
        without_job: as there.
        priority_share: as there.

    Raises:
        RuntimeError: no plan reaches all of them, or a job failed meanwhile.
    """
    wanted = set(area.destinations if destinations is None else destinations) - set(without_job)
    file = area.define(table, slo_ms, destinations)
    try:
        area.submit(file, left_out=left_out, without_job=without_job, priority_share=priority_share)
        with reports(area.regions[HOME].bootstrap, table) as heard:
            wait_for(
                lambda: {v for _, v in heard.edges(HOME)} >= wanted,
                _RUNNING_DEADLINE_S,
                "a plan reaches all regions",
            )
            yield heard
            if area.failures():
                raise RuntimeError("jobs failed: " + "; ".join(area.failures()))
    finally:
        area.cancel()


@contextlib.contextmanager
def wide_area(context: Context, described: Scenario) -> Iterator[WideArea]:
    """The regions while they run."""
    jobs = len(described.regions)
    flink = FlinkOptions(
        task_managers=1,
        task_heap_mb=1_024,
        # Else each job of a benchmark would compile all code anew, and measure that.
        preloaded=True,
        # One of the jobs has Python in it, so the slots share an interpreter with nobody.
        settings={"taskmanager.numberOfTaskSlots": str(jobs)},
    )
    regions = Regions(context.folder("regions"), described)
    stack = Stack(context.folder("flink"), StackOptions(regions=(), kafka=None, flink=flink))
    with contextlib.ExitStack() as running:
        run_together(
            [
                lambda: running.enter_context(regions) and None,
                lambda: running.enter_context(stack) and None,
            ]
        )
        yield WideArea(context.folder("wide-area"), regions, stack)
