"""Shows figures: tables on the terminal and in Markdown, a JSON report and charts."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.exhibits import Exhibit
from benchmarks.figures import Figure
from freshet.report.figures import to_png

Shown = Figure | Exhibit


def show(console: Console, title: str, shown: Sequence[Shown]) -> None:
    """Prints a table of one benchmark's figures, then its exhibits."""
    figures = _figures(shown)
    if figures:
        _show_figures(console, title, figures)
    for exhibit in _exhibits(shown):
        table = Table(title=exhibit.title, title_justify="left", title_style="bold")
        for column in exhibit.columns:
            table.add_column(column, overflow="fold")
        for row in exhibit.rows:
            table.add_row(*row)
        console.print(table)
        if exhibit.note:
            console.print(exhibit.note)


def _figures(shown: Sequence[Shown]) -> list[Figure]:
    return [each for each in shown if isinstance(each, Figure)]


def _exhibits(shown: Sequence[Shown]) -> list[Exhibit]:
    return [each for each in shown if isinstance(each, Exhibit)]


def _show_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("figure", overflow="fold")
    for column in ("median", "spread"):
        table.add_column(column, justify="right")
    table.add_column("beside", overflow="fold")
    table.add_column("aim", justify="right")
    for figure in figures:
        table.add_row(
            figure.name,
            f"{_number(figure.median)} {figure.unit}",
            "" if figure.spread is None else f"{figure.spread:.0%}",
            _beside(figure),
            _aim(figure),
        )
    console.print(table)


def _beside(figure: Figure) -> str:
    if figure.baseline is None or figure.ratio is None:
        return ""
    return f"{figure.ratio:.3g}x {figure.baseline.name}"


def _aim(figure: Figure) -> str:
    if figure.aim is None:
        return ""
    met = figure.aim.is_met(figure)
    return f"{figure.aim} " + ("[green]met[/]" if met else "[red]missed[/]")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def write(out: Path, results: Mapping[str, Sequence[Shown]], *, quick: bool) -> Path:
    """Writes ``report.json``, ``report.md``, and charts and pictures for each benchmark.

    Returns:
        Path of ``report.json``.
    """
    out.mkdir(parents=True, exist_ok=True)
    report = out / "report.json"
    document = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "quick": quick,
        "benchmarks": {name: [each.to_dict() for each in shown] for name, shown in results.items()},
    }
    report.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
    (out / "report.md").write_text(_markdown(results), encoding="utf-8")
    for name, shown in results.items():
        for exhibit in _exhibits(shown):
            if exhibit.picture is not None:
                (out / f"{exhibit.name}.png").write_bytes(to_png(exhibit.picture))
        figures = _figures(shown)
        bars = [figure for figure in figures if figure.at is None]
        if bars:
            _chart(out / f"{name}.png", name, bars)
        curves = [figure for figure in figures if figure.at is not None]
        if curves:
            _curves(out / f"{name}-growth.png", name, curves)
    return report


def _markdown(results: Mapping[str, Sequence[Shown]]) -> str:
    """The tables as Markdown, for docs/benchmarks.md."""
    lines = []
    for name, shown in results.items():
        lines += [
            f"### {name}\n",
            "| figure | median | spread | beside | aim |",
            "|---|---|---|---|---|",
        ]
        for figure in _figures(shown):
            spread = "" if figure.spread is None else f"{figure.spread:.0%}"
            aim = ""
            if figure.aim is not None:
                aim = f"{figure.aim}: {'met' if figure.aim.is_met(figure) else '**missed**'}"
            value = f"{_number(figure.median)} {figure.unit}"
            lines.append(f"| {figure.name} | {value} | {spread} | {_beside(figure)} | {aim} |")
        lines.append("")
        lines += [exhibit.to_markdown() for exhibit in _exhibits(shown)]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Where this runs, as far as figures depend on it."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(pages * size / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_1min": os.getloadavg()[0],
    }


def _chart(file: Path, title: str, figures: Sequence[Figure]) -> None:
    """Medians as bars with the range of the rounds; one panel for each unit."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    groups = _by_unit(figures)
    rows = [len(group) for group in groups.values()]
    plot, axes = plt.subplots(
        len(groups),
        1,
        figsize=(9, 1.2 * len(groups) + 0.35 * sum(rows)),
        squeeze=False,
        height_ratios=rows,
        layout="constrained",
    )
    for axis, (unit, group) in zip(axes[:, 0], groups.items(), strict=True):
        medians = [figure.median for figure in group]
        ranges = [
            [f.median - min(f.samples) for f in group],
            [max(f.samples) - f.median for f in group],
        ]
        places = range(len(group))
        axis.barh(places, medians, xerr=ranges, color="#4477aa", ecolor="#bb5566", height=0.6)
        for place, figure in enumerate(group):
            if figure.aim is not None and figure.aim.of == "value":
                axis.plot([figure.aim.limit] * 2, [place - 0.4, place + 0.4], color="#228833")
        axis.set_yticks(places, [figure.name for figure in group], fontsize=8)
        axis.invert_yaxis()
        axis.set_xlabel(unit)
        positive = [value for value in medians if value > 0]
        if positive and max(positive) > 30 * min(positive):
            axis.set_xscale("log")
    plot.suptitle(f"{title} (median, range of rounds, aim in green)", fontsize=10)
    plot.savefig(file, dpi=120)
    plt.close(plot)


def _curves(file: Path, title: str, figures: Sequence[Figure]) -> None:
    """Medians as points of their curves, both axes logarithmic; one panel for each unit."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    groups = _by_unit(figures)
    plot, axes = plt.subplots(
        len(groups), 1, figsize=(9, 5.5 * len(groups)), squeeze=False, layout="constrained"
    )
    for axis, (unit, group) in zip(axes[:, 0], groups.items(), strict=True):
        curves: dict[str, list[tuple[float, float]]] = {}
        for figure in group:
            assert figure.at is not None
            curves.setdefault(figure.at.series, []).append((figure.at.x, figure.median))
            axis.set_xlabel(figure.at.x_name)
        for place, (series, points) in enumerate(curves.items()):
            style = ("-", "--", ":")[place // 10 % 3]
            axis.plot(*zip(*points, strict=True), style, marker="o", markersize=3, label=series)
        axis.set_ylabel(unit)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, ncols=2)
    plot.suptitle(f"{title} (medians)", fontsize=10)
    plot.savefig(file, dpi=120)
    plt.close(plot)


def _by_unit(figures: Iterable[Figure]) -> dict[str, list[Figure]]:
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(figure.unit, []).append(figure)
    return groups
