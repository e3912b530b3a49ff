"""The emulated WAN as a test sees it: starts the proxy's process, and tells it what to do."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from freshet.errors import ConfigError, StackError
from freshet.stack.ports import LOOPBACK, PortPicker, is_listening
from freshet.stack.processes import (
    TERMINATE_DEADLINE_S,
    ServerProcess,
    start_process,
    start_watchdog,
    stop_processes,
    wait_until,
)
from freshet.table.checks import Problems
from freshet.wan.proxy import LaneCounters, LinkCounters
from freshet.wan.shape import Direction, Shape

_READY_DEADLINE_S = 30.0
_ANSWER_DEADLINE_S = 30.0


@dataclass(frozen=True)
class LinkState:
    """What a link has done so far, and what is wrong with it now."""

    connections: LinkCounters
    forward: LaneCounters
    backward: LaneCounters
    cut: frozenset[Direction]
    stalled: frozenset[Direction]

    @property
    def bytes_out(self) -> int:
        """Payload bytes delivered in both directions together."""
        return self.forward.bytes_out + self.backward.bytes_out

    @property
    def bytes_held(self) -> int:
        """Bytes that stalls have held in both directions together."""
        return self.forward.bytes_held + self.backward.bytes_held

    @property
    def bytes_dropped(self) -> int:
        """Bytes that were on their way in dropped connections, in both directions together."""
        return self.forward.bytes_dropped + self.backward.bytes_dropped


class Wan:
    """Links between regions, all of them in one process.

    A link has a name, such as ``"aws:eu-west-1->aws:us-east-1"``, and a port on loopback for each
    server at its target. Its source's clients connect to that port instead of the server's.
    """

    def __init__(self, directory: Path, stack_id: str | None = None) -> None:
        """Describes a WAN without links; :meth:`start` starts its process.

        Args:
            directory: for its log; made when missing.
            stack_id: of the stack that it belongs to, whose watchdog runs; None for none.
        """
        self.process: ServerProcess | None = None
        self._watchdog: ServerProcess | None = None
        self._log = directory / "wan.log"
        self._stack_id = stack_id or uuid.uuid4().hex
        self._is_alone = stack_id is None
        self._ports = PortPicker()
        self._port = self._ports.pick()
        self._shapes: dict[str, dict[Direction, Shape]] = {}
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Wan:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the process, and waits until it answers.

        Raises:
            StackError: it did not start.
        """
        if self._is_alone:
            self._watchdog = start_watchdog(self._stack_id, self._log)
        self.process = start_process(
            "WAN proxy",
            [sys.executable, "-m", "freshet.wan.control", str(self._port)],
            stack_id=self._stack_id,
            output=self._log,
        )
        wait_until(
            lambda: is_listening(self._port),
            server=self.process,
            deadline_s=_READY_DEADLINE_S,
            what=f"answer on port {self._port}",
        )
        self._connection = socket.create_connection(
            (LOOPBACK, self._port), timeout=_ANSWER_DEADLINE_S
        )

    def stop(self) -> None:
        """Ends the process, and with it every connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        running = [each for each in (self.process, self._watchdog) if each is not None]
        stop_processes(running, TERMINATE_DEADLINE_S)

    def open(
        self, link: str, target_ports: list[int], listen_ports: list[int] | None = None
    ) -> list[int]:
        """Adds a link without limit or delay.

        Args:
            link: its name.
            target_ports: of the servers on loopback that it leads to.
            listen_ports: free ports that lead to them; None picks some.

        Returns:
            The ports that it listens on, in the same order.

        Raises:
            StackError: the link exists, or a port is taken.
        """
        ports = listen_ports or [self._ports.pick() for _ in target_ports]
        routes = dict(zip(ports, target_ports, strict=True))
        self._tell("open", link=link, routes=routes)
        self._shapes[link] = dict.fromkeys(Direction.BOTH.each, Shape())
        return ports

    def set(self, link: str, direction: Direction = Direction.BOTH, **values: float | None) -> None:
        """Changes bandwidth and delay; what is not given stays as it is.

        Args:
            link: name of the link.
            direction: of the bytes.
            values: ``bandwidth_bps`` (None for no limit), ``delay_ms`` and ``jitter_ms``, as in
                :class:`Shape`.

        Raises:
            ConfigError: a value makes no sense.
            StackError: there is no such link.
        """
        shapes = self._shapes_of(link)
        for each in direction.each:
            self.set_shape(link, replace(shapes[each], **values), each)  # type: ignore[arg-type]

    def set_shape(self, link: str, shape: Shape, direction: Direction = Direction.BOTH) -> None:
        """Changes bandwidth and delay together.

        Raises:
            ConfigError: a value makes no sense.
            StackError: there is no such link.
        """
        problems = Problems()
        shape.check("", problems)
        if problems:
            raise ConfigError(problems, f"link {link}")
        self._tell("set", link=link, shape=asdict(shape), direction=direction)
        self._shapes_of(link).update(dict.fromkeys(direction.each, shape))

    def shape(self, link: str, direction: Direction) -> Shape:
        """Bandwidth and delay of one direction.

        Raises:
            StackError: there is no such link.
        """
        return self._shapes_of(link)[direction]

    @contextlib.contextmanager
    def shaped(
        self, link: str, shape: Shape, direction: Direction = Direction.BOTH
    ) -> Iterator[None]:
        """Within the block the link has another shape."""
        before = dict(self._shapes_of(link))
        self.set_shape(link, shape, direction)
        try:
            yield
        finally:
            for each in direction.each:
                self.set_shape(link, before[each], each)

    def stall(self, link: str, direction: Direction = Direction.BOTH) -> None:
        """Holds all bytes until :meth:`heal`; none is lost, and connections stay open.

        Raises:
            StackError: there is no such link.
        """
        self._tell("stall", link=link, direction=direction)

    def cut(self, link: str, direction: Direction = Direction.BOTH) -> None:
        """Resets the connections, and refuses new ones until :meth:`heal`.

        A connection cannot live with one direction, so a cut of one ends it as well. What differs
        is what arrives: the bytes on their way in the direction of the cut are lost, those of the
        other are delivered before the reset. A backward cut so leaves a broker with a request
        whose answer the client never sees.

        Raises:
            StackError: there is no such link.
        """
        self._tell("cut", link=link, direction=direction)

    def reset(self, link: str, direction: Direction = Direction.BOTH) -> None:
        """Resets the connections once, as :meth:`cut` does; new ones are welcome.

        Raises:
            StackError: there is no such link.
        """
        self._tell("reset", link=link, direction=direction)

    def heal(self, link: str, direction: Direction = Direction.BOTH, of: str = "all") -> None:
        """Ends faults.

        Args:
            link: name of the link.
            direction: where to end them.
            of: ``"stall"``, ``"cut"``, or ``"all"`` of them. The shape stays.

        Raises:
            StackError: there is no such link.
        """
        self._tell("heal", link=link, direction=direction, of=of)

    def links(self) -> list[str]:
        """Names of the links."""
        return list(self._shapes)

    def state(self, link: str) -> LinkState:
        """Counters and faults of a link.

        Raises:
            StackError: there is no such link.
        """
        self._shapes_of(link)
        return self.states()[link]

    def states(self) -> dict[str, LinkState]:
        """Counters and faults of every link, by its name."""
        told = self._tell("counters")
        return {link: _state_of(described) for link, described in told.items()}

    def _shapes_of(self, link: str) -> dict[Direction, Shape]:
        if link not in self._shapes:
            raise StackError(
                f"the WAN has no link {link}; it has {', '.join(self._shapes) or 'none'}"
            )
        return self._shapes[link]

    def _tell(self, do: str, **arguments: object) -> Any:
        if self._connection is None:
            raise StackError("the WAN does not run; start it first")
        line = json.dumps({"do": do, **arguments}).encode() + b"\n"
        try:
            with self._lock:
                self._connection.sendall(line)
                answer = self._read_line(self._connection)
        except OSError as error:
            assert self.process is not None, "it was started together with the connection"
            raise self.process.failure(f"did not answer {do!r} ({error})") from error
        told = json.loads(answer)
        if "error" in told:
            raise StackError(f"the WAN proxy refuses {do!r}: {told['error']}")
        return told["result"]

    @staticmethod
    def _read_line(connection: socket.socket) -> bytes:
        parts: list[bytes] = []
        while not parts or not parts[-1].endswith(b"\n"):
            part = connection.recv(65_536)
            if not part:
                raise ConnectionError("it closed the connection")
            parts.append(part)
        return b"".join(parts)


def _state_of(described: Mapping[str, Any]) -> LinkState:
    lanes = {
        each: LaneCounters(**{name: described[each][name] for name in vars(LaneCounters())})
        for each in Direction.BOTH.each
    }
    return LinkState(
        connections=LinkCounters(**{name: described[name] for name in vars(LinkCounters())}),
        forward=lanes[Direction.FORWARD],
        backward=lanes[Direction.BACKWARD],
        cut=frozenset(Direction(name) for name in described["cut"]),
        stalled=frozenset(each for each in Direction.BOTH.each if described[each]["stalled"]),
    )
