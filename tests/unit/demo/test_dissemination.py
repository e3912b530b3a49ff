"""Goal: what regions report becomes freshness that is not too good, and costs of what was sent."""

from __future__ import annotations

import json

import pytest

from freshet.demo.dissemination import Dissemination, Lags, upper_samples
from freshet.demo.regions import HOME, ON_THE_WAY, StoreState
from freshet.observer import percentiles_ms
from tests.unit.demo.sending import FAR, NEAR, TABLE, home, region
from tests.unit.multicast.reports import link

USD_PER_GB = {
    (HOME, ON_THE_WAY): 0.1,
    (ON_THE_WAY, NEAR): 0.02,
    (ON_THE_WAY, FAR): 0.03,
    (HOME, NEAR): 0.2,
    (HOME, FAR): 0.3,
}
DIRECT = [[HOME, NEAR], [HOME, FAR]]
OVER_WAYPOINT = [[HOME, ON_THE_WAY], [ON_THE_WAY, NEAR], [ON_THE_WAY, FAR]]


def usd_per_gb(source: str, target: str) -> float:
    return USD_PER_GB[source, target]


def plan(edges: list[list[str]]) -> str:
    stripes = [{"fraction": 0.2, "edges": DIRECT}, {"fraction": 0.8, "edges": edges}]
    return json.dumps({"stripes": stripes})


def lags(*times_ms: float) -> dict[str, float]:
    """As a region reports them: a quantile is the time of the rank below it."""
    ordered, last = sorted(times_ms), len(times_ms) - 1
    ranks = {"p50_ms": int(0.5 * last), "p99_ms": int(0.99 * last), "max_ms": last}
    return {"count": len(times_ms), **{name: ordered[rank] for name, rank in ranks.items()}}


@pytest.mark.parametrize("count", [1, 2, 3, 10, 250])
def test_freshness_is_never_better_than_it_was(count: int) -> None:
    times = [float(10 * (number + 1)) for number in range(count)]
    samples = sorted(upper_samples([Lags(**lags(*times))]))  # type: ignore[arg-type]
    assert len(samples) == count
    assert all(sample >= time for sample, time in zip(samples, times, strict=True))
    assert samples[-1] == times[-1]
    assert percentiles_ms(samples)["p50"] is not None
    assert upper_samples([]) == []


def test_one_change_a_report_is_exact() -> None:
    watch = Dissemination(TABLE)
    for number, time_ms in enumerate((30.0, 10.0, 20.0)):
        watch.take(region(NEAR, 1_000 + number, delay=lags(time_ms)))
    watch.take(region(NEAR, 2_000))
    watch.take(region(ON_THE_WAY, 2_000, delay=lags(99_999.0)))
    watch.take(region(NEAR, 2_000, delay=lags(99_999.0)) | {"table": "another"})
    fresh = watch.to_report(usd_per_gb)["regions"][NEAR]["freshness_ms"]
    assert fresh == {"p50": 20.0, "p99": pytest.approx(29.8), "samples": 3}
    assert watch.recent_freshness_ms(NEAR) == {"p50": 20.0, "p99": pytest.approx(29.8)}
    assert watch.recent_freshness_ms(FAR) == {"p50": None, "p99": None}


def test_costs_are_of_what_links_delivered_and_what_came_in() -> None:
    watch = Dissemination(TABLE)
    # The first plan sends straight to both; the second over the waypoint. Counters go on.
    watch.take(
        home(1_000, plan(DIRECT), links=[link(NEAR, wire_bytes=10), link(FAR, wire_bytes=20)])
    )
    assert watch.sender_to(NEAR) == HOME
    ways = [link(NEAR, wire_bytes=1_000), link(FAR, wire_bytes=2_000), link(ON_THE_WAY)]
    ways[2]["wire_bytes"] = 5_000
    watch.take(home(2_000, plan(OVER_WAYPOINT), links=ways))
    assert watch.sender_to(NEAR) == ON_THE_WAY
    onward = [link(NEAR, wire_bytes=4_000), link(FAR, wire_bytes=4_500)]
    watch.take(region(ON_THE_WAY, 2_000, links=onward))
    report = watch.to_report(usd_per_gb)

    ours = 1_000 * 0.2 + 2_000 * 0.3 + 5_000 * 0.1 + 4_000 * 0.02 + 4_500 * 0.03
    direct = (1_000 + 4_000) * 0.2 + (2_000 + 4_500) * 0.3
    assert report["egress_usd"]["ours"] == pytest.approx(ours / 1e9)
    assert report["egress_usd"]["direct"] == pytest.approx(direct / 1e9)
    assert sum(way["usd"] for way in report["egress"]["links"]) == pytest.approx(ours / 1e9)
    straight = [
        (way["source"], way["target"], way["wire_bytes"]) for way in report["egress"]["direct"]
    ]
    assert straight == [(HOME, NEAR, 5_000), (HOME, FAR, 6_500)]
    assert report["plan"]["stripes"][1]["edges"] == OVER_WAYPOINT


def test_what_was_not_measured_is_none() -> None:
    report = Dissemination(TABLE).to_report(usd_per_gb)
    assert report["egress_usd"] == {"ours": None, "direct": None}
    for part in report["regions"].values():
        assert (part["keys"], part["equal_to_home"], part["changes"]) == (None, None, 0)
    assert Dissemination(TABLE).sender_to(NEAR) is None


def test_regions_are_as_their_stores_and_reports_say() -> None:
    watch = Dissemination(TABLE)
    watch.stores = {NEAR: StoreState(129, True), FAR: StoreState(128, False)}
    watch.take(region(NEAR, 1_000, applied=3, caught_up=1))
    watch.take(region(NEAR, 1_500, applied=5, caught_up=2))
    regions = watch.to_report(usd_per_gb)["regions"]
    assert (regions[NEAR]["keys"], regions[NEAR]["equal_to_home"]) == (129, True)
    assert (regions[FAR]["keys"], regions[FAR]["equal_to_home"]) == (128, False)
    assert (regions[NEAR]["changes"], regions[FAR]["changes"]) == (7, 0)


def test_the_last_word_is_everybody_s() -> None:
    watch = Dissemination(TABLE)
    is_said = watch.reported_after(1_000_000)
    watch.take(home(1_001, plan(DIRECT)))
    for name in (ON_THE_WAY, NEAR):
        watch.take(region(name, 1_001))
    watch.take(region(FAR, 1_000))
    assert not is_said()
    watch.take(region(FAR, 1_001))
    assert is_said()
