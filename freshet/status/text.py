"""Figures of a snapshot as people read them, on terminals and on the page alike."""

from __future__ import annotations

NONE = "-"

_MS_PER_S = 1_000.0
_LONG_MS = 10_000.0
"""From here on seconds say as much as milliseconds."""

_S_PER_H = 3_600.0
_LONG_S = 2 * _S_PER_H
_DOLLAR_DIGITS = 4
_CENT = 0.01


def milliseconds(value: float | None) -> str:
    """A time span in the unit that fits it."""
    if value is None:
        return NONE
    if value < _LONG_MS:
        return f"{value:.0f} ms"
    seconds = value / _MS_PER_S
    return f"{seconds:.1f} s" if seconds < _LONG_S else f"{seconds / _S_PER_H:,.1f} h"


def limit(value: float | None) -> str:
    """A time span that somebody has chosen, such as an SLO: without a digit more."""
    if value is None or value < _MS_PER_S:
        return milliseconds(value)
    return f"{value / _MS_PER_S:g} s"


def count(value: int | None) -> str:
    """A whole number."""
    return NONE if value is None else f"{value:,}"


def decimal(value: float | None, digits: int = 1) -> str:
    """A number with some digits behind the point."""
    return NONE if value is None else f"{value:,.{digits}f}"


def dollars(value: float | None) -> str:
    """An amount; more digits where it is below a cent."""
    if value is None:
        return NONE
    return f"${value:,.{_DOLLAR_DIGITS if abs(value) >= _CENT or not value else 6}f}"


def megabytes(value: float) -> str:
    """Bytes as MB."""
    return f"{value / 1e6:,.3f} MB"


def printable(text: str) -> str:
    """Text that can move no cursor: what stands for a control character is visible."""
    return "".join(each if each.isprintable() else "�" for each in text)
