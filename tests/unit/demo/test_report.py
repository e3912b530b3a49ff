"""Goal: the report says what was measured, also of a run that ended early, and draws it."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from freshet.demo.dissemination import Dissemination
from freshet.demo.page import render_page
from freshet.demo.plots import draw_plots
from freshet.demo.report import (
    PolicyRecord,
    RunRecord,
    build_report,
    certainty,
    conclusion,
    replication,
    report_json,
)
from freshet.demo.tables import REGRET_PROPORTIONAL, ROUND_ROBIN
from freshet.files import write_atomically
from freshet.report.figures import rolling_mean, to_png
from tests.unit.demo.sending import FAR, NEAR, sent

HOUR_MS = 3_600_000
KEYS = ("a", "b", "c")
STEPS, HORIZON = 50, 12


def record(*, seed: int = 3, steps: int = STEPS, interrupted: bool = False) -> RunRecord:
    """A run in which regret-proportional halves every error of round-robin's."""
    random = np.random.default_rng(seed)
    robin = [random.gamma(2.0, 1.0, (HORIZON, 3)) for _ in range(steps)]
    ages = [np.array([0.0, 2.0, 4.0]) * HOUR_MS for _ in range(steps)]
    letter = {
        "table": "cpu_stl",
        "stage": "EVENT",
        "reason": "field 'ts' is <missing>",
        "value": b'{"key": "a"}',
    }
    return RunRecord(
        keys=KEYS,
        scale=np.array([1.0, 2.0, 4.0]),
        policies={
            REGRET_PROPORTIONAL: PolicyRecord(
                "cpu_stl",
                errors=[errors / 2 for errors in robin],
                staleness_ms=ages,
                updates=Counter(a=5, b=1, c=1),
                freshness_ms=[100.0, 200.0, 300.0],
                initial_freshness_ms=[5_000.0],
                dead_letters=[letter],
            ),
            ROUND_ROBIN: PolicyRecord(
                "cpu_stl_round_robin",
                errors=robin,
                staleness_ms=[age / 2 for age in ages],
                updates=Counter(a=3, b=2, c=2),
                freshness_ms=[400.0],
                dead_letters=[letter],
            ),
        },
        dissemination=sent(),
        configuration={"keys": 3, "updates_per_step": 0.03, "budget": 0.01},
        steps_planned=STEPS,
        seed=1,
        # As the demo's: the first step ends an hour after midnight.
        step_ends_ms=[1_483_228_800_000 + (step + 1) * HOUR_MS for step in range(steps)],
        events=1_800,
        feedback=3_600,
        malformed=Counter({"no time": 1}),
        wall_s={"replay": 12.0},
        speed_up=10_000.0 if steps else None,
        interrupted=interrupted,
    )


def test_report_has_what_is_promised() -> None:
    run = record()
    report = json.loads(report_json(build_report(run)))
    robin = np.stack(run.policies[ROUND_ROBIN].errors)
    regret, other = (report["policies"][name] for name in (REGRET_PROPORTIONAL, ROUND_ROBIN))
    assert other["loss"] == pytest.approx(robin.mean())
    assert regret["loss"] == pytest.approx(robin.mean() / 2)
    assert other["mae_percent_points"] == pytest.approx((robin * [1, 2, 4]).mean())
    assert (regret["updates"], regret["updates_initial"], regret["updates_scheduled"]) == (7, 3, 4)
    assert regret["updates_by_key"] == {"a": 5, "b": 1, "c": 1}
    assert regret["queries"] == STEPS * HORIZON * 3
    assert regret["staleness_hours"]["mean"] == pytest.approx(2.0)
    assert other["loss_by_step"][7] == pytest.approx(robin[7].mean(), abs=1e-5)
    assert other["loss_by_key"]["b"] == pytest.approx(robin[:, :, 1].mean(), abs=1e-5)
    assert (report["events"], report["changes"], report["dead_letters"]) == (1_800, 14, 2)
    assert report["dead_letters_expected"] == 2
    assert report["freshness_ms"] == {"p50": 250.0, "p99": pytest.approx(397.0), "samples": 4}
    assert report["freshness_initial_ms"]["p50"] == 5_000.0
    assert report["interrupted"] is False
    fresh = {"p50": 1_200.0, "p99": 1_494.0, "samples": 2}
    region = {"keys": 3, "changes": 2, "freshness_ms": fresh, "equal_to_home": True}
    assert report["regions"] == {NEAR: region, FAR: region}
    # 0.12 $ for a GB to the waypoint and for one to each destination, 0.02 from the waypoint on.
    assert report["egress_usd"]["ours"] == pytest.approx(4e-6 * (0.12 + 2 * 0.02))
    assert report["egress_usd"]["direct"] == pytest.approx(4e-6 * 2 * 0.12)


def test_comparison_is_paired() -> None:
    compared = build_report(record())["comparison"]
    assert compared["loss_ratio"] == pytest.approx(0.5)
    # Every draw halves the loss, however much the losses themselves differ between draws.
    assert compared["over_keys"]["loss_ratio"] == pytest.approx([0.5, 0.5])
    assert compared["over_days"]["loss_ratio"] == pytest.approx([0.5, 0.5])
    low, high = compared["over_keys"]["loss_difference"]
    assert low < compared["loss_difference"] < high < 0
    assert (compared["keys_better"], compared["keys_worse"]) == (3, 0)
    # 50 hours from midnight on are two days and a part.
    assert (compared["days_better"], compared["days"]) == (3, 3)


def test_interval_of_noise_contains_no_difference() -> None:
    run, other = record(seed=3), record(seed=4)
    run.policies[REGRET_PROPORTIONAL].errors = other.policies[ROUND_ROBIN].errors
    report = build_report(run)
    low, high = report["comparison"]["over_days"]["loss_ratio"]
    assert low < 1 < high


def test_conclusion_names_the_better_policy_whichever_it_is() -> None:
    run = record()
    assert "50.0% less prediction loss" in conclusion(build_report(run))
    policies = run.policies
    policies[ROUND_ROBIN].errors, policies[REGRET_PROPORTIONAL].errors = (
        policies[REGRET_PROPORTIONAL].errors,
        policies[ROUND_ROBIN].errors,
    )
    assert "100.0% more prediction loss" in conclusion(build_report(run))


def test_unserved_queries_count_for_neither_policy() -> None:
    run = record()
    regret = run.policies[REGRET_PROPORTIONAL]
    for errors, ages in zip(regret.errors, regret.staleness_ms, strict=True):
        errors[:, 0] = np.nan
        ages[0] = np.nan
    report = json.loads(report_json(build_report(run)))
    policy = report["policies"][REGRET_PROPORTIONAL]
    assert policy["queries_unserved"] == STEPS * HORIZON
    assert policy["queries"] == STEPS * HORIZON * 2
    assert policy["loss_by_key"]["a"] is None
    assert report["comparison"]["loss_ratio"] == pytest.approx(0.5)
    assert report["comparison"]["over_keys"]["units"] == 2


@pytest.mark.parametrize("steps", [0, 1])
def test_a_run_that_was_interrupted_early_has_a_report(steps: int) -> None:
    run = record(steps=steps, interrupted=True)
    report = json.loads(report_json(build_report(run)))
    assert report["interrupted"] is True
    assert report["steps"] == {
        "count": steps,
        "planned": STEPS,
        "step_ms": HOUR_MS,
        "ends": ["2017-01-01T01:00Z"][:steps],
    }
    assert conclusion(report)
    assert certainty(report)
    assert replication(report)
    page = render_page(report, draw_plots(report))
    assert "was interrupted" in page


def test_a_run_that_measured_nothing_has_a_report() -> None:
    run = record(steps=0, interrupted=True)
    run.policies = {name: PolicyRecord(name) for name in run.policies}
    run.dissemination = Dissemination("cpu_stl")
    report = json.loads(report_json(build_report(run)))
    assert report["freshness_ms"] == {"p50": None, "p99": None, "samples": 0}
    assert report["policies"][ROUND_ROBIN]["loss"] is None
    assert report["egress_usd"] == {"ours": None, "direct": None}
    assert "ended before" in replication(report)
    render_page(report, draw_plots(report))


def test_page_says_what_regions_cost_and_shows_the_plan() -> None:
    report = build_report(record())
    html = render_page(report, draw_plots(report))
    row = f"<td>{NEAR}</td><td>3</td><td>2</td><td>1200 ms</td><td>1494 ms</td><td>yes</td>"
    assert row in html
    assert f"{NEAR} and {FAR} have every key as" in html
    assert "33% less egress cost" in html
    # A map has a ground of its own, so its ink must not become the page's, which may be light.
    assert '<svg class="white"' in html
    report["regions"][FAR]["equal_to_home"] = False
    assert f"The stores of {FAR} were not that of" in replication(report)
    report["plan"] = {"stripes": [], "algorithm": "fewest hops"}
    assert "plan" not in [plot.name for plot in draw_plots(report)]


class _Page(HTMLParser):
    """Collects what a browser would load, and whether every tag is closed."""

    VOID = frozenset({"meta", "link", "br", "img", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.count = Counter[str]()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.count[tag] += 1
        if tag not in self.VOID:
            self.open.append(tag)
        self.references += [
            value or "" for name, value in attributes if name in ("src", "href", "xlink:href")
        ]

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_whole_and_refers_to_nothing_outside() -> None:
    report = build_report(record())
    html = render_page(report, draw_plots(report))
    page = _Page()
    page.feed(html)
    page.close()
    assert page.open == []
    assert page.count["svg"] == 5
    assert all(reference.startswith("#") for reference in page.references)
    assert "field &#x27;ts&#x27; is &lt;missing&gt;" in html
    # What is drawn in the page's own colour reads on light and on dark.
    assert "currentColor" in html
    assert "#010203" not in html


def test_plots_are_pngs_too() -> None:
    plots = draw_plots(build_report(record()))
    assert [plot.name for plot in plots] == ["loss", "updates", "staleness", "machines", "plan"]
    assert all(to_png(plot.figure).startswith(b"\x89PNG") for plot in plots)


def test_rolling_mean_begins_with_what_there_is() -> None:
    np.testing.assert_allclose(rolling_mean([1, 2, 3, 4], 2), [1, 1.5, 2.5, 3.5])
    np.testing.assert_allclose(rolling_mean([1, None, 3], 2), [1, 1, 3])
    np.testing.assert_allclose(rolling_mean([None, 2], 1), [np.nan, 2])


def test_write_replaces_whole_files_and_leaves_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "new" / "report.json"
    write_atomically(file, b"old")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert list(file.parent.iterdir()) == [file]
