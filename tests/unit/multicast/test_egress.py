"""What links have delivered, priced."""

from __future__ import annotations

import pytest

from freshet.multicast.egress import Egress
from freshet.multicast.links import LinkReports, LinkSample
from freshet.multicast.settings import Link
from tests.unit.multicast.reports import HOME, NEAR, START_MS, WAY, link, network, report_dict

PRICES = network(price={(HOME, WAY): 0.02}).prices()


def samples(wire_bytes: int) -> dict[Link, LinkSample]:
    reports = LinkReports()
    reports.report(report_dict(HOME, START_MS, links=[link(WAY, wire_bytes=wire_bytes)]))
    return reports.samples()


def test_every_link_has_its_price() -> None:
    assert PRICES[HOME, WAY] == 0.02
    assert PRICES[WAY, NEAR] == 0.1
    assert (HOME, HOME) not in PRICES


def test_bytes_cost_what_they_are_priced_at_and_nothing_is_rounded_away() -> None:
    egress = Egress(PRICES)
    # What an earlier run has told of.
    assert egress.added(samples(7_000_000_000)) == {(HOME, WAY): 0}
    total = sum(
        egress.added(samples(7_000_000_000 + 999 * number))[HOME, WAY] for number in range(1, 1001)
    )
    assert total == pytest.approx(999_000 / 1e9 * 0.02 * 1e6, abs=1)


def test_a_subtask_that_is_missing_for_a_while_costs_nothing() -> None:
    egress = Egress(PRICES)
    egress.added(samples(1_000_000))
    assert egress.added(samples(400_000)) == {(HOME, WAY): 0}
    assert egress.added(samples(500_000)) == {(HOME, WAY): 2}
