"""A deployment over several regions on the emulated WAN: servers, configurations and one Flink.

Home, two destinations and a waypoint, which is by far the cheapest way to both destinations. All
jobs run on one Flink cluster: what makes them another region's is their configuration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from freshet import avro
from freshet.config import Config
from freshet.stack import FlinkOptions, Stack, StackOptions
from freshet.stack.together import run_together
from freshet.submission import Submission, submit_multicast, submit_region
from freshet.wan.regions import Regions
from freshet.wan.scenario import Scenario, scenario_from_mapping
from tests.integration.topics import Topics

HOME, NEAR, FAR, WAY = "local:home", "local:near", "local:far", "local:way"
DESTINATIONS = (NEAR, FAR)
MBPS = 1e6

_LINKS = {(HOME, NEAR): 15, (HOME, FAR): 20, (HOME, WAY): 10, (WAY, NEAR): 10, (WAY, FAR): 15}
"""One-way delays, ms. Beside these there is each region's way to home, for its reports."""

_USD_PER_GB = {(HOME, WAY): 0.01, (WAY, NEAR): 0.02, (WAY, FAR): 0.02}
_OTHER_USD_PER_GB = 0.12
_BANDWIDTH_BPS = 100 * MBPS


def scenario() -> Scenario:
    """The regions and their links."""
    reports = [(region, HOME) for region in (NEAR, FAR, WAY)]
    delays = {**_LINKS, **dict.fromkeys(reports, 15)}
    return scenario_from_mapping(
        {
            "regions": [
                {"name": HOME, "role": "home"},
                *({"name": region} for region in DESTINATIONS),
                {"name": WAY, "role": "waypoint"},
            ],
            "links": [
                {"source": u, "target": v, "bandwidth_bps": _BANDWIDTH_BPS, "delay_ms": delay}
                for (u, v), delay in delays.items()
            ],
        }
    )


def write_profiles(folder: Path) -> Path:
    """The planner's view of the same network."""
    folder.mkdir()
    regions = (HOME, NEAR, FAR, WAY)
    pairs = [(u, v) for u in regions for v in regions if u != v]
    prices = [f"{u},{v},{_USD_PER_GB.get((u, v), _OTHER_USD_PER_GB)}" for u, v in pairs]
    speeds = [f"{u},{v},{_BANDWIDTH_BPS if (u, v) in _LINKS else 0}" for u, v in pairs]
    (folder / "cost.csv").write_text("\n".join(["src,dest,cost", *prices]))
    (folder / "throughput.csv").write_text(
        "\n".join(["src_region,dst_region,throughput_sent", *speeds])
    )
    (folder / "limits.json").write_text('{"default": {"max_vms": 1}}')
    return folder


class WideArea:
    """The running deployment."""

    def __init__(self, folder: Path, regions: Regions, flink: Stack) -> None:
        self.folder = folder
        self.regions = regions
        self.flink = flink
        self.profiles = write_profiles(folder / "profiles")
        self.topics = Topics(regions[HOME].bootstrap)

    def config(self, region: str) -> Config:
        """A region's configuration: its own servers, and the links that it has."""
        roles = {r.name: "destination" if r.keeps_features else "waypoint" for r in self._all}
        others = {
            link.target: {
                "kafka_bootstrap": self.regions.addresses(region, link.target).bootstrap,
                "role": roles[link.target],
                "inbox_partitions": 2,
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

    def submit(self, *files: Path) -> dict[str, Submission]:
        """Submits the multicast job and all region jobs at once."""
        submitted: dict[str, Submission] = {}

        def home() -> None:
            submitted[HOME] = submit_multicast(files, self.config(HOME), stack=self.flink)

        def away(region: str) -> None:
            submitted[region] = submit_region(files, self.config(region), stack=self.flink)

        run_together([home, *(lambda r=region: away(r) for region in (NEAR, FAR, WAY))])  # type: ignore[misc]
        return submitted

    def reports(self) -> list[dict[str, Any]]:
        """Every report in the topic."""
        found = []
        for record in self.topics.read("progress"):
            name, report = avro.decode(record.value or b"")
            if name == "RegionReport":
                found.append(report)
        return found


@contextlib.contextmanager
def wide_area(folder: Path) -> Iterator[WideArea]:
    """The deployment while it runs: brokers, Redis servers, links, and a Flink with four slots."""
    flink = FlinkOptions(
        task_managers=1,
        checkpoint_interval_ms=1_000,
        short_lived=True,
        # One of the jobs has Python in it, so the slots share an interpreter with nobody.
        settings={"taskmanager.numberOfTaskSlots": "4"},
    )
    options = StackOptions(regions=(), kafka=None, flink=flink)
    regions = Regions(folder / "regions", scenario())
    stack = Stack(folder / "flink", options)
    with contextlib.ExitStack() as running:
        run_together(
            [
                lambda: running.enter_context(regions) and None,
                lambda: running.enter_context(stack) and None,
            ]
        )
        yield WideArea(folder, regions, stack)
