"""Samples what a long run must not use more and more of, of every process of a deployment.

Heap is what is left after a full collection: anything else is garbage that nobody has looked at. A
collection takes a moment, so it comes less often than the other samples.
"""

from __future__ import annotations

import contextlib
import math
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from freshet.stack.flink_rest import FlinkRest
from tests.integration.soak.flatness import Tolerance

_JCMD_DEADLINE_S = 60.0
_COLLECT = "GC.run\nGC.heap_info\n"
_HEAP_USED = re.compile(r"^ *(?:garbage-first heap|def new|tenured).* used (\d+)K", re.MULTILINE)


@dataclass(frozen=True)
class Kind:
    """Something that is sampled."""

    name: str
    unit: str
    tolerance: Tolerance


HEAP = Kind("heap after collection", "MB", Tolerance(0.05, 6.0))
HANDLES = Kind("file handles", "", Tolerance(0.02, 4.0))
THREADS = Kind("threads", "", Tolerance(0.02, 3.0))
STATE = Kind("state", "MB", Tolerance(0.05, 0.5))
REDIS = Kind("Redis memory", "MB", Tolerance(0.02, 0.5))
# Told, not judged: it has what is mapped from files, too, and JVMs go on taking some for long.
RESIDENT = Kind("resident memory", "MB", Tolerance(0.0, math.inf))
KINDS = (HEAP, RESIDENT, STATE, HANDLES, THREADS, REDIS)


class Series:
    """One quantity of one process, job or server, over time."""

    def __init__(self, kind: Kind, of: str) -> None:
        self.kind = kind
        self.of = of
        self.times_s: list[float] = []
        self.values: list[float] = []

    def after(self, time_s: float) -> tuple[list[float], list[float]]:
        """The samples from a time on."""
        kept = [(t, v) for t, v in zip(self.times_s, self.values, strict=True) if t >= time_s]
        return [t for t, _ in kept], [v for _, v in kept]


class Sampler:
    """Takes samples on a thread of its own while its block runs."""

    def __init__(
        self,
        processes: Mapping[str, int],
        java: Mapping[str, int],
        stores: Mapping[str, str],
        rest: FlinkRest,
        jobs: Mapping[str, str],
        resident_mb: Callable[[], Mapping[str, float]],
        interval_s: float,
        heap_interval_s: float,
    ) -> None:
        """Says what to sample.

        Args:
            processes: ids by name.
            java: those of JVMs.
            stores: URLs of Redis servers, by name.
            rest: of the Flink that has the jobs.
            jobs: ids by kind.
            resident_mb: what processes have in memory, by role, MB.
            interval_s: between samples, seconds.
            heap_interval_s: between collections.
        """
        self._processes = dict(processes)
        self._java = dict(java)
        self._stores = {name: Redis.from_url(url) for name, url in stores.items()}
        self._rest = rest
        self._jobs = dict(jobs)
        self._resident_mb = resident_mb
        self._interval_s = interval_s
        self._heap_interval_s = heap_interval_s
        self._series: dict[tuple[str, str], Series] = {}
        self._begun_s = time.monotonic()
        self._stop = threading.Event()
        self._failures: list[BaseException] = []

    @property
    def series(self) -> list[Series]:
        """All of them, by kind and name."""
        order = [kind.name for kind in KINDS]
        return sorted(self._series.values(), key=lambda s: (order.index(s.kind.name), s.of))

    @contextlib.contextmanager
    def running(self) -> Iterator[Sampler]:
        """Samples until the block ends; what failed meanwhile is raised then."""
        thread = threading.Thread(target=self._run, name="soak-sampler", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()
        if self._failures:
            raise self._failures[0]

    def check(self) -> None:
        """Raises what made sampling fail."""
        if self._failures:
            raise self._failures[0]

    def _run(self) -> None:
        try:
            next_heap_s = 0.0
            while not self._stop.is_set():
                begun_s = time.monotonic()
                self._sample_processes()
                self._sample_state()
                self._sample_stores()
                if begun_s >= next_heap_s:
                    self._sample_heaps()
                    next_heap_s = begun_s + self._heap_interval_s
                self._stop.wait(max(0.1, begun_s + self._interval_s - time.monotonic()))
        except BaseException as failure:
            self._failures.append(failure)

    def _add(self, kind: Kind, of: str, value: float) -> None:
        series = self._series.setdefault((kind.name, of), Series(kind, of))
        series.times_s.append(time.monotonic() - self._begun_s)
        series.values.append(value)

    def _sample_processes(self) -> None:
        for name, pid in self._processes.items():
            self._add(HANDLES, name, len(list(Path(f"/proc/{pid}/fd").iterdir())))
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            found = re.search(r"^Threads:\s+(\d+)$", status, re.MULTILINE)
            assert found is not None, status
            self._add(THREADS, name, int(found[1]))
        for role, resident_mb in self._resident_mb().items():
            self._add(RESIDENT, role, resident_mb)

    def _sample_state(self) -> None:
        for kind, job in self._jobs.items():
            completed = self._rest.get(f"/jobs/{job}/checkpoints")["latest"]["completed"]
            if completed is not None:
                self._add(STATE, f"{kind} job", completed["state_size"] / 1e6)

    def _sample_stores(self) -> None:
        for name, server in self._stores.items():
            self._add(REDIS, name, server.info("memory")["used_memory"] / 1e6)

    def _sample_heaps(self) -> None:
        for name, pid in self._java.items():
            self._add(HEAP, name, heap_after_collection_mb(pid))


def heap_after_collection_mb(pid: int) -> float:
    """Has a JVM collect its garbage, and tells what is left, MB."""
    done = subprocess.run(
        ["jcmd", str(pid), "-f", "/dev/stdin"],
        input=_COLLECT,
        capture_output=True,
        text=True,
        timeout=_JCMD_DEADLINE_S,
        check=True,
    )
    used = [int(kilobytes) for kilobytes in _HEAP_USED.findall(done.stdout)]
    assert used, done.stdout
    return sum(used) / 1e3
