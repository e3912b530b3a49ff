"""Makes a scenario's faults happen: at their times, or one by one under a test's control."""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from freshet.errors import FreshetError, StackError
from freshet.wan.client import LinkState
from freshet.wan.regions import Regions
from freshet.wan.scenario import SERVER_KINDS, Fault, Kind, Link

_END, _BEGIN = 0, 1
_Step = tuple[float, int, int, Fault]


@dataclass
class Fired:
    """A fault that has happened, and what came of it."""

    fault: Fault
    started_s: float
    """``time.monotonic()`` when it had taken effect."""

    before: dict[str, LinkState]
    """States of the links that it befalls, just before."""

    healed_s: float | None = None
    """``time.monotonic()`` when it was over; None while it lasts."""

    after: dict[str, LinkState] | None = None
    """States of the links just after; None while it lasts."""

    @property
    def bytes_held(self) -> int:
        """Bytes that it held, for a stall; known when it is over."""
        return self._grown(lambda state: state.bytes_held)

    @property
    def bytes_dropped(self) -> int:
        """Bytes on their way that it lost, for a cut or a reset; known when it is over."""
        return self._grown(lambda state: state.bytes_dropped)

    @property
    def connections_reset(self) -> int:
        """Connections that it reset; known when it is over."""
        return self._grown(lambda state: state.connections.reset)

    @property
    def connections_refused(self) -> int:
        """Connections that it refused; known when it is over."""
        return self._grown(lambda state: state.connections.refused)

    def _grown(self, count: Callable[[LinkState], int]) -> int:
        if self.after is None:
            raise StackError(f"{self.fault} is not over, so what it did is not known yet")
        return sum(count(self.after[link]) - count(self.before[link]) for link in self.after)


@contextlib.contextmanager
def fired(regions: Regions, fault: Fault) -> Iterator[Fired]:
    """Holds while the fault is there, and heals it at the end, whatever happened meanwhile.

    Its times are not looked at: the block is its duration.

    Raises:
        ConfigError: the fault makes no sense in the regions' scenario.
        StackError: it cannot be done, or be healed.
    """
    replace(regions.scenario, faults=(fault,))  # checks it
    links = regions.scenario.links_of(fault) if fault.kind not in SERVER_KINDS else ()
    before = _states(regions, links)
    with contextlib.ExitStack() as healing:
        _FIRE[fault.kind](regions, fault, links, healing)
        record = Fired(fault, time.monotonic(), before)
        yield record
    record.after = _states(regions, links)
    record.healed_s = time.monotonic()


class FaultScript:
    """Makes faults happen at their times, on a thread of its own.

    A server takes seconds to start again; meanwhile faults of links come at their times, those of
    servers wait. A fault that came late still ends at its time.

    As a context manager it begins with the block; at the end what still lasts is healed and what
    has not come yet is left out.
    """

    def __init__(self, regions: Regions, faults: Sequence[Fault] | None = None) -> None:
        """Describes it.

        Args:
            regions: that run.
            faults: None for the scenario's.

        Raises:
            ConfigError: the faults make no sense in the regions' scenario.
        """
        self.fired: list[Fired] = []
        """What has happened so far, in the order in which it began."""

        self.started_s = 0.0
        """``time.monotonic()`` when the script began."""

        self._regions = regions
        self._faults = regions.scenario.faults if faults is None else tuple(faults)
        replace(regions.scenario, faults=self._faults)  # checks them
        self._stop = threading.Event()
        self._failure: FreshetError | None = None
        self._restarts: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run, name="fault script", daemon=True)

    def __enter__(self) -> FaultScript:
        self.started_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def wait(self, deadline_s: float) -> None:
        """Waits until every fault has come and gone.

        Args:
            deadline_s: seconds from now.

        Raises:
            StackError: they have not, or one could not be made to happen.
        """
        self._thread.join(deadline_s)
        if self._failure is not None:
            raise self._failure
        if self._thread.is_alive():
            raise StackError(
                f"{len(self.fired)} of {len(self._faults)} faults have come, and not all are over,"
                f" within {deadline_s:g} s"
            )

    def _run(self) -> None:
        # Ends come before what begins at the same time: they may befall the same link.
        steps: list[_Step] = [
            (fault.start_s, _BEGIN, place, fault) for place, fault in enumerate(self._faults)
        ]
        heapq.heapify(steps)
        lasting: dict[int, contextlib.ExitStack] = {}
        try:
            while steps:
                at_s, what, place, fault = heapq.heappop(steps)
                if self._stop.wait(max(0.0, self.started_s + at_s - time.monotonic())):
                    return
                if what == _END:
                    self._end(fault, lasting.pop(place))
                    continue
                if fault.kind in SERVER_KINDS:
                    self._await_restarts()
                healing = contextlib.ExitStack()
                self.fired.append(healing.enter_context(fired(self._regions, fault)))
                lasting[place] = healing
                heapq.heappush(steps, (fault.end_s, _END, place, fault))
        except FreshetError as failure:
            self._failure = failure
        finally:
            for healing in lasting.values():
                self._heal(healing)
            self._await_restarts()

    def _end(self, fault: Fault, healing: contextlib.ExitStack) -> None:
        if fault.kind not in SERVER_KINDS:
            healing.close()
            return
        restart = threading.Thread(target=self._heal, args=(healing,), name="restart", daemon=True)
        self._restarts.append(restart)
        restart.start()

    def _await_restarts(self) -> None:
        while self._restarts:
            self._restarts.pop().join()

    def _heal(self, healing: contextlib.ExitStack) -> None:
        try:
            healing.close()
        except FreshetError as failure:
            self._failure = self._failure or failure


def _states(regions: Regions, links: Sequence[Link]) -> dict[str, LinkState]:
    if not links:
        return {}
    states = regions.wan.states()
    return {link.name: states[link.name] for link in links}


def _stall(
    regions: Regions, fault: Fault, links: Sequence[Link], healing: contextlib.ExitStack
) -> None:
    for link in links:
        healing.callback(regions.wan.heal, link.name, fault.direction, "stall")
        regions.wan.stall(link.name, fault.direction)


def _cut(
    regions: Regions, fault: Fault, links: Sequence[Link], healing: contextlib.ExitStack
) -> None:
    for link in links:
        healing.callback(regions.wan.heal, link.name, fault.direction, "cut")
        regions.wan.cut(link.name, fault.direction)


def _reset(
    regions: Regions, fault: Fault, links: Sequence[Link], healing: contextlib.ExitStack
) -> None:
    for link in links:
        regions.wan.reset(link.name, fault.direction)


def _slow(
    regions: Regions, fault: Fault, links: Sequence[Link], healing: contextlib.ExitStack
) -> None:
    for link in links:
        healing.enter_context(regions.wan.shaped(link.name, fault.shape, fault.direction))


def _kill(
    regions: Regions, fault: Fault, links: Sequence[Link], healing: contextlib.ExitStack
) -> None:
    assert fault.region is not None and fault.server is not None, "the scenario was checked"
    regions.kill(fault.region, fault.server)
    keep_data = fault.kind is Kind.KILL
    healing.callback(regions.restart, fault.region, fault.server, keep_data=keep_data)


_FIRE: dict[Kind, Callable[[Regions, Fault, Sequence[Link], contextlib.ExitStack], None]] = {
    Kind.STALL: _stall,
    Kind.CUT: _cut,
    Kind.RESET: _reset,
    Kind.SLOW: _slow,
    Kind.KILL: _kill,
    Kind.EMPTY: _kill,
}
