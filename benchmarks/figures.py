"""Figures: what a benchmark measured, beside what, and what was aimed for."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Aim:
    """What a figure should be; told in the report, never asserted, because machines differ."""

    limit: float
    """In the figure's unit, or as a ratio."""

    of: Literal["value", "ratio"] = "value"
    """Whether the limit is for the figure itself or for its ratio to the baseline."""

    at_least: bool = False
    """Whether the limit is a lower one."""

    def is_met(self, figure: Figure) -> bool | None:
        """Whether the median meets it; None without a baseline to compare with."""
        value = figure.median if self.of == "value" else figure.ratio
        if value is None:
            return None
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {self.limit:g}" + ("x" if self.of == "ratio" else "")


@dataclass(frozen=True)
class Point:
    """Where a figure is on a curve."""

    series: str
    """Name of the curve."""

    x: float
    x_name: str


@dataclass(frozen=True)
class Figure:
    """One figure."""

    name: str
    unit: str
    samples: tuple[float, ...]
    """One a round; rounds of a figure and of its baseline took turns."""

    baseline: Figure | None = None
    """What was measured beside it."""

    aim: Aim | None = None
    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, for the report only."""

    at: Point | None = None
    """Drawn as a point of a curve instead of as a bar."""

    @property
    def median(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float | None:
        """Distance of the largest and the smallest round, relative to the median."""
        if len(self.samples) < 2 or self.median == 0:
            return None
        return (max(self.samples) - min(self.samples)) / abs(self.median)

    @property
    def ratio(self) -> float | None:
        """Median of each round's ratio to the baseline: noise that hits both cancels out."""
        if self.baseline is None:
            return None
        pairs = zip(self.samples, self.baseline.samples, strict=False)
        return statistics.median(own / other for own, other in pairs)

    def to_dict(self) -> dict[str, Any]:
        """For the report."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "spread": self.spread,
            "samples": list(self.samples),
            "baseline": self.baseline.name if self.baseline else None,
            "ratio": self.ratio,
            "aim": str(self.aim) if self.aim else None,
            "aim_met": self.aim.is_met(self) if self.aim else None,
            "note": self.note,
            **({"details": dict(self.details)} if self.details else {}),
            **({"at": asdict(self.at)} if self.at else {}),
        }


def take_turns(
    subjects: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, tuple[float, ...]]:
    """Measures every subject once a round; who begins changes from round to round."""
    names = list(subjects)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            samples[name].append(subjects[name]())
    return {name: tuple(values) for name, values in samples.items()}


def percentile(values: Iterable[float], percent: float) -> float:
    """Percentile by linear interpolation.

    Args:
        values: at least one.
        percent: 0 to 100.
    """
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True)
class Line:
    """A line through points, by least squares."""

    constant: float
    slope: float
    r_squared: float
    """Share of the variance that the line explains."""


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Fits a line to points of at least two different xs."""
    slope, constant = statistics.linear_regression(xs, ys)
    mean = statistics.fmean(ys)
    left = sum((y - constant - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    spread = sum((y - mean) ** 2 for y in ys)
    return Line(constant, slope, 1 - left / spread if spread else 1.0)
