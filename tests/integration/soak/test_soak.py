"""The whole pipeline at half of its capacity for half an hour: nothing grows.

Goal: features computed at home reach another region for a long time without using up anything:
memory, state, handles, threads.

Method: a minute with more events than can be computed tells this machine's capacity, in updates a
second. Half of it is the load then, in events a second, each of a key whose turn it is, so that
each is an update and a change for the other region. A model reads and feeds errors back. After a
third of the time, when windows are full and code is compiled, what is sampled must be flat.

Fails when: something grows, a job restarts, the load was not kept or not served, or the regions
differ in the end.

``FRESHET_SOAK_MINUTES`` is its length without the measuring of capacity, 30 if not given. The
report is in ``out/soak``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from benchmarks.usage import FUNCTION, BusyCores, read_usage
from freshet.stack import FlinkOptions, KafkaOptions, Stack, StackOptions
from freshet.stack.layout import CHECKOUT
from tests.integration.polling import eventually
from tests.integration.soak.flatness import trend
from tests.integration.soak.load import Load
from tests.integration.soak.report import write_report
from tests.integration.soak.sampling import Sampler
from tests.integration.tables import write_definition
from tests.integration.two_regions import AWAY, HOME, KINDS, TwoRegions

MINUTES = float(os.environ.get("FRESHET_SOAK_MINUTES", "30"))
CAPACITY_S = 60.0
SATURATING_EVENTS_PER_S = 12_000
LOAD = 0.5
KEPT_LOAD = 0.95
"""Share of the events that must have become updates."""

WARM_UP = 1 / 3
SAMPLES = 300
HEAP_SAMPLES = 60
KEYS = 1_000
NAME = "soak"
PREFIX = "soak."
OUT = CHECKOUT / "out" / "soak"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.soak,
    pytest.mark.timeout(int(MINUTES * 60 + CAPACITY_S) + 900),
]


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoRegions]:
    """The three jobs of a table, on servers of their own that are not made for minutes."""
    folder = tmp_path_factory.mktemp("soak")
    options = StackOptions(
        regions=(HOME, AWAY),
        kafka=KafkaOptions(),
        flink=FlinkOptions(task_managers=3, settings={"metrics.fetcher.update-interval": "1000"}),
    )
    with Stack(folder / "stack", options) as stack:
        file = write_definition(
            folder,
            NAME,
            policy="'regret-proportional'",
            window="Points(32)",
            budget="TimeShare(0.9)",
            default_regret="0.1",
            regions=repr((HOME, AWAY)),
            freshness_slo="'2s'",
        )
        running = TwoRegions(stack, stack.redis[AWAY].url, folder, file, PREFIX)
        running.start(1)
        yield running
        running.cancel()


def updates(regions: TwoRegions) -> float:
    """Updates so far: change events, each of an acknowledged write."""
    return sum(regions.topics.ends(regions.job.changes_topic).values())


def capacity(regions: TwoRegions, load: Load) -> float:
    """Updates a second when there is always something to compute; then all of it is computed."""
    with load.running(SATURATING_EVENTS_PER_S):
        time.sleep(CAPACITY_S / 2)  # not a wait: the first half is not measured
        begun_s, before, sent = time.monotonic(), updates(regions), load.events
        time.sleep(CAPACITY_S / 2)
        elapsed_s = time.monotonic() - begun_s
        found = (updates(regions) - before) / elapsed_s
        offered = (load.events - sent) / elapsed_s
    assert found < offered, f"{offered:.0f} events a second do not saturate it"
    eventually(lambda: regions.job.metric("pendingKeys") == 0, "all is computed", 120)
    return found


def resident_mb(stack: Stack) -> dict[str, float]:
    """Memory of the servers' processes, all of a role together, and of what TaskManagers start."""
    usage = read_usage(stack).usage
    roles = ("JobManager", "TaskManager", FUNCTION, "Kafka")
    return {role: usage[role].resident_bytes / 1e6 for role in roles}


def sampler(regions: TwoRegions) -> Sampler:
    """Of every process, job and store."""
    stack = regions.stack
    assert stack.flink.job_manager is not None
    assert stack.kafka.pid is not None
    java = {
        "JobManager": stack.flink.job_manager.pid,
        "Kafka": stack.kafka.pid,
        **{name: process.pid for name, process in stack.flink.task_managers.items()},
    }
    redis = {f"Redis {region}": server.pid or 0 for region, server in stack.redis.items()}
    return Sampler(
        java | redis,
        java,
        {region: server.url for region, server in stack.redis.items()},
        stack.flink.rest,
        {kind: regions.jobs[kind] for kind in KINDS},
        lambda: resident_mb(stack),
        interval_s=MINUTES * 60 / SAMPLES,
        heap_interval_s=MINUTES * 60 / HEAP_SAMPLES,
    )


def test_nothing_grows_at_half_of_the_capacity(regions: TwoRegions) -> None:
    load = Load(regions.home, NAME, regions.job.events_topic, KEYS)
    most = capacity(regions, load)
    before, sent_before, busy = updates(regions), load.events, BusyCores()
    sampling = sampler(regions)
    begun_s = time.monotonic()
    with sampling.running(), load.running(LOAD * most):
        while time.monotonic() < begun_s + MINUTES * 60:
            sampling.check()
            time.sleep(1)  # the load runs
        elapsed_s = time.monotonic() - begun_s
        events, made = load.events - sent_before, updates(regions) - before
    cores = busy.average()
    warm_up_s = WARM_UP * MINUTES * 60
    found = [
        (series, trend(*series.after(warm_up_s), series.kind.tolerance))
        for series in sampling.series
    ]
    regions.wait_until_equal()
    *_, region = regions.reports("REGION")
    facts = {
        "capacity": f"{most:,.0f} updates a second",
        "load": f"{events / elapsed_s:,.0f} events a second for {elapsed_s / 60:.1f} minutes",
        "updates": f"{made / elapsed_s:,.0f} a second",
        "feedback": f"{load.feedback / elapsed_s:,.0f} a second",
        "changes that the other region took": f"{region['applied']:,}; late {region['late']:,}",
        "cores busy": f"{cores:.2f} of {os.cpu_count()}, load and collections included",
        "keys": f"{KEYS:,}",
    }
    write_report(OUT, facts, found, warm_up_s)
    print((OUT / "report.md").read_text(encoding="utf-8"))

    assert events >= KEPT_LOAD * LOAD * most * elapsed_s, facts
    assert made >= KEPT_LOAD * events, facts
    restarts = {
        kind: regions.stack.flink.rest.job(job).restarts for kind, job in regions.jobs.items()
    }
    assert restarts == dict.fromkeys(KINDS, 0)
    grew = [f"{s.kind.name} of {s.of}: {t}" for s, t in found if not t.is_flat]
    assert not grew, f"see {OUT / 'report.md'}: {grew}"
