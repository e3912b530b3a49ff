"""The report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from freshet.demo.plots import COLORS, PLAN
from freshet.demo.regions import FRESHNESS_SLO
from freshet.demo.report import certainty, conclusion, replication
from freshet.demo.tables import SENT_POLICY
from freshet.report.figures import Plot
from freshet.report.page import html_page, html_plot
from freshet.report.text import number

_SENT = f"the {SENT_POLICY} table"


def render_page(report: Mapping[str, Any], plots: Sequence[Plot]) -> str:
    """The page, without any reference to another file.

    Args:
        report: as ``build_report`` makes it.
        plots: of the same report.
    """
    parts = [
        "<h1>Freshet demo</h1>",
        f'<p class="faint">{escape(_subtitle(report))}</p>',
        _warning(report),
        f"<p><strong>{escape(conclusion(report))}</strong> {escape(certainty(report))}</p>",
        _policies(report),
        *(html_plot(plot) for plot in plots if plot.name != PLAN),
        _freshness(report),
        _regions(report),
        *(html_plot(plot) for plot in plots if plot.name == PLAN),
        _dead_letters(report),
        _how(report),
    ]
    return html_page("Freshet demo", parts)


def _subtitle(report: Mapping[str, Any]) -> str:
    shown = report["configuration"]
    steps = report["steps"]["count"]
    planned = report["steps"]["planned"]
    part = "" if steps == planned else f" of {planned} planned"
    speed = f", replayed {report['speed_up']:,.0f} times as fast" if report["speed_up"] else ""
    return (
        f"{shown['keys']} virtual machines of Microsoft Azure, {steps} hours{part}{speed}; every "
        f"hour {shown['updates_per_step']:g} of {shown['keys']} features may be computed "
        f"({shown['budget']:.1%}). Finished {report['finished_at']}."
    )


def _warning(report: Mapping[str, Any]) -> str:
    if not report["interrupted"]:
        return ""
    return (
        '<p class="warning">The run was interrupted: the numbers are of the part before that.</p>'
    )


def _policies(report: Mapping[str, Any]) -> str:
    head = (
        "<tr><th>policy</th><th>loss</th><th>error, % points</th><th>updates</th>"
        "<th>staleness, mean</th><th>p99</th><th>freshness p50</th><th>p99</th></tr>"
    )
    rows = []
    for name, policy in report["policies"].items():
        stale, fresh = policy["staleness_hours"], policy["freshness_ms"]
        cells = [
            number(policy["loss"], ".3f"),
            number(policy["mae_percent_points"], ".3f"),
            number(policy["updates"], ",d"),
            number(stale["mean"], ".1f", " h"),
            number(stale["p99"], ".0f", " h"),
            number(fresh["p50"], ".0f", " ms"),
            number(fresh["p99"], ".0f", " ms"),
        ]
        mark = f'<span style="color:{COLORS[name]}">■</span>'
        rows.append(
            f"<tr><td>{mark} {escape(name)}</td>"
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
    return f'<table class="numbers">{head}{"".join(rows)}</table>'


def _freshness(report: Mapping[str, Any]) -> str:
    steady, initial = report["freshness_ms"], report["freshness_initial_ms"]
    return (
        "<h2>Freshness</h2><p>Wall time from producing the newest event in a value to seeing that "
        "value's change event: "
        f"p50 {number(steady['p50'], '.0f', ' ms')}, p99 {number(steady['p99'], '.0f', ' ms')} "
        f"over {steady['samples']:,} updates in steady state. The first value of each key is "
        "counted apart, because then all are computed at once: "
        f"p50 {number(initial['p50'], '.0f', ' ms')}, "
        f"p99 {number(initial['p99'], '.0f', ' ms')}. With a budget for each hour this says how "
        "long a <em>chosen</em> key takes; how long a key waits to be chosen is its staleness.</p>"
    )


def _regions(report: Mapping[str, Any]) -> str:
    rows = "".join(_region(name, region) for name, region in report["regions"].items())
    return (
        f"<h2>Regions</h2><p>The changes of {escape(_SENT)} went from {escape(report['home'])} to"
        " two more regions, which serve it too. Freshness there is the time from a value's"
        " computation to its being readable, of live changes: changes wait for others to share a"
        f" chunk with, as long as they are readable within {escape(FRESHNESS_SLO)}. (By event time"
        " it would say nothing here: the events are of 2017.) In the end the stored bytes of every"
        " key were compared with home's.</p>"
        '<table class="numbers"><tr><th>region</th><th>keys</th><th>changes</th>'
        "<th>freshness p50</th><th>p99</th><th>equal to home</th></tr>"
        f"{rows}</table>{_egress(report)}"
    )


def _region(name: str, region: Mapping[str, Any]) -> str:
    fresh = region["freshness_ms"]
    equal = {True: "yes", False: "no", None: "–"}[region["equal_to_home"]]
    cells = [
        escape(name),
        number(region["keys"], ",d"),
        number(region["changes"], ",d"),
        number(fresh["p50"], ".0f", " ms"),
        number(fresh["p99"], ".0f", " ms"),
        equal,
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _egress(report: Mapping[str, Any]) -> str:
    cost = report["egress_usd"]
    if not cost["direct"]:
        return ""
    rows = "".join(
        [
            *(_way(link, "") for link in report["egress"]["links"]),
            _total("sent", cost["ours"]),
            *(_way(link, "direct: ") for link in report["egress"]["direct"]),
            _total("direct replication", cost["direct"]),
        ]
    )
    return (
        f"<p><strong>{escape(replication(report))}</strong> Below is what each link delivered, in"
        " bytes of whole chunks as its sender reports them, at the price that the planner has for"
        " the link; and what the bytes that came into each destination would have cost straight"
        " from home. The demo's regions are all on this machine.</p>"
        '<table class="numbers"><tr><th>link</th><th>MB</th><th>$ per GB</th><th>$</th></tr>'
        f"{rows}</table>"
    )


def _way(link: Mapping[str, Any], what: str) -> str:
    return (
        f"<tr><td>{what}{escape(link['source'])} → {escape(link['target'])}</td>"
        f"<td>{link['wire_bytes'] / 1e6:.3f}</td><td>{link['usd_per_gb']:.3f}</td>"
        f"<td>{link['usd']:.6f}</td></tr>"
    )


def _total(what: str, usd: float) -> str:
    return (
        f"<tr><td><strong>{what}</strong></td><td></td><td></td>"
        f"<td><strong>{usd:.6f}</strong></td></tr>"
    )


def _dead_letters(report: Mapping[str, Any]) -> str:
    tables: dict[tuple[str, str], list[str]] = {}
    for letter in report["dead_letter_samples"]:
        same = (letter["reason"], letter["value"] or "")
        tables.setdefault(same, []).append(letter["table"])
    if not tables:
        return ""
    rows = "".join(
        f"<tr><td>{escape(reason)}</td><td><code>{escape(value)}</code></td>"
        f"<td>{'<br>'.join(map(escape, names))}</td></tr>"
        for (reason, value), names in tables.items()
    )
    return (
        f"<h2>Dead letters</h2><p>{sum(report['malformed_events_sent'].values())} malformed events "
        "were sent on purpose. Both jobs read them and went on; each is one dead letter in "
        f"each job's topic: {report['dead_letters']} of {report['dead_letters_expected']} "
        "expected.</p>"
        '<table class="text"><tr><th>reason</th><th>original</th><th>dead letter of</th></tr>'
        f"{rows}</table>"
    )


def _how(report: Mapping[str, Any]) -> str:
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in report["wall_s"].items())
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return (
        "<h2>How it was measured</h2>"
        f"<p>{report['events']:,} readings went through Kafka into two Flink jobs, one for each "
        "policy, with the same feature function (STL decomposition over three days), the same "
        "events and the same budget. A model for each table read all features from Redis every "
        "hour of event time, forecast the next twelve readings, compared them with what came and "
        f"sent {report['feedback']:,} errors back. {report['changes']:,} change events came out. "
        "Each hour was decided before the next was sent, so the choices do not depend on the "
        "speed of this machine.</p>"
        f"<p>Loss: {escape(report['notes']['loss'])}</p>"
        f'<p class="faint">{report["host"]["cores"]} cores; {escape(phases)}. {escape(versions)}. '
        "The readings are of the Azure Public Dataset (Cortez et al., SOSP 2017), CC-BY 4.0. All "
        "numbers, also by step and by machine, are in report.json.</p>"
    )
