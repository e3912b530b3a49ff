"""What the demo shows while it runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from freshet.report.text import number

REFRESH_INTERVAL_S = 0.4
LINE_INTERVAL_S = 10.0
"""Where lines are kept, as in a log, fewer say as much."""


@dataclass(frozen=True)
class PolicyView:
    """One policy's column."""

    policy: str
    updates: int
    loss: float | None
    """So far, in units of the naive error."""

    recent_loss: float | None
    """Over the last day of event time."""

    staleness_hours: float | None
    freshness_p50_ms: float | None
    freshness_p99_ms: float | None
    dead_letters: int


@dataclass(frozen=True)
class RegionView:
    """One destination's column."""

    region: str
    sender: str | None
    """Where its changes come from now; None before the first plan."""

    changes: int
    """That its store has taken."""

    freshness_p50_ms: float | None
    """From a value's computation to its being readable there, of the last ten seconds or so."""

    freshness_p99_ms: float | None


@dataclass(frozen=True)
class View:
    """What is shown at one moment."""

    phase: str
    done: int
    total: int
    unit: str
    """What is counted, such as "hour"."""

    events: int
    speed_up: float | None
    policies: Sequence[PolicyView]
    regions: Sequence[RegionView] = ()


class LiveDisplay:
    """Shows the newest view, at most a few times a second."""

    def __init__(self, console: Console) -> None:
        """Shows on this console."""
        self._console = console
        self._live: Live | None = None
        self._next_s = 0.0
        self._interval_s = REFRESH_INTERVAL_S if console.is_terminal else LINE_INTERVAL_S

    def __enter__(self) -> LiveDisplay:
        """Takes the terminal over, where there is one."""
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Gives the terminal back; the last view stays."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Prints a line that stays."""
        self._console.print(text, soft_wrap=True)

    def show(self, view: Callable[[], View], *, now: bool = False) -> None:
        """Shows a view, if it is time for one.

        Args:
            view: makes it; not called when it is too early.
            now: whether it is shown however early it is.
        """
        time_s = time.monotonic()
        if time_s < self._next_s and not now:
            return
        self._next_s = time_s + self._interval_s
        if self._live is not None:
            self._live.update(render(view()), refresh=True)
        else:
            self._console.print(plain_line(view()), soft_wrap=True)


def render(view: View) -> RenderableType:
    """The view as a table with a progress bar."""
    table = Table(title=None, expand=False)
    table.add_column("")
    for policy in view.policies:
        table.add_column(policy.policy, justify="right")
    rows: list[tuple[str, Callable[[PolicyView], str]]] = [
        ("updates", lambda p: f"{p.updates:,}"),
        ("loss so far (× naive error)", lambda p: number(p.loss, ".3f")),
        ("loss, last 24 h", lambda p: number(p.recent_loss, ".3f")),
        ("staleness, mean", lambda p: number(p.staleness_hours, ".1f", " h")),
        ("freshness p50", lambda p: number(p.freshness_p50_ms, ".0f", " ms")),
        ("freshness p99", lambda p: number(p.freshness_p99_ms, ".0f", " ms")),
        ("dead letters", lambda p: f"{p.dead_letters}"),
    ]
    best = min((p.loss for p in view.policies if p.loss is not None), default=None)
    for name, cell in rows:
        bold = name.startswith("loss so far")
        cells = [
            Text(cell(p), style="bold green" if bold and p.loss == best is not None else "")
            for p in view.policies
        ]
        table.add_row(name, *cells)
    progress = Table.grid(padding=(0, 1))
    progress.add_row(
        ProgressBar(total=max(1, view.total), completed=view.done, width=30),
        f"{view.phase}: {view.unit} {view.done} of {view.total}",
        f"{view.events:,} events",
        f"{view.speed_up:,.0f} × real time" if view.speed_up else "",
    )
    return Group(table, *([_regions(view.regions)] if view.regions else []), progress)


def _regions(regions: Sequence[RegionView]) -> Table:
    table = Table(title=None, expand=False)
    table.add_column("")
    for region in regions:
        table.add_column(region.region, justify="right")
    table.add_row("gets changes from", *(region.sender or "–" for region in regions))
    table.add_row("changes", *(f"{region.changes:,}" for region in regions))
    table.add_row(
        "freshness p50, last 10 s", *(number(r.freshness_p50_ms, ".0f", " ms") for r in regions)
    )
    table.add_row(
        "freshness p99, last 10 s", *(number(r.freshness_p99_ms, ".0f", " ms") for r in regions)
    )
    return table


def plain_line(view: View) -> str:
    """The view in one line."""
    parts = [f"{view.phase}: {view.unit} {view.done} of {view.total}, {view.events:,} events"]
    if view.speed_up:
        parts.append(f"{view.speed_up:,.0f} x real time")
    for p in view.policies:
        if p.loss is None:
            continue
        parts.append(
            f"{p.policy}: loss {number(p.loss, '.3f')}, {p.updates} updates, staleness "
            f"{number(p.staleness_hours, '.1f', ' h')}, freshness "
            f"{number(p.freshness_p50_ms, '.0f')}/{number(p.freshness_p99_ms, '.0f')} ms, "
            f"{p.dead_letters} dead letters"
        )
    for r in view.regions:
        if r.changes:
            parts.append(
                f"{r.region}: {r.changes:,} changes from {r.sender or '–'}, freshness "
                f"{number(r.freshness_p50_ms, '.0f')}/{number(r.freshness_p99_ms, '.0f')} ms"
            )
    return "; ".join(parts)
