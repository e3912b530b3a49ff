"""Snapshots on a terminal: as tables that fit its width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freshet.status import text
from freshet.status.columns import (
    JOBS,
    LINKS,
    REGIONS,
    TABLES,
    Cell,
    Column,
    Level,
    Row,
    plan_lines,
)
from freshet.status.snapshot import Snapshot

_STYLES = {Level.PLAIN: "", Level.GOOD: "green", Level.WARN: "yellow", Level.BAD: "bold red"}
_GAP = 2
"""Between two columns, characters."""

_NAME_WIDTH = 16
"""Longer names are cut before a column is left out, characters."""


def table_of(
    rows: Iterable[Row], columns: Sequence[Column[Row]], width: int, *, whole: bool = False
) -> Table:
    """A table of some rows that fits a terminal.

    Args:
        rows: in their order.
        columns: what there is to say; the least important are left out until the rest fits.
        width: of the terminal.
        whole: whether long names are folded, for people to copy, and not cut.
    """
    cells = [[column.cell(row) for column in columns] for row in rows]
    widths = [
        max([cell_len(column.name), *(cell_len(row[place].text) for row in cells)])
        for place, column in enumerate(columns)
    ]
    shown = _fitting(columns, widths, width)
    _shorten(columns, widths, shown, width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for place in shown:
        table.add_column(
            columns[place].name,
            justify="left" if columns[place].is_text else "right",
            max_width=widths[place],
            no_wrap=not (whole and columns[place].is_text),
            overflow="fold" if whole else "ellipsis",
        )
    for row in cells:
        table.add_row(*(_text(row[place]) for place in shown))
    return table


def _fitting(columns: Sequence[Column[Any]], widths: Sequence[int], width: int) -> list[int]:
    """Places of the columns for which there is room if long names are cut."""
    least_widths = [
        min(each, _NAME_WIDTH) if column.is_text else each
        for column, each in zip(columns, widths, strict=True)
    ]
    shown = list(range(len(columns)))
    while _total(least_widths, shown) > width:
        least = max(shown, key=lambda place: (columns[place].rank, place))
        if not columns[least].rank:
            break
        shown.remove(least)
    return shown


def _shorten(
    columns: Sequence[Column[Any]], widths: list[int], shown: Sequence[int], width: int
) -> None:
    """Cuts the longest names until all fits, or none is long."""
    names = [place for place in shown if columns[place].is_text]
    while _total(widths, shown) > width:
        longest = max(names, key=lambda place: widths[place], default=None)
        if longest is None or widths[longest] <= _NAME_WIDTH:
            return
        widths[longest] -= 1


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[place] + _GAP for place in shown) - _GAP


def _text(cell: Cell) -> Text:
    return Text(text.printable(cell.text), _STYLES[cell.level])


def plain(line: str, style: str = "") -> Text:
    """A line in which nothing has a meaning for the terminal."""
    return Text(text.printable(line), style)


def whole(snapshot: Snapshot, width: int) -> list[RenderableType]:
    """Tables, jobs and regions, for ``freshet status``."""
    shown: list[RenderableType] = []
    if snapshot.tables:
        shown.append(table_of(snapshot.tables, TABLES, width, whole=True))
    jobs = table_of(snapshot.jobs, JOBS, width, whole=True)
    shown.append(jobs if snapshot.jobs else "No jobs.")
    if snapshot.regions:
        shown.append(table_of(snapshot.regions, REGIONS, width, whole=True))
    return shown


def plans(snapshot: Snapshot, width: int) -> list[RenderableType]:
    """Links, and the plans in force, for ``freshet status``."""
    links = table_of(snapshot.links, LINKS, width, whole=True)
    lines = [plain(line) for line in plan_lines(snapshot.plans)]
    return [links, *lines] if snapshot.links else [*lines]


def problems(snapshot: Snapshot) -> list[RenderableType]:
    """What cannot be read."""
    return [plain(problem, "bold red") for problem in snapshot.problems]
