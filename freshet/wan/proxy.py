"""The data path of the emulated WAN: TCP connections whose bytes are paced, delayed and held.

Each direction of a connection has a reader and a deliverer with a bounded queue between them::

    sender -> reader -> [bandwidth, shared] -> queue [delay] -> deliverer [stall] -> receiver

While the queue is full, nothing is read, and the sender feels it as it would feel a full window.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import random
import socket
import struct
import termios
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import asdict, dataclass

from freshet.stack.ports import LOOPBACK
from freshet.wan.pacing import TokenBucket, Wakeup
from freshet.wan.shape import Direction, Shape

BUFFER_BYTES = 16 * 1024 * 1024
"""Bytes that one direction of a connection holds at most, like a TCP window: with a delay one
connection passes at most so much in each delay."""

_SOCKET_BUFFER_BYTES = 256 * 1024
"""Of the kernel, for each end; else it would take megabytes that the link has not let through."""

_BACKLOG = 256
_FLUSH_DEADLINE_S = 5.0

_END = b""
"""In a queue: the sender will send no more."""


@dataclass
class LaneCounters:
    """Of one direction of a link, over all of its connections; payload bytes."""

    bytes_in: int = 0
    """Read from senders."""

    bytes_out: int = 0
    """Delivered to receivers."""

    bytes_held: int = 0
    """Were there when a stall began, or came while it lasted."""

    bytes_dropped: int = 0
    """Were on their way when their connection was dropped."""

    bytes_buffered: int = 0
    """Are on their way now."""


@dataclass
class LinkCounters:
    """Of a link's connections."""

    opened: int = 0
    """Connections so far, without those that were refused."""

    open: int = 0
    """Connections now."""

    refused: int = 0
    """Refused by a cut."""

    reset: int = 0
    """Dropped by a cut or a reset."""

    unanswered: int = 0
    """Refused because nobody listens at the link's far end."""


class Lane:
    """One direction of a link: what its connections share."""

    def __init__(self, name: str) -> None:
        """Makes a lane that neither limits nor delays.

        Args:
            name: seeds the jitter, so that a run repeats as far as its timing does.
        """
        self.counters = LaneCounters()
        self.bucket = TokenBucket()
        self.pumps: set[Pump] = set()
        self.is_stalled = False
        self._shape = Shape()
        self._random = random.Random(name)

    @property
    def shape(self) -> Shape:
        """Bandwidth and delay."""
        return self._shape

    @shape.setter
    def shape(self, shape: Shape) -> None:
        if shape.bandwidth_bps != self._shape.bandwidth_bps:
            self.bucket.set_bandwidth(shape.bandwidth_bps)
        self._shape = shape

    def delay_s(self) -> float:
        """Delay of the next piece."""
        delay_ms, jitter_ms = self._shape.delay_ms, self._shape.jitter_ms
        if jitter_ms:
            delay_ms = max(0.0, delay_ms + self._random.uniform(-jitter_ms, jitter_ms))
        return delay_ms / 1000

    def stall(self) -> None:
        """Holds everything, from now on."""
        if not self.is_stalled:
            self.is_stalled = True
            self.counters.bytes_held += self.counters.bytes_buffered

    def resume(self) -> None:
        """Lets everything go again."""
        self.is_stalled = False
        for pump in self.pumps:
            pump.wake()

    def took(self, count_bytes: int) -> None:
        """Counts what was read."""
        self.counters.bytes_in += count_bytes
        self.counters.bytes_buffered += count_bytes
        if self.is_stalled:
            self.counters.bytes_held += count_bytes


class PeerResetError(Exception):
    """An end of a connection has reset it, and the other has to be told."""


class Pump:
    """One direction of one connection."""

    def __init__(self, lane: Lane, source: socket.socket, sink: socket.socket) -> None:
        """Describes it; :meth:`read` and :meth:`deliver` do the work.

        Args:
            lane: direction of the link.
            source: where bytes come from, non-blocking.
            sink: where they go, non-blocking.
        """
        self.lane = lane
        self.source = source
        self.sink = sink
        self._queue: deque[tuple[float, bytes | None]] = deque()
        self._buffered_bytes = 0
        self._room = Wakeup()
        self._work = Wakeup()

    async def read(self) -> None:
        """Reads until the sender ends or resets the connection."""
        loop = asyncio.get_running_loop()
        while True:
            while self._buffered_bytes >= BUFFER_BYTES:
                await self._room.wait()
            try:
                data = await loop.sock_recv(self.source, self.lane.bucket.piece_bytes)
            except OSError:
                self.break_off()
                return
            self._buffered_bytes += len(data)
            self.lane.took(len(data))
            await self.lane.bucket.take(len(data))
            self._put(data)
            if data == _END:
                return
            # A sender that always has more must not keep the loop from the other connections.
            await asyncio.sleep(0)

    async def deliver(self) -> None:
        """Delivers until the end.

        Raises:
            PeerResetError: the sender has reset the connection.
            OSError: the receiver has.
        """
        loop = asyncio.get_running_loop()
        while True:
            while not self._is_due(loop.time()):
                await self._work.wait(self._due_s())
            data = self._queue[0][1]
            if data is None:
                raise PeerResetError
            if data == _END:
                self.sink.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(self.sink, data)
            self._queue.popleft()
            self.lane.counters.bytes_out += len(data)
            self._forget(len(data))

    def break_off(self) -> None:
        """Has the receiver see a reset after all that is on its way."""
        self._put(None)

    def drop(self) -> None:
        """Drops what is on its way."""
        self.lane.counters.bytes_dropped += self._buffered_bytes
        self._forget(self._buffered_bytes)
        self._queue.clear()

    def wake(self) -> None:
        """Has the deliverer look again whether it may deliver."""
        self._work.wake()

    def _put(self, data: bytes | None) -> None:
        # What is due earlier by jitter waits in the queue behind what is due later.
        due_s = asyncio.get_running_loop().time() + self.lane.delay_s()
        self._queue.append((due_s, data))
        self._work.wake()

    def _forget(self, count_bytes: int) -> None:
        self._buffered_bytes -= count_bytes
        self.lane.counters.bytes_buffered -= count_bytes
        self._room.wake()

    def _is_due(self, now_s: float) -> bool:
        return bool(self._queue) and not self.lane.is_stalled and self._queue[0][0] <= now_s

    def _due_s(self) -> float | None:
        if not self._queue or self.lane.is_stalled:
            return None
        return self._queue[0][0]


class Connection:
    """One connection through a link: two sockets, and a pump for each direction."""

    def __init__(self, link: Link, client: socket.socket, target_port: int) -> None:
        """Describes it; :meth:`run` does the work.

        Args:
            link: that it belongs to.
            client: accepted from the link's source.
            target_port: on loopback, at the link's target.
        """
        self._link = link
        self._client = client
        self._server = socket.socket()
        self._target_port = target_port
        self._pumps: dict[Direction, Pump] = {}
        self._tasks: dict[tuple[Direction, str], asyncio.Task[None]] = {}
        self._delivering = set(Direction.BOTH.each)
        self._is_clean = True
        self._over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._lost: Direction | None = None

    async def run(self) -> None:
        """Passes bytes until both ends have ended, or one was reset."""
        clean = False
        try:
            if await self._connect():
                self._start()
                clean = await self._over
        finally:
            await _cancel(self._tasks.values())
            for direction, pump in self._pumps.items():
                pump.drop()
                self._link.lanes[direction].pumps.discard(pump)
            for end in (self._client, self._server):
                end.close() if clean else _abort(end)

    async def drop(self, direction: Direction) -> None:
        """Resets the connection.

        Args:
            direction: whose bytes on the way are lost; those of the other still arrive.
        """
        if self._over.done() or direction is self._lost:
            return
        before, self._lost = self._lost, direction
        self._link.counters.reset += before is None
        if direction is Direction.BOTH or before is not None or not self._pumps:
            self._end(clean=False)
            return
        lost, kept = direction, direction.opposite
        # Ended before the socket is closed: its number may be another's at once.
        await _cancel(
            self._tasks[key] for key in ((lost, "read"), (lost, "deliver"), (kept, "read"))
        )
        if not self._over.done():
            self._pumps[lost].drop()
            _abort(self._pumps[lost].sink)
            self._break_off(kept)

    async def _connect(self) -> bool:
        """Opens the far half; False when nobody listens there, or the connection was dropped."""
        loop = asyncio.get_running_loop()
        handshake_s = sum(lane.delay_s() for lane in self._link.lanes.values())
        if handshake_s:
            await asyncio.wait([self._over], timeout=handshake_s)
        if self._over.done():
            return False
        for end in (self._client, self._server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER_BYTES)
        try:
            await loop.sock_connect(self._server, (LOOPBACK, self._target_port))
        except OSError:
            self._link.counters.unanswered += 1
            return False
        return not self._over.done()

    def _start(self) -> None:
        ends = (self._client, self._server)
        for direction, (source, sink) in zip(Direction.BOTH.each, (ends, ends[::-1]), strict=True):
            lane = self._link.lanes[direction]
            pump = self._pumps[direction] = Pump(lane, source, sink)
            lane.pumps.add(pump)
            self._tasks[direction, "read"] = asyncio.create_task(pump.read())
            self._tasks[direction, "deliver"] = asyncio.create_task(self._deliver(direction))

    async def _deliver(self, direction: Direction) -> None:
        pump = self._pumps[direction]
        try:
            await pump.deliver()
        except PeerResetError:
            await _flush(pump.sink)
            self._end(clean=False)
        except OSError:
            # The receiver is gone; its reset travels back like anything else that it sends. The
            # reader there may have seen an end instead, if this send was told of the reset.
            self._is_clean = False
            self._delivering.discard(direction)
            self._break_off(direction.opposite)
        else:
            self._delivering.discard(direction)
            if not self._delivering:
                self._end(clean=self._is_clean)

    def _break_off(self, direction: Direction) -> None:
        if direction in self._delivering:
            self._pumps[direction].break_off()
        else:
            self._end(clean=False)

    def _end(self, *, clean: bool) -> None:
        if not self._over.done():
            self._over.set_result(clean)


class Link:
    """One link: its ports, its two lanes, its connections, and what is wrong with it."""

    def __init__(self, name: str, routes: Mapping[int, int]) -> None:
        """Describes the link; :meth:`open` opens it.

        Args:
            name: of the link.
            routes: port that it listens on to port of the server that it leads to.
        """
        self.name = name
        self.counters = LinkCounters()
        self.lanes = {each: Lane(f"{name} {each}") for each in Direction.BOTH.each}
        self._routes = routes
        self._cut: set[Direction] = set()
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Listens.

        Raises:
            OSError: a port is taken.
        """
        for port, target_port in self._routes.items():
            listener = socket.create_server((LOOPBACK, port), backlog=_BACKLOG)
            # Connections inherit it.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER_BYTES)
            listener.setblocking(False)
            self._keep(self._accept(listener, target_port))

    def set_shape(self, shape: Shape, direction: Direction) -> None:
        """Changes bandwidth and delay; what is on its way keeps its delay."""
        for each in direction.each:
            self.lanes[each].shape = shape

    def stall(self, direction: Direction) -> None:
        """Holds bytes until :meth:`resume`."""
        for each in direction.each:
            self.lanes[each].stall()

    def resume(self, direction: Direction) -> None:
        """Ends a stall."""
        for each in direction.each:
            self.lanes[each].resume()

    async def cut(self, direction: Direction) -> None:
        """Drops connections, and refuses new ones until :meth:`mend`."""
        self._cut.update(direction.each)
        await self.reset(direction)

    def mend(self, direction: Direction) -> None:
        """Ends a cut."""
        self._cut.difference_update(direction.each)

    async def reset(self, direction: Direction) -> None:
        """Drops the connections that there are."""
        await asyncio.gather(*(each.drop(direction) for each in tuple(self._connections)))

    def describe(self) -> dict[str, object]:
        """Counters and state, as JSON has them."""
        return {
            **asdict(self.counters),
            "cut": sorted(self._cut),
            **{
                direction.value: {
                    **asdict(lane.counters),
                    "stalled": lane.is_stalled,
                    "shape": asdict(lane.shape),
                }
                for direction, lane in self.lanes.items()
            },
        }

    async def _accept(self, listener: socket.socket, target_port: int) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                client, _ = await loop.sock_accept(listener)
                if self._cut:
                    self.counters.refused += 1
                    _abort(client)
                else:
                    connection = Connection(self, client, target_port)
                    # At once: a cut that comes before the task begins must find it.
                    self._connections.add(connection)
                    self.counters.opened += 1
                    self.counters.open += 1
                    self._keep(self._run(connection))

    async def _run(self, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            self.counters.open -= 1
            self._connections.discard(connection)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        # The event loop itself holds tasks weakly.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    cancelled = [task for task in tasks if task is not asyncio.current_task()]
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


async def _flush(end: socket.socket) -> None:
    """Waits until the kernel has sent what it was given: a reset would overtake it."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _FLUSH_DEADLINE_S
    with contextlib.suppress(OSError):
        while _unsent_bytes(end) and loop.time() < deadline_s:
            await asyncio.sleep(0.001)


def _unsent_bytes(end: socket.socket) -> int:
    answer = fcntl.ioctl(end.fileno(), termios.TIOCOUTQ, b"\0" * 4)
    return int(struct.unpack("i", answer)[0])


def _abort(end: socket.socket) -> None:
    """Closes a socket so that its peer sees a reset."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
