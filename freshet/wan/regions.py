"""The regions of a scenario, with real servers: each has a broker and a Redis of its own.

A region's clients reach their own servers directly, and another region's through the link to it::

    client in A -> link A->B -> B's broker, at its listener for A

The broker has a listener for each link that leads to it, and tells the clients that come through it
to connect to the link again, so that none of their traffic takes a shorter way.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from freshet.errors import StackError
from freshet.stack.kafka import PLAINTEXT, KafkaBroker, KafkaOptions, Listener, Security
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    kill_stack_processes,
    processes_of_stack,
    require_linux,
    start_watchdog,
    stop_processes,
)
from freshet.stack.redis import RedisOptions, RedisServer
from freshet.stack.together import run_together
from freshet.wan.client import Wan
from freshet.wan.scenario import Link, Region, Scenario, Server, link_name

_HEAP_MB = 128
"""Enough for a region's inbox; there are several brokers on one machine."""


@dataclass(frozen=True)
class RegionsOptions:
    """How the regions' servers run."""

    kafka: KafkaOptions = field(
        default_factory=lambda: KafkaOptions(heap_mb=_HEAP_MB, short_lived=True)
    )
    redis: RedisOptions = field(default_factory=RedisOptions)

    security: Mapping[str, Security] = field(default_factory=dict)
    """What a region's broker asks of those who come through a link, by region; nothing of others.
    The region's own clients need not encrypt or log in."""


@dataclass(frozen=True)
class LinkAddresses:
    """Where a link's source finds its target's servers."""

    bootstrap: str
    """Of the broker: ``host:port``."""

    redis_url: str | None
    """None for a waypoint, which has none."""


class RunningRegion:
    """One region's servers."""

    def __init__(self, region: Region, broker: KafkaBroker, redis: RedisServer | None) -> None:
        """Holds the servers.

        Args:
            region: whose they are.
            broker: its Kafka.
            redis: its online store; None for a waypoint.
        """
        self.region = region
        self.broker = broker
        self._redis = redis

    @property
    def name(self) -> str:
        """``provider:region``."""
        return self.region.name

    @property
    def bootstrap(self) -> str:
        """Of the broker, for the region's own clients: ``host:port``."""
        return self.broker.bootstrap

    @property
    def redis(self) -> RedisServer:
        """The online store.

        Raises:
            StackError: this is a waypoint.
        """
        if self._redis is None:
            raise StackError(f"{self.name} is a waypoint and has no Redis")
        return self._redis

    def server(self, which: Server) -> KafkaBroker | RedisServer:
        """One of the servers.

        Raises:
            StackError: the region has none of this kind.
        """
        return self.broker if which is Server.BROKER else self.redis

    def servers(self) -> list[KafkaBroker | RedisServer]:
        """All servers."""
        return [self.broker] if self._redis is None else [self.broker, self._redis]


class Regions:
    """A scenario's brokers, Redis servers and links, all on loopback.

    As a context manager it ends with the block, and, should this process be killed, without it.
    The scenario's faults do not come by themselves: see :mod:`freshet.wan.faults`.
    """

    def __init__(
        self, directory: Path, scenario: Scenario, options: RegionsOptions | None = None
    ) -> None:
        """Describes the regions.

        Args:
            directory: for data and logs; ``data`` and ``logs`` in it are emptied at the start.
            scenario: regions and links.
            options: how the servers run.

        Raises:
            StackError: this is no Linux.
        """
        require_linux()
        self.directory = directory.absolute()
        self.scenario = scenario
        self.options = options or RegionsOptions()
        self.id = uuid.uuid4().hex
        self.logs = self.directory / "logs"
        self.wan = Wan(self.logs, self.id)
        self._watchdog: ServerProcess | None = None
        self._ports = PortPicker()
        self._broker_ways: dict[str, Listener] = {}
        self._redis_ways: dict[str, tuple[int, int]] = {}
        self.regions = {region.name: self._describe(region) for region in scenario.regions}

    def __enter__(self) -> Regions:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __getitem__(self, region: str) -> RunningRegion:
        """A region by its name.

        Raises:
            StackError: there is none.
        """
        if region not in self.regions:
            raise StackError(f"there is no region {region}, only {', '.join(self.regions)}")
        return self.regions[region]

    def start(self) -> None:
        """Starts every server and waits until all answer; ends them all when one does not.

        Raises:
            StackError: a server did not start; with the tail of its log.
        """
        for name in ("data", "logs"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
            (self.directory / name).mkdir(parents=True)
        try:
            # First of all, so that nothing can be left behind.
            self._watchdog = start_watchdog(self.id, self.logs / "watchdog.out")
            servers = [server for each in self.regions.values() for server in each.servers()]
            run_together([self._start_wan, self._format_brokers])
            run_together([server.start for server in servers])
        except BaseException as error:
            try:
                self.stop()
            except StackError as leftover:
                error.add_note(str(leftover))
            raise

    def stop(self) -> None:
        """Ends every process and removes the data; the logs stay.

        Raises:
            StackError: a process cannot be ended.
        """
        servers = [server for each in self.regions.values() for server in each.servers()]
        processes = [*(server.process for server in servers), self._watchdog]
        try:
            self.wan.stop()
            stop_processes(
                [process for process in processes if process is not None], TERMINATE_DEADLINE_S
            )
        finally:
            kill_stack_processes(self.id)
            shutil.rmtree(self.directory / "data", ignore_errors=True)

    def pids(self) -> list[int]:
        """Ids of every process of the regions."""
        return sorted(identity.pid for identity in processes_of_stack(self.id))

    def addresses(self, source: str, target: str) -> LinkAddresses:
        """Where a region's clients find another's servers: at the link between them.

        Raises:
            StackError: there is no such link.
        """
        name = link_name(source, target)
        if name not in self._broker_ways:
            known = ", ".join(self._broker_ways) or "none"
            raise StackError(f"the scenario has no link {name}; it has {known}")
        redis = self._redis_ways.get(name)
        return LinkAddresses(
            bootstrap=f"{LOOPBACK}:{self._broker_ways[name].advertised_port}",
            redis_url=None if redis is None else f"redis://{LOOPBACK}:{redis[0]}/0",
        )

    def kill(self, region: str, which: Server) -> None:
        """Kills a server at once, as a crash would.

        Raises:
            StackError: it does not run, or there is none.
        """
        self[region].server(which).kill()

    def restart(self, region: str, which: Server, *, keep_data: bool = True) -> None:
        """Starts a server again on its ports, killing it first when it still runs.

        Args:
            region: where it is.
            which: of the region's servers.
            keep_data: False brings it back empty: a Redis without keys, a broker without topics.

        Raises:
            StackError: it did not start, or there is none.
        """
        self[region].server(which).restart(keep_data=keep_data)

    def _describe(self, region: Region) -> RunningRegion:
        links = [link for link in self.scenario.links if link.target == region.name]
        folder = self.directory / "data" / _file_name(region.name)
        logs = self.logs / _file_name(region.name)
        broker = KafkaBroker(
            self._ports.pick(),
            self._ports.pick(),
            folder / "kafka",
            logs,
            self.options.kafka,
            self.id,
            [self._listener(number, link) for number, link in enumerate(links)],
        )
        if not region.keeps_features:
            return RunningRegion(region, broker, None)
        port = self._ports.pick()
        redis = RedisServer(region.name, port, folder / "redis", logs, self.options.redis, self.id)
        for link in links:
            self._redis_ways[link.name] = (self._ports.pick(), port)
        return RunningRegion(region, broker, redis)

    def _listener(self, number: int, link: Link) -> Listener:
        security = self.options.security.get(link.target, PLAINTEXT)
        listener = Listener(f"LINK_{number}", self._ports.pick(), self._ports.pick(), security)
        self._broker_ways[link.name] = listener
        return listener

    def _format_brokers(self) -> None:
        first, *others = (each.broker for each in self.regions.values())
        first.format()
        for broker in others:
            broker.copy_format(first)

    def _start_wan(self) -> None:
        self.wan.start()
        for link in self.scenario.links:
            listener = self._broker_ways[link.name]
            ways = [(listener.advertised_port, listener.port)]
            if link.name in self._redis_ways:
                ways.append(self._redis_ways[link.name])
            self.wan.open(link.name, [target for _, target in ways], [port for port, _ in ways])
            self.wan.set_shape(link.name, link.shape)


def _file_name(region: str) -> str:
    return region.replace(":", "-")
