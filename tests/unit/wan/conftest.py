"""A proxy for all tests, and for each a link of its own."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from freshet.stack.ports import LOOPBACK
from freshet.wan.client import LinkState, Wan

TIMEOUT_S = 20.0
"""Of each operation on a socket: a test that hangs fails instead."""

_NARROW_BYTES = 32 * 1024
_NUMBERS = itertools.count()


@dataclass
class Way:
    """A link to a server of the test."""

    wan: Wan
    link: str
    port: int
    listener: socket.socket
    _sockets: ExitStack
    client_buffer_bytes: int | None = None

    @property
    def state(self) -> LinkState:
        """Of the link."""
        return self.wan.state(self.link)

    def dial(self) -> socket.socket:
        """The client's end of a new connection."""
        client = self._sockets.enter_context(socket.socket())
        client.settimeout(TIMEOUT_S)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.client_buffer_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.client_buffer_bytes)
        client.connect((LOOPBACK, self.port))
        return client

    def accept(self) -> socket.socket:
        """The server's end of the next connection."""
        server, _ = self.listener.accept()
        server.settimeout(TIMEOUT_S)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._sockets.enter_context(server)

    def narrow(self) -> None:
        """Has both ends of later connections receive into small buffers of the kernel."""
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _NARROW_BYTES)
        self.client_buffer_bytes = _NARROW_BYTES

    def connect(self) -> tuple[socket.socket, socket.socket]:
        """Both ends of a new connection."""
        client = self.dial()
        return client, self.accept()


@pytest.fixture(scope="session")
def wan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wan]:
    """The proxy's process."""
    with Wan(tmp_path_factory.mktemp("wan")) as running:
        yield running


@pytest.fixture
def way(wan: Wan) -> Iterator[Way]:
    """A link without limit or delay."""
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.create_server((LOOPBACK, 0)))
        listener.settimeout(TIMEOUT_S)
        link = f"here->there{next(_NUMBERS)}"
        (port,) = wan.open(link, [listener.getsockname()[1]])
        try:
            yield Way(wan, link, port, listener, sockets)
        finally:
            wan.heal(link)
