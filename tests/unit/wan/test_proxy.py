"""The proxy does to plain sockets what a WAN does, and counts it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import socket
import struct
import time
from functools import partial

import pytest

from freshet.errors import ConfigError, StackError
from freshet.stack.ports import LOOPBACK
from freshet.wan.client import Wan
from freshet.wan.proxy import BUFFER_BYTES
from freshet.wan.shape import Direction
from tests.stack.waiting import wait_for
from tests.unit.wan.conftest import TIMEOUT_S, Way

QUIET_S = 0.3
"""How long nothing must come where nothing may come. A wait, but not for a condition: a fault
that lets bytes pass is seen within it, and one that holds them never fails because of it."""


LINGER_NOT = struct.pack("ii", 1, 0)
"""Closing a socket resets its connection."""


def receive(end: socket.socket, count: int) -> bytes:
    """So many bytes; fewer if the sender ends."""
    parts: list[bytes] = []
    while count > 0 and (part := end.recv(min(count, 1 << 20))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def pattern(count: int) -> bytes:
    """Bytes that show when they are lost, doubled or out of order."""
    return b"".join(number.to_bytes(4, "big") for number in range(count // 4))


def transfer_s(sender: socket.socket, receiver: socket.socket, data: bytes) -> float:
    """Seconds from the first byte's departure to the last one's arrival."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        started = time.monotonic()
        sending = thread.submit(sender.sendall, data)
        assert receive(receiver, len(data)) == data
        took_s = time.monotonic() - started
        sending.result()
    return took_s


def round_trip_s(client: socket.socket, server: socket.socket) -> float:
    """Seconds that one byte takes there and back."""
    started = time.monotonic()
    client.sendall(b"?")
    assert receive(server, 1) == b"?"
    server.sendall(b"!")
    assert receive(client, 1) == b"!"
    return time.monotonic() - started


def has_held(way: Way, direction: Direction, count: int) -> bool:
    """Whether the link has held so many bytes of a direction."""
    lanes = {Direction.FORWARD: way.state.forward, Direction.BACKWARD: way.state.backward}
    return lanes[direction].bytes_held == count


def assert_quiet(end: socket.socket) -> None:
    """Nothing comes, not even the end of the connection."""
    end.settimeout(QUIET_S)
    with pytest.raises(TimeoutError):
        end.recv(1)
    end.settimeout(TIMEOUT_S)


def test_passes_both_directions_and_the_end_of_each(way: Way) -> None:
    client, server = way.connect()
    there, back = pattern(3_000_000), pattern(1_000_000)[::-1]

    transfer_s(client, server, there)
    client.shutdown(socket.SHUT_WR)
    assert server.recv(1) == b""
    # The other half is still open.
    transfer_s(server, client, back)
    server.close()
    assert client.recv(1) == b""

    state = way.state
    assert (state.forward.bytes_in, state.forward.bytes_out) == (len(there), len(there))
    assert (state.backward.bytes_in, state.backward.bytes_out) == (len(back), len(back))
    assert state.connections.opened == 1
    assert state.connections.reset == 0


@pytest.mark.parametrize("connections", [1, 4])
def test_all_connections_share_the_bandwidth(way: Way, connections: int) -> None:
    bandwidth_bps, seconds = 16e6, 0.8
    way.wan.set(way.link, bandwidth_bps=bandwidth_bps)
    data = pattern(int(bandwidth_bps / 8 * seconds / connections))
    ends = [way.connect() for _ in range(connections)]

    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(connections) as threads:
        took_s = list(threads.map(lambda pair: transfer_s(*pair, data), ends))
    all_s = time.monotonic() - started

    # Never faster than the link; slower only if the machine is.
    assert 0.9 * seconds < all_s < 3 * seconds
    # None of them had to wait for the others to end.
    assert min(took_s) > 0.5 * max(took_s)


def test_a_bandwidth_applies_in_its_direction_only(way: Way) -> None:
    way.wan.set(way.link, Direction.BACKWARD, bandwidth_bps=8e6)
    client, server = way.connect()
    data = pattern(500_000)

    there_s = transfer_s(client, server, data)
    back_s = transfer_s(server, client, data)

    assert back_s > 0.45
    assert there_s < back_s / 3


def test_a_wider_link_helps_those_that_wait(way: Way) -> None:
    way.wan.set(way.link, bandwidth_bps=1e3)
    client, server = way.connect()
    data = pattern(200_000)
    client.sendall(data)
    assert_quiet(server)  # the first piece takes eight seconds

    way.wan.set(way.link, bandwidth_bps=None)

    assert receive(server, len(data)) == data


def test_a_delay_is_added_each_way(way: Way) -> None:
    client, server = way.connect()
    # The fastest, because a busy machine adds to the others.
    plain_s = min(round_trip_s(client, server) for _ in range(20))
    way.wan.set(way.link, Direction.FORWARD, delay_ms=60)
    way.wan.set(way.link, Direction.BACKWARD, delay_ms=20)
    slow_s = min(round_trip_s(client, server) for _ in range(5))

    assert 0.079 < slow_s - plain_s < 0.14


def test_a_delay_costs_no_bandwidth(way: Way) -> None:
    way.wan.set(way.link, bandwidth_bps=80e6, delay_ms=100)
    client, server = way.connect()

    took_s = transfer_s(client, server, pattern(5_000_000))

    # 0.5 s for the bandwidth and 0.1 s for the way; waiting for each piece to arrive would take
    # tens of seconds.
    assert 0.55 < took_s < 3


def test_opening_a_connection_takes_a_round_trip(way: Way) -> None:
    way.wan.set(way.link, delay_ms=50)
    started = time.monotonic()
    client = way.dial()
    client.sendall(b"x")
    assert receive(way.accept(), 1) == b"x"
    assert time.monotonic() - started >= 0.149


def test_jitter_varies_the_delay(way: Way) -> None:
    way.wan.set(way.link, delay_ms=10, jitter_ms=10)
    client, server = way.connect()
    took_s = [round_trip_s(client, server) for _ in range(20)]
    assert max(took_s) - min(took_s) > 0.005


def test_jitter_keeps_the_order(way: Way) -> None:
    # At this bandwidth it travels in 16 pieces, each with a delay of its own.
    way.wan.set(way.link, bandwidth_bps=4e6, delay_ms=20, jitter_ms=20)
    client, server = way.connect()
    transfer_s(client, server, pattern(40_000))


@pytest.mark.parametrize("direction", list(Direction))
def test_a_stall_holds_and_loses_nothing(way: Way, direction: Direction) -> None:
    client, server = way.connect()
    round_trip_s(client, server)
    way.wan.stall(way.link, direction)
    there, back = pattern(600_000), pattern(400_000)[::-1]
    client.sendall(there)
    server.sendall(back)

    arriving = {Direction.FORWARD: (server, there), Direction.BACKWARD: (client, back)}
    for each, (receiver, data) in arriving.items():
        if each in direction.each:
            assert_quiet(receiver)
            wait_for(partial(has_held, way, each, len(data)), "all bytes are held")
        else:
            assert receive(receiver, len(data)) == data
            assert has_held(way, each, 0)
    assert way.state.stalled == set(direction.each)

    way.wan.heal(way.link)
    for each in direction.each:
        receiver, data = arriving[each]
        assert receive(receiver, len(data)) == data
    assert way.state.connections.open == 1
    assert way.state.connections.reset == 0


def test_a_stall_holds_the_end_of_a_connection(way: Way) -> None:
    client, server = way.connect()
    way.wan.stall(way.link)
    client.sendall(b"last words")
    client.close()
    assert_quiet(server)

    way.wan.heal(way.link)

    assert receive(server, 100) == b"last words"


def test_a_stalled_sender_feels_it(way: Way) -> None:
    client, server = way.connect()
    way.wan.stall(way.link)
    client.settimeout(QUIET_S)
    data, sent = pattern(1 << 20), 0
    is_full = False
    while not is_full:
        assert sent < 4 * BUFFER_BYTES, "the sender never feels it"
        try:
            sent += client.send(data[sent % len(data) :])
        except TimeoutError:
            is_full = way.state.forward.bytes_buffered >= BUFFER_BYTES

    # What the link takes is bounded; beyond are the kernel's buffers, the sender's at most 4 MB.
    assert way.state.forward.bytes_buffered < BUFFER_BYTES + (1 << 20)
    assert sent < BUFFER_BYTES + 8e6

    way.wan.heal(way.link)
    arrived = receive(server, sent)
    assert arrived == (data * (sent // len(data) + 1))[:sent]
    wait_for(lambda: way.state.forward.bytes_buffered == 0, "nothing is left")


def test_a_reset_is_seen_at_both_ends_once(way: Way) -> None:
    ends = [way.connect() for _ in range(3)]
    for client, server in ends:
        round_trip_s(client, server)

    way.wan.reset(way.link)

    for end in (end for pair in ends for end in pair):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    assert way.state.connections.reset == 3
    round_trip_s(*way.connect())
    assert way.state.connections.opened == 4


@pytest.mark.parametrize("lost", Direction.BOTH.each)
def test_a_reset_of_one_direction_delivers_the_other(way: Way, lost: Direction) -> None:
    # Delivered to the kernel is not received: a reset must not overtake what waits there.
    way.narrow()
    client, server = way.connect()
    round_trip_s(client, server)
    way.wan.stall(way.link)
    there, back = pattern(3_000_000), pattern(2_000_000)[::-1]
    client.sendall(there)
    server.sendall(back)
    wait_for(lambda: way.state.bytes_held == len(there) + len(back), "both are held")

    way.wan.reset(way.link, lost)
    way.wan.heal(way.link)

    kept, data = (client, back) if lost is Direction.FORWARD else (server, there)
    assert receive(kept, len(data)) == data
    for end in (client, server):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    dropped = way.state.forward.bytes_dropped, way.state.backward.bytes_dropped
    assert dropped == ((len(there), 0) if lost is Direction.FORWARD else (0, len(back)))


@pytest.mark.parametrize("direction", list(Direction))
def test_a_cut_drops_and_refuses_until_it_is_healed(way: Way, direction: Direction) -> None:
    client, server = way.connect()
    round_trip_s(client, server)

    way.wan.cut(way.link, direction)

    for end in (client, server):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    with pytest.raises(ConnectionError):
        way.dial().recv(1)
    state = way.state
    assert state.cut == set(direction.each)
    assert (state.connections.reset, state.connections.refused) == (1, 1)
    assert state.connections.open == 0

    way.wan.heal(way.link)
    round_trip_s(*way.connect())
    assert way.state.connections.refused == 1


def test_healing_a_stall_leaves_a_cut(way: Way) -> None:
    way.wan.cut(way.link)
    way.wan.stall(way.link)
    way.wan.heal(way.link, of="stall")
    assert way.state.stalled == set()
    with pytest.raises(ConnectionError):
        way.dial().recv(1)


def test_a_reset_by_an_end_reaches_the_other(way: Way) -> None:
    client, server = way.connect()
    round_trip_s(client, server)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
    server.close()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert way.state.connections.reset == 0  # no fault of the WAN


def test_servers_that_reset_busy_connections_leave_none_behind(way: Way) -> None:
    clients = []
    for _ in range(20):
        client, server = way.connect()
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(bytes(1 << 16))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        server.close()
        clients.append(client)

    wait_for(lambda: way.state.connections.open == 0, "the link has closed its ends")
    for client in clients:
        client.settimeout(TIMEOUT_S)
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_a_second_cut_loses_what_the_first_let_through(way: Way) -> None:
    client, server = way.connect()
    round_trip_s(client, server)
    way.wan.stall(way.link)
    server.sendall(b"answer")
    wait_for(lambda: way.state.bytes_held == len(b"answer"), "it is held")
    way.wan.reset(way.link, Direction.FORWARD)
    assert way.state.connections.open == 1

    way.wan.cut(way.link)

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert way.state.backward.bytes_dropped == len(b"answer")
    assert way.state.connections.reset == 1


def test_a_server_that_does_not_listen_is_no_open_connection(way: Way) -> None:
    way.listener.close()
    with pytest.raises(ConnectionError):
        way.dial().recv(1)
    assert way.state.connections.unanswered == 1


def test_links_know_nothing_of_each_other(way: Way, wan: Wan) -> None:
    (port,) = wan.open(f"{way.link}-too", [way.listener.getsockname()[1]])
    wan.cut(way.link)
    wan.stall(way.link)
    other = socket.create_connection((LOOPBACK, port), timeout=TIMEOUT_S)
    with other:
        round_trip_s(other, way.accept())
    assert wan.state(f"{way.link}-too").bytes_out == 2


def test_within_a_block_a_link_has_another_shape(way: Way) -> None:
    way.wan.set(way.link, delay_ms=5)
    shape = way.wan.shape(way.link, Direction.FORWARD)
    with way.wan.shaped(way.link, type(shape)(bandwidth_bps=1e6), Direction.FORWARD):
        assert way.wan.shape(way.link, Direction.FORWARD).bandwidth_bps == 1e6
        assert way.wan.shape(way.link, Direction.BACKWARD) == shape
    assert way.wan.shape(way.link, Direction.FORWARD) == shape


def test_mistakes_are_told(way: Way) -> None:
    with pytest.raises(StackError, match=r"no link nowhere; it has .*there"):
        way.wan.set("nowhere", delay_ms=1)
    with pytest.raises(StackError, match="there is no link nowhere"):
        way.wan.stall("nowhere")
    with pytest.raises(StackError, match=r"open already"):
        way.wan.open(way.link, [1])
    with pytest.raises(ConfigError, match=r"2 problems: bandwidth_bps.*delay_ms"):
        way.wan.set(way.link, bandwidth_bps=0, delay_ms=-1)


def test_a_proxy_that_dies_is_told_with_its_log(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Wan(tmp_path_factory.mktemp("wan")) as wan:
        assert wan.process is not None
        wan.process.kill()
        with pytest.raises(StackError, match=r"WAN proxy did not answer 'counters'"):
            wan.states()
