"""The proxy's process: ``python -m freshet.wan.control PORT``, told what to do in lines of JSON.

A line ``{"do": "stall", "link": "a->b", "direction": "both"}`` is answered by one line, either
``{"result": ...}`` or ``{"error": "..."}``. It has an event loop and a process of its own, so that
whatever else a test does on the machine slows it as little as possible.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from freshet.stack.ports import LOOPBACK
from freshet.wan.proxy import Link
from freshet.wan.shape import Direction, Shape

Command = dict[str, Any]


class Control:
    """The links, and the commands that change them."""

    def __init__(self) -> None:
        """Starts without links."""
        self._links: dict[str, Link] = {}
        self._commands: dict[str, Callable[[Command], Awaitable[object]]] = {
            "open": self._open,
            "set": self._set,
            "stall": self._stall,
            "cut": self._cut,
            "reset": self._reset,
            "heal": self._heal,
            "counters": self._counters,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the commands of one client."""
        while line := await reader.readline():
            writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, line: bytes) -> dict[str, object]:
        try:
            command = json.loads(line)
            return {"result": await self._commands[command["do"]](command)}
        except (ValueError, KeyError, TypeError, OSError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    async def _open(self, command: Command) -> None:
        name = command["link"]
        if name in self._links:
            raise ValueError(f"link {name} is open already")
        routes = {int(port): int(target) for port, target in command["routes"].items()}
        link = Link(name, routes)
        link.open()
        self._links[name] = link

    async def _set(self, command: Command) -> None:
        self._link(command).set_shape(Shape(**command["shape"]), _direction(command))

    async def _stall(self, command: Command) -> None:
        self._link(command).stall(_direction(command))

    async def _cut(self, command: Command) -> None:
        await self._link(command).cut(_direction(command))

    async def _reset(self, command: Command) -> None:
        await self._link(command).reset(_direction(command))

    async def _heal(self, command: Command) -> None:
        link, direction = self._link(command), _direction(command)
        if command["of"] in ("cut", "all"):
            link.mend(direction)
        if command["of"] in ("stall", "all"):
            link.resume(direction)

    async def _counters(self, command: Command) -> dict[str, object]:
        return {name: link.describe() for name, link in self._links.items()}

    def _link(self, command: Command) -> Link:
        name = command["link"]
        if name not in self._links:
            raise ValueError(f"there is no link {name}, only {', '.join(self._links) or 'none'}")
        return self._links[name]


def _direction(command: Command) -> Direction:
    return Direction(command.get("direction", Direction.BOTH))


async def _serve(port: int) -> None:
    # Each connection takes two descriptors, and the usual limit is 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = await asyncio.start_server(Control().serve, LOOPBACK, port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
