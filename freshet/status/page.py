"""A snapshot as one HTML page, which needs no other file and lets the browser load none."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from freshet.report.page import STYLE
from freshet.status import text
from freshet.status.columns import JOBS, LINKS, REGIONS, TABLES, Column, Level, Row, plan_lines
from freshet.status.maps import PlanMap
from freshet.status.snapshot import Snapshot

OLD_INTERVALS = 3
"""A snapshot is called old after so many intervals."""

_SHOWN_JOBS = 20

_STYLE = (
    STYLE
    + """
body { max-width: 82rem }
h2 { margin-top: 1.8rem }
div.wide { overflow-x: auto }
caption { text-align: left; color: var(--faint); padding-bottom: .3rem }
thead th { white-space: nowrap }
td { white-space: nowrap; font-variant-numeric: tabular-nums }
tbody th { font-weight: normal; text-align: left; overflow-wrap: anywhere; min-width: 12ch }
th.text, td.text { text-align: left }
td.good { color: #1a7f37 } td.warn { color: #9a6700 } td.bad { color: #cf222e; font-weight: bold }
@media (prefers-color-scheme: dark) {
  td.good { color: #56d364 } td.warn { color: #e3b341 } td.bad { color: #ff7b72 }
}
.warning { border-left: 4px solid #d1242f; padding-left: .8rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .9em }
dl { display: grid; grid-template-columns: max-content auto; gap: .2rem 1rem }
dd { margin: 0; color: var(--faint) }
"""
)

# The page asks for itself and takes over what is shown: whatever there is to see is made in one
# place, and somebody without scripts sees the same.
_SCRIPT = """
"use strict";
const connection = document.getElementById("connection");
const intervalMs = Number(document.body.dataset.intervalMs);
let answeredMs = Date.now();

function show(view) {
  const focused = document.activeElement?.id;
  const scrolled = [...document.querySelectorAll("div.wide")].map((e) => [e.id, e.scrollLeft]);
  document.getElementById("view").replaceWith(view);
  for (const [id, left] of scrolled) {
    const wide = document.getElementById(id);
    if (wide) wide.scrollLeft = left;
  }
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

async function refresh() {
  try {
    const signal = AbortSignal.timeout(10000);
    const answer = await fetch(location.pathname, { cache: "no-store", signal });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    show(document.adoptNode(page.getElementById("view")));
    answeredMs = Date.now();
    connection.hidden = true;
  } catch (error) {
    const seconds = Math.round((Date.now() - answeredMs) / 1000);
    connection.textContent =
      `No answer from freshet status for ${seconds} s; what is shown below is that old.`;
    connection.hidden = false;
  }
  setTimeout(refresh, intervalMs);
}

setTimeout(refresh, intervalMs);
"""


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src {_hash(_STYLE)}",
        f"script-src {_hash(_SCRIPT)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The page's Content-Security-Policy: its own style and script, and nothing else."""


def render_page(
    snapshot: Snapshot, maps: Mapping[str, PlanMap], *, age_s: float, interval_s: float
) -> str:
    """The page.

    Args:
        snapshot: to show.
        maps: of the snapshot's plans, by table.
        age_s: since the snapshot was taken, seconds.
        interval_s: between two snapshots, and between two times that the page asks for itself.
    """
    interval_ms = round(interval_s * 1_000)
    title = f"Freshet, {snapshot.home_region}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>{_STYLE}</style>\n"
        f'<noscript><meta http-equiv="refresh" content="{max(1, round(interval_s))}"></noscript>\n'
        f'</head>\n<body data-interval-ms="{interval_ms}">\n<h1>{escape(title)}</h1>\n'
        '<p id="connection" class="warning" role="status" hidden></p>\n'
        + "\n".join(_view(snapshot, maps, age_s, interval_s))
        + f"\n{_meanings()}\n<script>{_SCRIPT}</script>\n</body></html>\n"
    )


def _view(
    snapshot: Snapshot, maps: Mapping[str, PlanMap], age_s: float, interval_s: float
) -> Iterable[str]:
    yield f'<main id="view" data-taken-at-ms="{snapshot.taken_at_ms}">'
    yield _taken(snapshot, age_s)
    if age_s > OLD_INTERVALS * interval_s:
        yield f'<p class="warning">These figures are {age_s:.0f} s old: no newer ones come.</p>'
    if snapshot.problems:
        lines = "".join(f"<li>{_shown(problem)}</li>" for problem in snapshot.problems)
        yield f'<section class="warning" aria-label="Problems"><ul>{lines}</ul></section>'
    yield _table("tables", "Tables", "Features at home.", snapshot.tables, TABLES)
    caption = "Each table in each region that it is sent to, or through."
    yield _table("regions", "Regions", caption, snapshot.regions, REGIONS)
    caption = f"Egress so far {_cost(snapshot)}, at the profiles' prices."
    yield _table("links", "Links", caption, snapshot.links, LINKS)
    yield "<h2>Plans in force</h2>"
    yield from (_map(table, plan_map, snapshot) for table, plan_map in sorted(maps.items()))
    yield f"<pre>{_shown_lines(plan_lines(snapshot.plans))}</pre>"
    jobs = snapshot.jobs[:_SHOWN_JOBS]
    caption = f"The newest {len(jobs)} of {len(snapshot.jobs)} that Flink remembers."
    yield _table("jobs", "Jobs", caption, jobs, JOBS)
    yield "</main>"


def _taken(snapshot: Snapshot, age_s: float) -> str:
    taken = time.gmtime(snapshot.taken_at_ms / 1_000)
    stamp, shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", taken), time.strftime("%H:%M:%S", taken)
    return (
        f'<p class="faint">As of <time datetime="{stamp}">{shown} UTC</time>, {age_s:.1f} s ago;'
        f" taken in {snapshot.took_ms:.0f} ms."
        ' As JSON: <a href="status.json">status.json</a>.</p>'
    )


def _cost(snapshot: Snapshot) -> str:
    pace = "" if snapshot.usd_per_h is None else f", now {text.dollars(snapshot.usd_per_h)} an hour"
    return f"{text.dollars(snapshot.usd)}{pace}"


def _table(
    name: str, title: str, caption: str, rows: Sequence[Row], columns: Sequence[Column[Row]]
) -> str:
    if not rows:
        return f"<h2>{title}</h2>\n<p>None is known.</p>"
    heads = "".join(
        f'<th scope="col" title="{escape(column.meaning)}"{_class(column)}>'
        f"{escape(column.name)}</th>"
        for column in columns
    )
    body = "\n".join(f"<tr>{_cells(row, columns)}</tr>" for row in rows)
    # Whoever has no mouse scrolls a wide table by keys, which needs the focus.
    return (
        f'<h2>{title}</h2>\n<div class="wide" id="wide-{name}" tabindex="0" role="region"'
        f' aria-label="{title}"><table id="{name}"><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _cells(row: Row, columns: Sequence[Column[Row]]) -> str:
    first, *others = columns
    cells = [f'<th scope="row">{_shown(first.cell(row).text)}</th>']
    for column in others:
        cell = column.cell(row)
        cells.append(f"<td{_class(column, cell.level)}>{_shown(cell.text)}</td>")
    return "".join(cells)


def _class(column: Column[Row], level: Level = Level.PLAIN) -> str:
    names = ["text"] * column.is_text + [str(level)] * (level is not Level.PLAIN)
    return f' class="{" ".join(names)}"' if names else ""


def _map(table: str, plan_map: PlanMap, snapshot: Snapshot) -> str:
    if not plan_map.svg:
        return ""
    plan = snapshot.plans[table]
    away = plan["detached"]
    directly = f" Sent to directly, since they do not answer: {', '.join(away)}." if away else ""
    words = f"Plan {plan['number']} of {table}: {plan['note']}.{directly}"
    svg = plan_map.svg.replace("<svg", '<svg class="white"', 1)
    return f"<figure>{svg}<figcaption>{_shown(words)}</figcaption></figure>"


def _meanings() -> str:
    """What the columns say, for those to whom a title of a heading does not show."""
    parts = ["<details><summary>What the columns say</summary>"]
    for title, columns in _ALL:
        named = "".join(f"<dt>{escape(n)}</dt><dd>{escape(m)}</dd>" for n, m in columns)
        parts.append(f"<h2>{title}</h2><dl>{named}</dl>")
    return "".join([*parts, "</details>"])


_ALL = (
    ("Tables", [(column.name, column.meaning) for column in TABLES]),
    ("Regions", [(column.name, column.meaning) for column in REGIONS]),
    ("Links", [(column.name, column.meaning) for column in LINKS]),
)


def _shown(words: str) -> str:
    return escape(text.printable(words))


def _shown_lines(lines: Iterable[str]) -> str:
    return "\n".join(_shown(line) for line in lines)
