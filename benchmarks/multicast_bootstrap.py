"""How long a new region takes to have a large table, and whether the others notice.

A table stands in the changes topic and in two regions, and changes all the time. A third region's
job starts, and gets all of it from home by catching up; then its Redis is emptied, and it gets all
of it again.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from redis import ConnectionError as RedisConnectionError
from redis import Redis

from benchmarks.arrivals import Arrivals, in_stores
from benchmarks.change_stream import Changes, Sender
from benchmarks.context import Context
from benchmarks.equality import wait_until_equal
from benchmarks.exhibits import Exhibit
from benchmarks.figures import percentile
from benchmarks.multicast_bootstrap_picture import picture
from benchmarks.pipeline import in_background
from benchmarks.progress import Reports
from benchmarks.usage import BusyCores
from benchmarks.wide_area import (
    DESTINATIONS,
    HOME,
    WideArea,
    cloud,
    multicast,
    usd_per_gb,
    wait_for,
    wide_area,
)
from freshet.store.layout import key_name
from freshet.table import load_table
from freshet.topics import create_missing_topics, topics_of_multicast
from freshet.wan.faults import fired
from freshet.wan.scenario import Fault, Kind, Server

KEYS = 300_000
QUICK_KEYS = 30_000
PER_S = 500
"""Live changes a second."""

SLO_S = 0.5
BANDWIDTH_BPS = 10e6
"""Of a link: what is scarce is the network, and not the one machine for all regions."""

NEW = DESTINATIONS[0]
OTHERS = DESTINATIONS[1:]

AIM = 1.1
"""Of the others' p99 meanwhile to that before."""

_TABLE = "fleet_load"
_PROBES_PER_S = 50
_DEADLINE_S = 400.0
_SAMPLE_S = 0.1
_SETTLE_S = 15.0
_AWAY_S = 1.0
_CHUNK = 5_000
_GB = 1e9


@dataclass(frozen=True)
class Bootstrap:
    """One time of getting everything."""

    name: str
    keys: int
    began_s: float
    """When the region was there, knowing nothing; seconds after the first live change."""

    took_s: float
    """From then to having every key."""

    caught_up: int
    """Changes of catch-up that its store took meanwhile."""

    catch_up_bytes: Mapping[tuple[str, str], int]
    """By link, apart from live ones."""

    before_s: Mapping[str, list[float]] = field(repr=False)
    """Live freshness of the other regions just before."""

    meanwhile_s: Mapping[str, list[float]] = field(repr=False)
    busy_cores: tuple[float, float]
    """Of the machine, before and meanwhile."""

    @property
    def usd(self) -> float:
        """What its catch-up cost."""
        prices = usd_per_gb()
        return sum(count / _GB * prices[link] for link, count in self.catch_up_bytes.items())


@dataclass
class Course:
    """What happened when, for the picture; seconds after the first live change."""

    keys: list[tuple[float, int]] = field(default_factory=list)
    """In the new region's store."""

    lags: Mapping[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Of the others: when a probe was sent, and how long it took."""


@dataclass(frozen=True)
class _Running:
    """What the steps of the benchmark share."""

    area: WideArea
    sender: Sender
    heard: Reports
    arrivals: Arrivals
    keys: list[str]
    """Their names in Redis."""

    quiet_s: float
    """How long the others are watched before."""


def run(context: Context) -> list[Exhibit]:
    """The new region, then the emptied one."""
    count = QUICK_KEYS if context.quick else KEYS
    quiet_s = 15.0 if context.quick else 30.0
    course = Course()
    with wide_area(context, cloud(BANDWIDTH_BPS)) as area:
        found = []
        with _standing(context, area, count, quiet_s) as running, _followed(area, course):
            begun_s = time.time()
            with running.sender.at_rate(PER_S, _PROBES_PER_S):
                context.say("the others get it")
                _wait_until_complete(running, OTHERS)
                for name, begin in (("new region", _join), ("emptied Redis", _empty)):
                    found.append(_bootstrap(context, running, name, begin, begun_s))
                    context.say(", ".join(_row(found[-1])))
            sent = running.sender.sent
            wait_until_equal(area.stores(), _TABLE, sent.versions, _DEADLINE_S)
            running.arrivals.wait(sent.probes, _DEADLINE_S)
            course.lags = {
                region: [
                    (at - begun_s, running.arrivals.at_s[region][key] - at)
                    for key, at in sent.probes.items()
                ]
                for region in OTHERS
            }
            course.keys = [(at - begun_s, count) for at, count in course.keys]
    return [_exhibit(found, course, count)]


@contextlib.contextmanager
def _standing(context: Context, area: WideArea, count: int, quiet_s: float) -> Iterator[_Running]:
    """The table in the topic, and the jobs of all regions but the new one."""
    file = area.define(_TABLE, int(SLO_S * 1_000))
    config = area.config(HOME)
    create_missing_topics(config, topics_of_multicast(config, [load_table(file).to_dict()]))
    changes = Changes(count)
    sender = Sender(area.regions[HOME].bootstrap, f"changes.{_TABLE}", _TABLE, changes)
    context.say(f"{count:,} keys into the topic")
    sender.send_each_once()
    sender.flush()
    keys = [key_name("", _TABLE, key.decode()) for key in sender.sent.versions]
    with (
        multicast(area, _TABLE, int(SLO_S * 1_000), without_job=(NEW,)) as heard,
        in_stores(area.stores(*OTHERS), _TABLE, sender.sent) as arrivals,
    ):
        yield _Running(area, sender, heard, arrivals, keys, quiet_s)


def _join(running: _Running) -> float:
    """The new region's job starts; returns when it first reports, epoch seconds."""
    running.area.submit_region(running.area.define(_TABLE, int(SLO_S * 1_000)), NEW)
    wait_for(lambda: running.heard.newest(NEW) is not None, _DEADLINE_S, f"{NEW} reports")
    return time.time()


def _empty(running: _Running) -> float:
    """The region's Redis loses everything; returns when it is back, epoch seconds."""
    with fired(running.area.regions, Fault(Kind.EMPTY, region=NEW, server=Server.REDIS)):
        time.sleep(_AWAY_S)
    return time.time()


def _bootstrap(
    context: Context,
    running: _Running,
    name: str,
    begin: Callable[[_Running], float],
    begun_s: float,
) -> Bootstrap:
    """Watches the others for a while, begins, and waits until the region has everything."""
    context.say(f"{name}: watching the others")
    time.sleep(_SETTLE_S)
    before, quiet = _now(running), BusyCores()
    time.sleep(running.quiet_s)
    calm, cores = _now(running), quiet.average()
    caught_up, link_bytes = _caught_up(running), _catch_up_bytes(running)
    context.say(name)
    began_s = begin(running)
    early, busy = _now(running), BusyCores()
    _wait_until_complete(running, (NEW,))
    took_s, busy_cores = time.time() - began_s, busy.average()
    late = _now(running)
    # Reports come twice a second; those of now tell what went until now.
    _wait_for_reports(running)
    caught_up, link_bytes_now = _caught_up(running) - caught_up, _catch_up_bytes(running)
    return Bootstrap(
        name,
        len(running.keys),
        began_s - begun_s,
        took_s,
        caught_up,
        {link: count - link_bytes.get(link, 0) for link, count in link_bytes_now.items()},
        _lags(running, before, calm),
        _lags(running, early, late),
        (cores, busy_cores),
    )


def _now(running: _Running) -> int:
    """Probes that were sent so far."""
    return len(running.sender.sent.probes)


def _lags(running: _Running, first: int, last: int) -> dict[str, list[float]]:
    probes = dict(list(running.sender.sent.probes.items())[first:last])
    running.arrivals.wait(probes, _DEADLINE_S)
    return {region: running.arrivals.lags_s(probes, region) for region in OTHERS}


def _wait_until_complete(running: _Running, regions: tuple[str, ...]) -> None:
    """Waits until these regions' stores have a value of every key."""
    for region, url in running.area.stores(*regions).items():
        with contextlib.closing(Redis.from_url(url)) as store:
            wait_for(
                lambda store=store: _is_complete(store, running.keys),
                _DEADLINE_S,
                f"{region} has every key",
            )


def _is_complete(store: Redis, keys: list[str]) -> bool:
    # Asking for each key takes a while, so first whether there may be as many.
    if store.dbsize() < len(keys):
        return False
    chunks = range(0, len(keys), _CHUNK)
    return sum(store.exists(*keys[first : first + _CHUNK]) for first in chunks) == len(keys)


def _caught_up(running: _Running) -> int:
    newest = running.heard.newest(NEW)
    return 0 if newest is None else int(newest["caught_up"])


def _catch_up_bytes(running: _Running) -> dict[tuple[str, str], int]:
    """By link, since the jobs' start."""
    found = {}
    for region in (HOME, *running.area.others):
        newest = running.heard.newest(region)
        for link in newest["links"] if newest else ():
            found[region, link["to"]] = int(link["catch_up_bytes"])
    return found


def _wait_for_reports(running: _Running) -> None:
    """Waits until each region has reported once more, twice to be sure."""
    counts = {region: len(running.heard.of(region)) for region in (HOME, *running.area.others)}
    wait_for(
        lambda: all(len(running.heard.of(region)) >= n + 2 for region, n in counts.items()),
        _DEADLINE_S,
        "all regions report",
    )


@contextlib.contextmanager
def _followed(area: WideArea, course: Course) -> Iterator[None]:
    """Counts the keys in the new region's store as long as the block lasts."""
    with contextlib.closing(Redis.from_url(area.stores()[NEW])) as store:

        def count() -> None:
            # It is away for a moment when it is emptied.
            with contextlib.suppress(RedisConnectionError):
                course.keys.append((time.time(), store.dbsize()))
            time.sleep(_SAMPLE_S)

        with in_background(count):
            yield


_COLUMNS = (
    "",
    "has every key after",
    "keys/s",
    "catch-up bytes over all links",
    "for a key",
    "$",
    "others' live p50 before",
    "meanwhile",
    "p99 before",
    "meanwhile",
    "p99, meanwhile to before",
    "busy cores before, meanwhile",
)


def _row(found: Bootstrap) -> tuple[str, ...]:
    total = sum(found.catch_up_bytes.values())
    before, meanwhile = (
        [lag for lags in each.values() for lag in lags]
        for each in (found.before_s, found.meanwhile_s)
    )
    quantiles = [percentile(lags, percent) for percent in (50, 99) for lags in (before, meanwhile)]
    ratio = quantiles[3] / quantiles[2]
    return (
        found.name,
        f"{found.took_s:.1f} s",
        f"{found.keys / found.took_s:,.0f}",
        f"{total / 1e6:.1f} MB",
        f"{total / found.keys:.0f}",
        f"{found.usd:.4f}",
        *(f"{quantile:.3f} s" for quantile in quantiles),
        f"{ratio:.2f} (aim ≤ {AIM}: {'met' if ratio <= AIM else '**missed**'})",
        f"{found.busy_cores[0]:.2f}, {found.busy_cores[1]:.2f}",
    )


def _exhibit(found: list[Bootstrap], course: Course, count: int) -> Exhibit:
    links = {link: sent for link, sent in found[0].catch_up_bytes.items() if sent}
    ways = ", ".join(f"{u} → {v} {sent / 1e6:.1f} MB" for (u, v), sent in links.items())
    return Exhibit(
        "multicast-bootstrap",
        f"A new region gets {count:,} keys while they change",
        _COLUMNS,
        tuple(_row(each) for each in found),
        f"{PER_S:,} changes/s meanwhile, Zipf over all keys, SLO {SLO_S:g} s,"
        f" {BANDWIDTH_BPS / 1e6:g} Mbit/s a link;"
        f" from {HOME} to {NEW}, beside {' and '.join(OTHERS)}. Time is from the region's first"
        " report, or from when its empty Redis is back, to having a value of every key. The new"
        f" region's catch-up: {ways}; it took {found[0].caught_up:,} changes of it. Live freshness"
        f" is of probes, {_PROBES_PER_S} keys a second that change once. In the end every region"
        f" has the newest version of every key. {os.cpu_count()} cores.",
        picture(found, course),
    )
