"""Whatever breaks between regions or in one, they end equal, and no reader sees a version go back.

Goal: Ekko's promise (§4.3) under faults of links, servers and jobs: eventual equality with the
reference, by catch-up where chunks were lost, and monotone versions at every reader meanwhile.

Method: a fault is fired while changes are written, is asserted to have had an effect, and is
healed; then every destination must become equal to the newest change of each key. A watcher reads
each destination's keys all the time.

Fails when: a fault did nothing, a destination does not become equal, or a version goes back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from redis import Redis

from freshet.wan.faults import fired
from freshet.wan.scenario import Fault, Kind, Server
from freshet.wan.shape import Direction
from tests.integration.multicast.changes import (
    TABLE,
    WATCHED,
    Changes,
    differing,
    edges,
    plan_in_force,
    wait_until_equal,
)
from tests.integration.polling import eventually
from tests.integration.topics import Topics
from tests.integration.watcher import VersionWatcher
from tests.integration.wide_area import DESTINATIONS, FAR, HOME, NEAR, SLOW, WAY, WideArea

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("watchers"),
]

CHANGES = 1_000
NEAR_INBOX = "inbox.local.near"
HELD_MS_MAX = 60_000


def write_and_compare(area: WideArea, changes: Changes) -> None:
    """New changes reach all destinations."""
    changes.write(CHANGES)
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)


def counted(area: WideArea, region: str, counter: str) -> int:
    """A counter of a region's last report."""
    mine = [r for r in area.reports() if r["region"] == region and r["table"] == TABLE]
    return int(mine[-1][counter]) if mine else 0


def flipped(chunk: bytes) -> bytes:
    """The chunk with one bit wrong."""
    return bytes([*chunk[:-9], chunk[-9] ^ 1, *chunk[-8:]])


def test_acknowledgements_that_do_not_come(area: WideArea, changes: Changes) -> None:
    """Chunks arrive, but the sender does not hear of it, and sends them again."""
    write_and_compare(area, changes)
    stall = Fault(Kind.STALL, links=(f"{HOME}->{WAY}",), direction=Direction.BACKWARD)
    with fired(area.regions, stall) as stalled:
        changes.write(CHANGES)
        eventually(
            lambda: (HOME, WAY) not in edges(plan_in_force(area)), "the plan goes round the link"
        )
        changes.write(CHANGES)
        for region in DESTINATIONS:
            wait_until_equal(area, changes, region)
    assert stalled.bytes_held
    write_and_compare(area, changes)


def test_reports_that_do_not_come(area: WideArea, changes: Changes) -> None:
    """Home does not hear of a region, which gets its changes all the same."""
    with fired(area.regions, Fault(Kind.CUT, links=(f"{FAR}->{HOME}",))) as cut:
        changes.write(CHANGES)
        eventually(lambda: plan_in_force(area).get("detached") == [FAR], "it counts as gone")
        write_and_compare(area, changes)
    assert cut.connections_reset
    write_and_compare(area, changes)


def test_long_ways_and_resets(area: WideArea, changes: Changes) -> None:
    links = tuple(link.name for link in area.regions.scenario.links)
    slow = Fault(Kind.SLOW, links=links, bandwidth_bps=20e6, delay_ms=200, jitter_ms=50)
    with fired(area.regions, slow):
        for _ in range(3):
            changes.write(CHANGES)
            with fired(area.regions, Fault(Kind.RESET, links=links)) as reset:
                changes.write(CHANGES)
            assert reset.connections_reset
        for region in DESTINATIONS:
            wait_until_equal(area, changes, region)


def test_a_waypoint_s_broker_dies(area: WideArea, changes: Changes) -> None:
    write_and_compare(area, changes)
    with fired(area.regions, Fault(Kind.KILL, region=WAY, server=Server.BROKER)):
        changes.write(CHANGES)
        for region in DESTINATIONS:
            wait_until_equal(area, changes, region)
        around = eventually(lambda: edges(plan_in_force(area)), "there is a plan")
        assert all(WAY not in edge for edge in around)
    write_and_compare(area, changes)


def test_a_store_is_emptied(
    area: WideArea, changes: Changes, watchers: dict[str, VersionWatcher]
) -> None:
    write_and_compare(area, changes)
    epoch, caught_up = counted(area, NEAR, "epoch"), counted(area, NEAR, "caught_up")
    with fired(area.regions, Fault(Kind.EMPTY, region=NEAR, server=Server.REDIS)):
        watchers[NEAR].forget()
        changes.write(CHANGES)
        wait_until_equal(area, changes, FAR)
    wait_until_equal(area, changes, NEAR)
    eventually(lambda: counted(area, NEAR, "epoch") > epoch, "the loss was noticed")
    # Counted in the report after the one that told of the loss.
    eventually(lambda: counted(area, NEAR, "caught_up") > caught_up, "it has caught up")


def test_damaged_repeated_and_reordered_chunks(area: WideArea, changes: Changes) -> None:
    write_and_compare(area, changes)
    refused = counted(area, NEAR, "refused")
    inbox = Topics(area.regions[NEAR].bootstrap)
    records = [record for record in inbox.read(NEAR_INBOX) if record.value]
    damaged = [flipped(record.value) for record in records[-3:] if record.value]
    whole = records[-1].value or b""
    damaged += [whole[: len(whole) // 2], b"no chunk"]
    for value in damaged:
        inbox.send(NEAR_INBOX, value, partition=records[-1].partition)
    for record in [*reversed(records), *records]:
        inbox.send(NEAR_INBOX, record.value, record.key, record.partition)
    inbox.flush()
    write_and_compare(area, changes)
    eventually(lambda: counted(area, NEAR, "refused") >= refused + len(damaged), "they are refused")
    letters = inbox.read_as("DeadLetter", f"dead-letters.{NEAR_INBOX}")
    assert len(letters) >= len(damaged)
    assert all(letter["stage"] == "REGION" for letter in letters)


def test_a_delete_during_a_partition(area: WideArea, changes: Changes) -> None:
    """What a region did not hear of must not bring a deleted key back."""
    write_and_compare(area, changes)
    key = next(key for key in sorted(changes.newest) if key not in WATCHED)
    with fired(area.regions, Fault(Kind.CUT, region=FAR)) as cut:
        changes.delete(key)
        wait_until_equal(area, changes, NEAR)
        assert differing(area, changes, FAR) == [key]
    assert cut.connections_reset
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)


@contextlib.contextmanager
def writes_held(store: Redis) -> Iterator[None]:
    """The store answers readers, and no writer."""
    assert store.execute_command("CLIENT", "PAUSE", HELD_MS_MAX, "WRITE")
    try:
        yield
    finally:
        store.execute_command("CLIENT", "UNPAUSE")


def is_behind(committed: dict[int, int], ends: dict[int, int]) -> bool:
    """Whether everything before these ends was committed."""
    return all(committed.get(partition, 0) >= end for partition, end in ends.items())


def assert_restored_alone(
    area: WideArea, region: str, checkpoint: int, before: dict[str, int]
) -> None:
    """Waits until a job has been restored from that checkpoint or a later one, and only this job.

    Args:
        area: the deployment.
        region: of the job.
        checkpoint: a completed one from before the job died.
        before: every job's restarts then.
    """
    assert checkpoint > 0

    def is_restored() -> bool:
        restored = area.restored(region)
        assert restored.get("id", 0) >= checkpoint and not restored["is_savepoint"], restored
        now = area.restarts()
        assert now.pop(region) > before[region], now
        assert now.items() <= before.items(), (now, before)
        return True

    eventually(is_restored, f"the job of {region} goes on from a checkpoint")


def test_a_region_s_job_dies_while_it_applies(area: WideArea, changes: Changes) -> None:
    """What it had read and its store had not taken is in the checkpoint, behind the offsets."""
    write_and_compare(area, changes)
    inbox = Topics(area.regions[NEAR].bootstrap)
    ends, restarts = inbox.ends(NEAR_INBOX), area.restarts()
    with writes_held(Redis.from_url(area.regions[NEAR].redis.url)):
        changes.write(CHANGES)
        for region in (FAR, SLOW):
            wait_until_equal(area, changes, region)
        sent = inbox.ends(NEAR_INBOX)
        assert sent != ends
        eventually(
            lambda: is_behind(inbox.committed(f"freshet-region-{NEAR}", NEAR_INBOX), sent),
            "a checkpoint has all chunks behind it",
        )
        checkpoint = area.completed(NEAR)
        area.kill_alone(NEAR)
        assert differing(area, changes, NEAR), "not all was applied when it died"
    wait_until_equal(area, changes, NEAR)
    assert_restored_alone(area, NEAR, checkpoint, restarts)
    write_and_compare(area, changes)


def test_the_multicast_job_dies_with_changes_under_way(area: WideArea, changes: Changes) -> None:
    """What no link has taken yet is in the checkpoint, behind the offsets."""
    write_and_compare(area, changes)
    restarts = area.restarts()
    links = tuple(link.name for link in area.regions.scenario.links if link.source == HOME)
    with fired(area.regions, Fault(Kind.STALL, links=links)) as stalled:
        changes.write(CHANGES)
        eventually(
            lambda: is_behind(
                area.topics.committed(f"freshet-multicast-{HOME}", changes.topic),
                area.topics.ends(changes.topic),
            ),
            "a checkpoint has all changes behind it",
        )
        checkpoint = area.completed(HOME)
        area.kill_alone(HOME)
        assert all(differing(area, changes, region) for region in DESTINATIONS)
    assert stalled.bytes_held
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)
    assert_restored_alone(area, HOME, checkpoint, restarts)
    write_and_compare(area, changes)


def test_all_jobs_die_in_the_middle_of_it(area: WideArea, changes: Changes) -> None:
    """The multicast job and the region jobs go on from a checkpoint."""
    restarts = area.restarts()
    changes.write(CHANGES)
    area.kill_everywhere()
    changes.write(CHANGES)
    for region in DESTINATIONS:
        wait_until_equal(area, changes, region)
    write_and_compare(area, changes)
    eventually(
        lambda: all(area.restarts()[region] > before for region, before in restarts.items()),
        "every job was restarted",
    )
