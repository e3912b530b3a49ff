"""Waiting in the proxy's event loop: until a time, a change, or a turn on a link's bandwidth."""

from __future__ import annotations

import asyncio

_BURST_S = 0.02
"""How long a bucket fills up while nobody sends. Longer than the event loop is ever late, or the
link would fall short of its bandwidth on a busy machine."""

_PIECE_S = 0.005
"""How long one piece occupies the link at most: what others wait for when their turn comes."""

PIECE_BYTES_MAX = 256 * 1024
_PIECE_BYTES_MIN = 1024


class Wakeup:
    """Lets one task wait until a time or until it is woken, whichever comes first.

    The waiting task looks at its condition before and after; a wake-up that nobody waits for is
    forgotten.
    """

    def __init__(self) -> None:
        """Nobody waits yet."""
        self._waiting: asyncio.Future[None] | None = None

    async def wait(self, until_s: float | None = None) -> None:
        """Waits for :meth:`wake`.

        Args:
            until_s: but no longer than until this time of the event loop's clock.
        """
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_at(until_s, self.wake) if until_s is not None else None
        try:
            await self._waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """Wakes the task that waits."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class TokenBucket:
    """Shares a bandwidth among the connections that send, piece by piece, in order of arrival."""

    def __init__(self) -> None:
        """A bucket without a limit."""
        self._bytes_per_s: float | None = None
        self._tokens = 0.0
        self._counted_s = 0.0
        self._turn = asyncio.Lock()  # it is fair: first come, first served
        self._change = Wakeup()

    @property
    def piece_bytes(self) -> int:
        """How much one connection should send at once."""
        if self._bytes_per_s is None:
            return PIECE_BYTES_MAX
        fitting = int(self._bytes_per_s * _PIECE_S)
        return min(max(fitting, _PIECE_BYTES_MIN), PIECE_BYTES_MAX)

    def set_bandwidth(self, bandwidth_bps: float | None) -> None:
        """Changes the bandwidth, also for those that wait; bit/s, None for no limit."""
        self._count()
        self._bytes_per_s = None if bandwidth_bps is None else bandwidth_bps / 8
        self._tokens = 0.0
        self._change.wake()

    async def take(self, count_bytes: int) -> None:
        """Waits until so many bytes, at most a piece, have passed."""
        if self._bytes_per_s is None:
            return
        async with self._turn:
            while (missing := self._missing(count_bytes)) > 0:
                assert self._bytes_per_s is not None, "without a limit nothing is missing"
                loop = asyncio.get_running_loop()
                await self._change.wait(loop.time() + missing / self._bytes_per_s)
            self._tokens -= count_bytes

    def _missing(self, count_bytes: int) -> float:
        self._count()
        if self._bytes_per_s is None:
            return 0.0
        # A piece that was read before the bandwidth fell may exceed the bucket; the next one pays.
        return min(count_bytes, self._capacity(self._bytes_per_s)) - self._tokens

    def _count(self) -> None:
        """Fills the bucket for the time that has passed."""
        now_s = asyncio.get_running_loop().time()
        passed_s, self._counted_s = now_s - self._counted_s, now_s
        if self._bytes_per_s is not None:
            filled = self._tokens + passed_s * self._bytes_per_s
            self._tokens = min(filled, self._capacity(self._bytes_per_s))

    def _capacity(self, bytes_per_s: float) -> float:
        return max(bytes_per_s * _BURST_S, float(self.piece_bytes))
