"""The emulated WAN: how much it passes, what it adds, and how exactly it limits and delays."""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial

from benchmarks.context import Context
from benchmarks.figures import Aim, Figure, percentile, take_turns
from freshet.stack.ports import LOOPBACK
from freshet.wan.client import Wan

_LINK = "here->there"
_PIECE = bytes(256 * 1024)
_SINK, _ECHO = b"s", b"e"
_MESSAGE = bytes(100)
_BANDWIDTHS_BPS = (1e6, 10e6, 100e6, 1e9)
_DELAYS_MS = (5.0, 50.0, 150.0)


def run(context: Context) -> list[Figure]:
    """Sender, proxy and receiver are three processes."""
    with _server() as direct, Wan(context.folder("wan")) as wan:
        (linked,) = wan.open(_LINK, [direct])
        return [
            *_throughput(context, direct, linked),
            _added(context, direct, linked),
            *(_bandwidth(context, wan, linked, bps) for bps in _BANDWIDTHS_BPS),
            *(_delay(context, wan, linked, ms) for ms in _DELAYS_MS),
        ]


def _throughput(context: Context, direct: int, linked: int) -> list[Figure]:
    sent_bytes = (200 if context.quick else 2_000) * 1_000_000
    context.say(f"{sent_bytes / 1e6:,.0f} MB over one connection, directly and through the link")
    samples = take_turns(
        {
            "direct": lambda: sent_bytes / 1e6 / _send_s(direct, sent_bytes),
            "linked": lambda: sent_bytes / 1e6 / _send_s(linked, sent_bytes),
        },
        context.rounds,
    )
    baseline = Figure("one connection over loopback", "MB/s", samples["direct"])
    figure = Figure(
        "one connection through a link without limit",
        "MB/s",
        samples["linked"],
        baseline,
        Aim(200, at_least=True),
    )
    return [figure, baseline]


def _added(context: Context, direct: int, linked: int) -> Figure:
    trips = 200 if context.quick else 2_000
    context.say(f"{trips:,} round trips, directly and through the link")
    samples = take_turns(
        {
            "direct": lambda: _round_trip_ms(direct, trips),
            "linked": lambda: _round_trip_ms(linked, trips),
        },
        context.rounds,
    )
    added = tuple(a - b for a, b in zip(samples["linked"], samples["direct"], strict=True))
    return Figure(
        "added to a round trip by a link without delay",
        "ms",
        added,
        aim=Aim(1),
        note="medians of the round trips of 100 bytes",
        details={"direct_ms": samples["direct"], "linked_ms": samples["linked"]},
    )


def _bandwidth(context: Context, wan: Wan, linked: int, bps: float) -> Figure:
    seconds = 1 if context.quick else 3
    context.say(f"{bps / 1e6:g} Mbit/s")
    wan.set(_LINK, bandwidth_bps=bps)
    sent_bytes = int(bps / 8 * seconds)
    reached = tuple(
        sent_bytes * 8 / _send_s(linked, sent_bytes) / bps for _ in range(context.rounds)
    )
    wan.set(_LINK, bandwidth_bps=None)
    return Figure(f"reached of a bandwidth of {bps / 1e6:g} Mbit/s", "of 1", reached)


def _delay(context: Context, wan: Wan, linked: int, delay_ms: float) -> Figure:
    trips = 5 if context.quick else 20
    context.say(f"{delay_ms:g} ms each way")
    wan.set(_LINK, delay_ms=delay_ms)
    late = tuple(_round_trip_ms(linked, trips) / 2 - delay_ms for _ in range(context.rounds))
    wan.set(_LINK, delay_ms=0)
    return Figure(f"beyond a delay of {delay_ms:g} ms, each way", "ms", late, aim=Aim(2))


def _send_s(port: int, count_bytes: int) -> float:
    """Seconds from the first byte's departure until the receiver has said that it has all."""
    with _connected(port, _SINK) as connection:
        started = time.monotonic()
        for _ in range(count_bytes // len(_PIECE)):
            connection.sendall(_PIECE)
        connection.sendall(bytes(count_bytes % len(_PIECE)))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        return time.monotonic() - started


def _round_trip_ms(port: int, trips: int) -> float:
    with _connected(port, _ECHO) as connection:
        times = []
        for _ in range(trips):
            started = time.monotonic()
            connection.sendall(_MESSAGE)
            _read(connection, len(_MESSAGE))
            times.append((time.monotonic() - started) * 1e3)
        return percentile(times, 50)


@contextlib.contextmanager
def _connected(port: int, mode: bytes) -> Iterator[socket.socket]:
    with socket.create_connection((LOOPBACK, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(mode)
        _read(connection, 1)  # the way is open to its end
        yield connection


@contextlib.contextmanager
def _server() -> Iterator[int]:
    """The receiver's process; gives its port."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(listener,), daemon=True
        )
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.join()


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        mode = connection.recv(1)
        connection.sendall(mode)
        buffer = bytearray(len(_PIECE))
        for count in iter(partial(connection.recv_into, buffer), 0):
            if mode == _ECHO:
                connection.sendall(memoryview(buffer)[:count])
        if mode == _SINK:
            connection.sendall(mode)


def _read(connection: socket.socket, count: int) -> None:
    while count > 0:
        part = connection.recv(count)
        if not part:
            raise ConnectionError("the receiver ended the connection")
        count -= len(part)
