"""How fast the multicast job and a region job are, one subtask each, and what a change takes.

Home and one region, and links without limit or delay, so that nothing but the jobs and the servers
counts.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arrivals import in_stores
from benchmarks.change_stream import Changes, Sender
from benchmarks.chunk_stream import CHANGES, SHARDS, ChunkSender
from benchmarks.context import Context
from benchmarks.figures import Aim, Figure, percentile
from benchmarks.progress import Report, Reports, reports
from benchmarks.wide_area import HOME, WideArea, scenario, wait_for, wide_area
from freshet.stack.layout import java
from freshet.topics import Topic, create_missing_topics, describe_log
from freshet.wan.faults import fired
from freshet.wan.scenario import Fault, Kind

AWAY = "aws:sa-east-1"

_SLO_MS = 50
_P99_AIM_MS = 100
_FRESHNESS_PER_S = 20_000
_DRAIN_SLO_MS = 1_000
_WARM_CHANGES = 100_000
_DEADLINE_S = 120.0
_MIDDLE = (0.1, 0.9)
"""Of what is drained: the rate is of what is between."""


def run(context: Context) -> list[Figure]:
    """Each part on tables of its own."""
    changes = 200_000 if context.quick else 2_000_000
    backlog = 30_000 if context.quick else 300_000
    with wide_area(context, scenario({(HOME, AWAY): 0.0}, (AWAY,), None)) as area:
        load = os.getloadavg()[0]
        figures = [
            _region(context, area, changes),
            *_multicast(context, area, changes),
            *_freshness(context, area),
            *_backlog(context, area, backlog),
        ]
    note = f"load of the machine {load:.1f} to {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores"
    context.say(note)
    return figures


def _region(context: Context, area: WideArea, changes: int) -> Figure:
    """The inbox is full before the job starts."""
    context.say(f"{changes:,} changes through a region job")
    table = "drained_region"
    file = area.define(table, _DRAIN_SLO_MS)
    area.create_topics(file, AWAY)
    log = describe_log(area.config(HOME), f"changes.{table}")
    sender = ChunkSender(area.regions[AWAY].bootstrap, HOME, AWAY, table, log.id)
    sent = sender.send(Changes(), changes)
    with reports(area.regions[HOME].bootstrap, table) as heard:
        area.submit_region(file, AWAY)
        rate = _drain_rate(heard, AWAY, _taken, 0, sent)
        area.cancel()
    return Figure(
        "changes through a region job",
        "changes/s",
        (rate,),
        note=f"chunks of {CHANGES:,} changes, Zipf over 20,000 keys",
    )


def _taken(report: Report) -> int:
    """Changes that a region is done with."""
    return int(report["applied"] + report["caught_up"] + report["superseded"])


def _drain_rate(
    heard: Reports, region: str, count: Callable[[Report], int], start: int, total: int
) -> float:
    """Changes a second, once all are through.

    Args:
        heard: reports so far.
        region: whose count.
        count: of changes in a report.
        start: count before the first of them.
        total: how many they are.
    """

    def is_through() -> bool:
        newest = heard.newest(region)
        return newest is not None and count(newest) - start >= total

    wait_for(is_through, _DEADLINE_S, f"{region} is through with {total:,} changes")
    low, high = (start + share * total for share in _MIDDLE)
    points = [(each["reported_at_micros"] / 1e6, count(each)) for each in heard.of(region)]
    first = max((point for point in points if point[1] <= low), default=points[0])
    last = min(point for point in points if point[1] >= high)
    return (last[1] - first[1]) / (last[0] - first[0])


@dataclass(frozen=True)
class _Drained:
    """What became of the multicast job's backlog."""

    rate: float
    """Changes a second that were read and were on their way."""

    link: Report
    """The link to the region, at the end."""

    event_bytes: float
    """Of a change in its topic."""

    taken: int
    """Changes that the region's store got."""


def _multicast(context: Context, area: WideArea, changes: int) -> list[Figure]:
    """By itself, as on a machine of its own, and with the region's job beside it."""
    context.say(f"{changes:,} changes through the multicast job, to a region's broker")
    alone = _drained(area, "drained_home", changes, with_region=False)
    context.say(f"{changes:,} changes through the multicast job, to a region job")
    both = _drained(area, "drained_home_and_region", changes, with_region=True)
    note = f"{both.taken:,} of {changes:,} changes were sent, the others replaced by later ones"
    return [
        Figure("changes through the multicast job", "changes/s", (alone.rate,)),
        Figure("the same, with a region job beside it", "changes/s", (both.rate,), note=note),
        Figure("a change in its topic", "bytes", (both.event_bytes,)),
        Figure(
            "a change sent, on the wire and raw",
            "wire/raw",
            (both.link["wire_bytes"] / both.link["raw_bytes"],),
        ),
    ]


def _drained(area: WideArea, table: str, changes: int, *, with_region: bool) -> _Drained:
    """The job is stopped with a savepoint while its topic fills, so that it reads what came."""
    file = area.define(table, _DRAIN_SLO_MS)
    topic = f"changes.{table}"
    # Compaction would leave less to read.
    kept = Topic(topic, SHARDS, {"cleanup.policy": "delete"})
    create_missing_topics(area.config(HOME), [kept])
    area.submit(file)
    home = area.regions[HOME].bootstrap
    with reports(home, table) as heard:
        _await_plan(heard)
        sender = Sender(home, topic, table, Changes())
        sender.send(_WARM_CHANGES)
        sender.flush()
        wait_for(lambda: _read(heard) >= _WARM_CHANGES, _DEADLINE_S, "the first changes are read")
        savepoint = area.stop_home_with_savepoint()
        if not with_region:
            area.cancel()
        before, read = heard.newest(AWAY), _read(heard)
        sender.send(changes)
        sender.flush()
        area.submit_home(file, savepoint)
        rate = _drain_rate(heard, HOME, lambda report: report["changes"], read, changes)
        wait_for(lambda: _backlog_keys(heard) == 0, _DEADLINE_S, "everything is sent")
        link = heard.newest(HOME)["links"][0]
        taken = _taken(heard.newest(AWAY)) - (0 if before is None else _taken(before))
        area.cancel()
    return _Drained(rate, link, sender.sent.event_bytes / sender.sent.changes, taken)


def _read(heard: Reports) -> int:
    newest = heard.newest(HOME)
    return 0 if newest is None else int(newest["changes"])


def _backlog_keys(heard: Reports) -> int:
    newest = heard.newest(HOME)
    return 0 if newest is None else sum(link["backlog_keys"] for link in newest["links"])


def _await_plan(heard: Reports) -> None:
    wait_for(lambda: (HOME, AWAY) in heard.edges(HOME), _DEADLINE_S, "a plan reaches the region")


def _freshness(context: Context, area: WideArea) -> list[Figure]:
    """Probes among many changes."""
    seconds = 10 if context.quick else 60
    context.say(f"{_FRESHNESS_PER_S:,} changes/s for {seconds} s")
    table = "fresh"
    area.submit(area.define(table, _SLO_MS))
    home = area.regions[HOME].bootstrap
    sender = Sender(home, f"changes.{table}", table, Changes())
    stores = {AWAY: area.regions[AWAY].redis.url}
    with reports(home, table) as heard, in_stores(stores, table, sender.sent) as arrivals:
        _await_plan(heard)
        with sender.at_rate(_FRESHNESS_PER_S):
            # Every job's classes are compiled anew, which takes a good part of two cores.
            time.sleep(seconds)
            early = set(sender.sent.probes)
            time.sleep(seconds)
        arrivals.wait(sender.sent.probes, _DEADLINE_S)
        home_report, away = heard.newest(HOME), heard.newest(AWAY)
        probes = {key: at for key, at in sender.sent.probes.items() if key not in early}
        lags_ms = [1_000 * lag for lag in arrivals.lags_s(probes)]
        area.cancel()
    link = home_report["links"][0]
    note = f"{_FRESHNESS_PER_S:,} changes/s, SLO {_SLO_MS} ms, {len(lags_ms)} probes"
    taken = _taken(away)
    return [
        Figure(
            "from computing to readable elsewhere, p50", "ms", (percentile(lags_ms, 50),), note=note
        ),
        Figure("the same, p99", "ms", (percentile(lags_ms, 99),), aim=Aim(_P99_AIM_MS)),
        Figure("sent for each change applied, raw", "bytes", (link["raw_bytes"] / taken,)),
        Figure("sent for each change applied, on the wire", "bytes", (link["wire_bytes"] / taken,)),
    ]


def _backlog(context: Context, area: WideArea, keys: int) -> list[Figure]:
    """What home keeps for a region that is away."""
    context.say(f"a backlog of {keys:,} keys")
    table = "waiting"
    area.submit(area.define(table, _DRAIN_SLO_MS))
    home = area.regions[HOME].bootstrap
    sender = Sender(home, f"changes.{table}", table, Changes(keys=2 * keys, zipf=0.0))
    with reports(home, table) as heard:
        _await_plan(heard)
        heap = _live_heap_bytes(area)
        with fired(area.regions, Fault(Kind.CUT, region=AWAY)):
            while len(sender.sent.versions) < keys:
                sender.send(min(1_000, keys - len(sender.sent.versions)))
            sender.flush()
            wait_for(
                lambda: _read(heard) >= sender.sent.changes, _DEADLINE_S, "all changes are read"
            )
            waiting = _backlog_keys(heard)
            grown = _live_heap_bytes(area) - heap
        wait_for(lambda: _backlog_keys(heard) == 0, _DEADLINE_S, "everything is sent")
        area.cancel()
    if not waiting:
        raise RuntimeError("no key waited for the region that was away")
    return [
        Figure(
            "memory of a key that waits for a link",
            "bytes",
            (grown / waiting,),
            note=f"live heap, {waiting:,} keys; {sender.sent.changes:,} changes",
        )
    ]


def _live_heap_bytes(area: WideArea) -> int:
    """Of the TaskManager, after a full collection."""
    (worker,) = area.flink.flink.task_managers.values()
    tool = Path(java()).resolve().with_name("jcmd")
    done = subprocess.run(
        [tool, str(worker.pid), "GC.class_histogram"], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1])
