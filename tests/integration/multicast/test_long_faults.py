"""Faults that last, or come one after the other, for minutes.

Goal: as in ``test_faults.py``, over times in which timeouts of a minute pass, relays give up, links
are tried less and less, segments roll, caches overflow and checkpoints pass by the hundred.

Method: a thread writes changes and deletes all the time; meanwhile a script cuts a region off for a
minute, or befalls links, brokers and the jobs' TaskManagers with faults that are random but the
same in every run. A watcher reads each destination's keys.

Fails when: a fault did nothing (of many at random: one in ten), a destination does not become
equal, or a version goes back.
"""

from __future__ import annotations

import random

import pytest

from freshet.wan.faults import FaultScript, Fired
from freshet.wan.scenario import Fault, Kind, Server
from tests.integration.multicast.changes import Changes, plan_in_force, wait_until_equal
from tests.integration.multicast.flow import flowing
from tests.integration.polling import eventually
from tests.integration.wide_area import AWAY, DESTINATIONS, FAR, WideArea

pytestmark = [
    pytest.mark.integration,
    pytest.mark.soak,
    pytest.mark.timeout(1_200),
    pytest.mark.usefixtures("watchers"),
]

PARTITION_S = 60.0
FAULTS_S = 180.0
FAULT_S = (3.0, 12.0)
PAUSE_S = (2.0, 6.0)
SEED = 5
DEADLINE_S = 180.0
"""For becoming equal after it all."""


def test_a_region_is_away_for_a_minute(area: WideArea, changes: Changes) -> None:
    cut = Fault(Kind.CUT, duration_s=PARTITION_S, region=FAR)
    with flowing(changes) as flow, FaultScript(area.regions, [cut]) as script:
        eventually(lambda: plan_in_force(area).get("detached") == [FAR], "the plan does without it")
        script.wait(2 * PARTITION_S)
        assert flow.deleted
    (fired,) = script.fired
    assert fired.healed_s is not None and fired.healed_s - fired.started_s >= PARTITION_S - 1
    assert fired.connections_reset and fired.connections_refused
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region, DEADLINE_S)
    eventually(lambda: plan_in_force(area).get("detached") == [], "the plan has it again")


def random_faults(rng: random.Random) -> list[Fault]:
    """Faults of all kinds but a store's, which could take back what readers have seen."""
    faults: list[Fault] = []
    at_s = PAUSE_S[0]
    while at_s < FAULTS_S:
        kind = rng.choice([Kind.STALL, Kind.CUT, Kind.RESET, Kind.SLOW, Kind.KILL])
        duration_s = 0.0 if kind is Kind.RESET else rng.uniform(*FAULT_S)
        faults.append(_fault(kind, at_s, duration_s, rng.choice(AWAY)))
        at_s += duration_s + rng.uniform(*PAUSE_S)
    return faults


def _fault(kind: Kind, at_s: float, duration_s: float, region: str) -> Fault:
    if kind is Kind.SLOW:
        return Fault(
            kind, at_s, duration_s, region=region, bandwidth_bps=2e6, delay_ms=150, jitter_ms=50
        )
    server = Server.BROKER if kind is Kind.KILL else None
    return Fault(kind, at_s, duration_s, region=region, server=server)


def had_an_effect(fired: Fired) -> bool:
    """Whether a fault of links befell something; one of a server fails by itself if it did not."""
    after = fired.after or {}
    match fired.fault.kind:
        case Kind.STALL:
            return fired.bytes_held > 0
        case Kind.CUT | Kind.RESET:
            return fired.connections_reset > 0
        case Kind.SLOW:
            return any(
                after[link].bytes_out > before.bytes_out for link, before in fired.before.items()
            )
        case _:
            return fired.healed_s is not None


def test_faults_at_random(area: WideArea, changes: Changes) -> None:
    rng = random.Random(SEED)
    faults = random_faults(rng)
    restarts = area.restarts()
    with flowing(changes) as flow, FaultScript(area.regions, faults) as script:
        for share in (0.25, 0.5, 0.75):
            come = int(share * len(faults))
            eventually(
                lambda n=come: len(script.fired) >= n,  # type: ignore[misc]
                f"{come} faults have come",
                FAULTS_S,
            )
            area.kill_task_manager(rng.choice(sorted(area.task_managers_in_use())))
        script.wait(2 * FAULTS_S)
        assert flow.deleted
    assert len(script.fired) == len(faults) > len({fault.kind for fault in faults}) == 5
    # A reset may come while another fault has left no connection.
    with_effect = [each.fault for each in script.fired if had_an_effect(each)]
    assert len(with_effect) >= 0.9 * len(faults)
    assert len({fault.kind for fault in with_effect}) == 5
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region, DEADLINE_S)
    assert sum(area.restarts().values()) >= sum(restarts.values()) + 3
