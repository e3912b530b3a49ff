"""What commands print: text for people, or one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
"""The option that every command has."""

_console = Console(soft_wrap=True, highlight=False)
_progress = Console(stderr=True, soft_wrap=True, highlight=False)


def emit(values: Mapping[str, Any], *rendered: RenderableType, as_json: bool) -> None:
    """Prints a command's result to standard output.

    Args:
        values: as JSON: everything that the text says, and more.
        rendered: for people, in order.
        as_json: which of the two.
    """
    if as_json:
        typer.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    for part in rendered:
        _console.print(part)


def width() -> int:
    """Characters in a line of standard output, for what is made to fit."""
    return _console.width


def note(text: str) -> None:
    """Tells people on standard error what happens meanwhile; standard output stays the result's."""
    _progress.print(f"[dim]{text}[/dim]")
