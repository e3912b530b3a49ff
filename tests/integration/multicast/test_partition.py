"""A region is away for a minute, which is long: relays give up, links are tried less and less.

Goal: as in ``test_faults.py``, over times in which timeouts of a minute pass.

Method: a thread writes changes and deletes all the time; a script cuts a region off meanwhile. A
watcher reads each destination's keys.

Fails when: the cut did nothing, a destination does not become equal, or a version goes back.
"""

from __future__ import annotations

import pytest

from freshet.wan.faults import FaultScript
from freshet.wan.scenario import Fault, Kind
from tests.integration.multicast.changes import Changes, plan_in_force, wait_until_equal
from tests.integration.multicast.flow import flowing
from tests.integration.polling import eventually
from tests.integration.wide_area import DESTINATIONS, FAR, WideArea

pytestmark = [
    pytest.mark.integration,
    pytest.mark.soak,
    pytest.mark.timeout(1_200),
    pytest.mark.usefixtures("watchers"),
]

PARTITION_S = 60.0
DEADLINE_S = 180.0
"""For becoming equal after it."""


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
