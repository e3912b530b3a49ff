"""Numbers as people read them."""

from __future__ import annotations


def number(value: float | None, form: str, unit: str = "") -> str:
    """A number with its unit, or a dash for none."""
    return "–" if value is None else f"{value:{form}}{unit}"
