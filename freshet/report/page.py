"""The frame of a report: one HTML page without any reference to another file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from freshet.report.figures import Plot, to_svg

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --page: #fff; --faint: #6a737d; --line: #d8dee4 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --page: #14181d; --faint: #9aa4af; --line: #343b44 }
}
body { color: var(--ink); background: var(--page); margin: 2rem auto; max-width: 54rem;
  padding: 0 1rem; font: 16px/1.55 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin-bottom: .2rem }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem }
p.faint, td.faint, figcaption { color: var(--faint) }
p.warning { border-left: 4px solid #d1242f; padding-left: .8rem }
figure { margin: 0 }
figure svg { color: var(--ink); max-width: 100%; height: auto; display: block }
figure svg.white { color: #1b1f24; background: #fff }
table { border-collapse: collapse; width: 100% }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
table.numbers td { white-space: nowrap }
table.text td, table.text th { text-align: left; vertical-align: top }
table.text td:nth-child(2) { overflow-wrap: anywhere; min-width: 12rem }
table.text td:last-child { white-space: nowrap }
code { font-size: .9em }
"""


def html_page(title: str, parts: Iterable[str]) -> str:
    """A page of these parts, which are HTML; empty ones are left out."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def html_plot(plot: Plot) -> str:
    """The figure with its heading and caption."""
    svg = to_svg(plot.figure)
    if plot.on_white:
        svg = svg.replace("<svg", '<svg class="white"', 1)
    return (
        f"<h2>{escape(plot.title)}</h2>\n<figure>{svg}"
        f"<figcaption>{escape(plot.caption)}</figcaption></figure>"
    )
