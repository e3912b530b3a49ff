"""The report of an evaluation as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from freshet.evaluation.result import conclusion
from freshet.report.figures import Plot
from freshet.report.page import html_page, html_plot
from freshet.report.text import number


def render_page(result: Mapping[str, Any], plots: Sequence[Plot]) -> str:
    """The page, without any reference to another file.

    Args:
        result: as ``build_result`` makes it.
        plots: of the same result.
    """
    return html_page(
        "Freshet evaluation",
        [
            "<h1>Scheduling policies compared</h1>",
            f'<p class="faint">{escape(_subtitle(result))}</p>',
            f"<p><strong>{escape(conclusion(result))}</strong></p>",
            _rows(result),
            *(html_plot(plot) for plot in plots),
            _comparisons(result),
            _how(result),
        ],
    )


def _subtitle(result: Mapping[str, Any]) -> str:
    step = result["step_seconds"]
    length = f"{step / 3600:g} h" if step >= 3600 else f"{step:g} s"
    return (
        f"Workload {result['workload']}: {len(result['keys']):,} keys, {result['steps']:,} steps "
        f"of {length}, {result['queries']:,} queries. Finished {result['finished_at']}."
    )


def _rows(result: Mapping[str, Any]) -> str:
    head = (
        "<tr><th>policy</th><th>budget</th><th>loss</th><th>regret</th><th>updates</th>"
        "<th>of unlimited</th><th>staleness, mean</th><th>p99</th></tr>"
    )
    body = "".join(
        "<tr>"
        + f"<td>{escape(row['policy'])}</td>"
        + "".join(
            f"<td>{cell}</td>"
            for cell in (
                "" if row["budget"] is None else f"{row['budget']:g}",
                number(row["loss"], ".4f"),
                number(row["regret"], "+.4f"),
                f"{row['updates']:,}",
                number(row["updates_share"], ".1%"),
                _hours(row["staleness_mean"]),
                _hours(row["staleness_p99"]),
            )
        )
        + "</tr>"
        for row in result["rows"]
    )
    return (
        f'<table class="numbers">{head}{body}</table>'
        f"<p>Loss is the {escape(result['unit'])}, over all queries. Regret is the loss above that "
        "of unlimited computation; a policy that keeps several versions may be below. A budget is "
        f"a number of updates, as a share {escape(result['budget_unit'])}.</p>"
    )


def _comparisons(result: Mapping[str, Any]) -> str:
    if not result["comparisons"]:
        return ""
    rows = "".join(
        f"<tr><td>{escape(c['policy'])}</td><td>{escape(c['against'])}</td><td>{c['budget']:g}</td>"
        f"<td>{number(c['loss_ratio'], '.3f')}</td>"
        f"<td>{number(c['interval'][0], '.3f')} – {number(c['interval'][1], '.3f')}</td></tr>"
        for c in result["comparisons"]
    )
    return (
        "<h2>How sure is that?</h2><p>The ratio of two losses, with the interval that 95 % of "
        "redrawn sets of keys give. An interval that holds 1 says that the difference may be "
        "chance.</p>"
        '<table class="numbers"><tr><th>policy</th><th>against</th><th>budget</th>'
        f"<th>loss ratio</th><th>95 % interval</th></tr>{rows}</table>"
    )


def _how(result: Mapping[str, Any]) -> str:
    options = ", ".join(f"{name}: {value}" for name, value in result["options"].items())
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in result["wall_s"].items())
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    notes = " ".join(result["notes"])
    engine = (
        "The events went through Kafka into a real Flink job with one table for each row; features "
        "were read from Redis, and the errors went back through Kafka. Each step was decided "
        "before the next was sent, so the choices do not depend on the speed of this machine."
        if result["options"].get("engine") == "job"
        else "The rules of the scheduler were simulated; nothing ran in Flink. Run with --engine "
        "job to see the real job do the same."
    )
    return (
        f"<h2>How it was measured</h2><p>{escape(engine)} {escape(notes)}</p>"
        f'<p class="faint">{escape(options)}. {escape(phases)}. {result["host"]["cores"]} cores; '
        f"{escape(versions)}.</p>"
    )


def _hours(seconds: float | None) -> str:
    return number(None if seconds is None else seconds / 3600, ".1f", " h")
