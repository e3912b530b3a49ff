"""Free ports on loopback that stay free while a server restarts."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

from freshet.errors import StackError

LOOPBACK = "127.0.0.1"
"""Address that every server of the stack binds."""

_LOWEST_PORT = 15_000
_ATTEMPTS_MAX = 500


class PortPicker:
    """Picks ports that nobody listens on, below the range of outgoing connections.

    The kernel takes ports for outgoing connections from its ephemeral range. A server that is
    killed and started again on its port would find a port from that range taken now and then.
    """

    def __init__(self) -> None:
        self._picked: set[int] = set()
        self._random = random.SystemRandom()

    def pick(self) -> int:
        """A free port, never the same twice.

        Raises:
            StackError: none was found.
        """
        for _ in range(_ATTEMPTS_MAX):
            port = self._random.randrange(_LOWEST_PORT, _ephemeral_range_start())
            if port not in self._picked and _is_free(port):
                self._picked.add(port)
                return port
        raise StackError(
            f"no free port on {LOOPBACK} from {_LOWEST_PORT} on; end what listens there"
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a connection of an earlier server that lingers is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind((LOOPBACK, port))
            return True
    return False


def _ephemeral_range_start() -> int:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
        return max(int(text.split()[0]), _LOWEST_PORT + 2_000)
    except (OSError, ValueError):
        return 32_768


def is_listening(port: int) -> bool:
    """Whether a server accepts connections on the port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
