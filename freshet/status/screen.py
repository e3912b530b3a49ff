"""The view of ``freshet top``: what is in it, in which order, and which part fits the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from freshet.multicast.standing import LinkStanding, Standing
from freshet.status import text
from freshet.status.columns import LINKS, REGIONS, TABLES, plan_lines
from freshet.status.snapshot import Snapshot, TableStatus
from freshet.status.terminal import plain, problems, table_of

_KEYS = "q quit   ↑↓ scroll   s sort"


@dataclass(frozen=True)
class Order:
    """One way to sort; smaller comes first."""

    name: str
    table: Callable[[TableStatus], Any]
    region: Callable[[Standing], Any]
    link: Callable[[LinkStanding], Any]


def _share_of_slo(region: Standing) -> float:
    return (region.delay_p99_ms or 0.0) / (region.slo_ms or 1_000.0)


ORDERS = (
    Order(
        "worst first",
        lambda t: (-(t.regret or 0.0), -(t.pending_keys or 0), t.table),
        lambda r: (not r.detached, -_share_of_slo(r), r.region, r.table),
        lambda li: (not li.behind, -li.backlog_keys, li.source, li.target),
    ),
    Order(
        "name",
        lambda t: t.table,
        lambda r: (r.region, r.table),
        lambda li: (li.source, li.target),
    ),
    Order(
        "backlog",
        lambda t: (-(t.pending_keys or 0), t.table),
        lambda r: (-r.backlog_keys, r.region, r.table),
        lambda li: (-li.backlog_keys, li.source, li.target),
    ),
    Order(
        "volume",
        lambda t: (-(t.updates_per_s or 0.0), t.table),
        lambda r: (-r.wire_bytes, r.region, r.table),
        lambda li: (-li.wire_bytes, li.source, li.target),
    ),
)


def view(snapshot: Snapshot, width: int, order: Order = ORDERS[0]) -> RenderableType:
    """All that there is to see.

    Args:
        snapshot: to show.
        width: of the terminal; the least important columns are left out until the rest fits.
        order: of rows.
    """
    parts: list[RenderableType] = [heading(snapshot), *problems(snapshot), ""]
    if snapshot.tables:
        parts.append(table_of(sorted(snapshot.tables, key=order.table), TABLES, width))
    else:
        parts.append("No tables.")
    if snapshot.regions:
        parts += ["", table_of(sorted(snapshot.regions, key=order.region), REGIONS, width)]
    if snapshot.links:
        parts += ["", table_of(sorted(snapshot.links, key=order.link), LINKS, width)]
    if snapshot.plans:
        parts += ["", *(plain(line) for line in plan_lines(snapshot.plans))]
    return Group(*parts)


def heading(snapshot: Snapshot) -> Text:
    """One line: when, where, jobs, and dollars."""
    states: dict[str, int] = {}
    for job in snapshot.jobs:
        states[job.state] = states.get(job.state, 0) + 1
    jobs = ", ".join(f"{count} {state.lower()}" for state, count in sorted(states.items()))
    pace = "" if snapshot.usd_per_h is None else f" ({text.dollars(snapshot.usd_per_h)}/h)"
    taken = time.strftime("%H:%M:%S", time.localtime(snapshot.taken_at_ms / 1_000))
    return plain(
        f"freshet top - {taken}  home {snapshot.home_region}  jobs: {jobs or 'none'}"
        f"  egress {text.dollars(snapshot.usd)}{pace}",
        "bold",
    )


class Screen:
    """Which part of the view is shown, and in which order, as keys have changed it."""

    def __init__(self) -> None:
        self.order = 0
        self.top = 0
        """Lines that are scrolled away."""

    def press(self, key: str) -> None:
        """Does what a key is for; others are for nothing."""
        if key == "s":
            self.order = (self.order + 1) % len(ORDERS)
        self.top = max(
            0, self.top + {"down": 1, "up": -1, "page down": 10, "page up": -10}.get(key, 0)
        )

    def draw(self, console: Console, snapshot: Snapshot) -> RenderableType:
        """What is to be seen in a terminal of the console's size."""
        order = ORDERS[self.order]
        lines = console.render_lines(view(snapshot, console.width, order), pad=False)
        room = max(1, console.height - 1)
        self.top = min(self.top, max(0, len(lines) - room))
        shown = lines[self.top : self.top + room]
        below = len(lines) - self.top - len(shown)
        more = f"   {below} more lines" if below else ""
        drawn = Text("\n").join(
            Text.assemble(*((segment.text, segment.style or "") for segment in line))
            for line in shown
        )
        padding = "\n" * (room - len(shown) + 1)
        keys = Text(f"{_KEYS} ({order.name}){more}", "reverse", no_wrap=True, overflow="crop")
        return Text.assemble(drawn, padding, keys)
