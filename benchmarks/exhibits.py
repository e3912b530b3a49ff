"""Exhibits: tables of several columns, with a picture, where a paper shows its results so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Exhibit:
    """A table, and what it looks like."""

    name: str
    """Of the picture's file, without the suffix."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Cells as they are printed."""

    note: str = ""
    """How to read it."""

    picture: Picture | None = None

    def to_dict(self) -> dict[str, Any]:
        """For the report; the picture is a file beside it."""
        return {
            "exhibit": self.name,
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "note": self.note,
        }

    def to_markdown(self) -> str:
        """The table, with its title and note."""
        lines = [f"**{self.title}**\n", _row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row(row) for row in self.rows]
        return "\n".join([*lines, *([f"\n{self.note}"] if self.note else []), ""])


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
