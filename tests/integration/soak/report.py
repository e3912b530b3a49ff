"""What a soak has found, for readers: a page, a picture and the samples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from tests.integration.soak.flatness import Trend
from tests.integration.soak.sampling import KINDS, Series

Found = Sequence[tuple[Series, Trend]]


def write_report(folder: Path, facts: Mapping[str, str], found: Found, warm_up_s: float) -> None:
    """Writes ``report.md``, ``soak.png`` and ``samples.json``.

    Args:
        folder: made when missing.
        facts: what else there is to say, by name.
        found: each quantity with its trend after the warm-up.
        warm_up_s: when judging begins, seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(_page(facts, found), encoding="utf-8")
    samples = [
        {"kind": s.kind.name, "of": s.of, "times_s": s.times_s, "values": s.values}
        for s, _ in found
    ]
    (folder / "samples.json").write_text(json.dumps(samples), encoding="utf-8")
    _draw(folder / "soak.png", found, warm_up_s)


def _page(facts: Mapping[str, str], found: Found) -> str:
    rows = [f"| {name} | {value} |" for name, value in facts.items()]
    lines = [
        "| quantity | of | at the beginning | growth, 95 % interval | tolerated | an hour | flat |",
        "|---|---|---|---|---|---|---|",
    ]
    for series, each in found:
        unit = f" {series.kind.unit}".rstrip()
        lines.append(
            f"| {series.kind.name} | {series.of} | {each.begin:,.2f}{unit}"
            f" | {each.growth:+,.2f} ({each.growth_low:+,.2f} to {each.growth_high:+,.2f})"
            f" | {each.tolerated:,.1f} | {each.per_hour:+,.2f}"
            f" | {'yes' if each.is_flat else '**no**'} |"
        )
    return "\n".join(
        [
            "# Soak",
            "",
            "Growth is that of a robust line (Theil-Sen) over the time after the warm-up.",
            "",
            "| | |",
            "|---|---|",
            *rows,
            "",
            *lines,
            "",
            "![Samples](soak.png)",
            "",
        ]
    )


def _draw(file: Path, found: Found, warm_up_s: float) -> None:
    figure = Figure(figsize=(9, 2.4 * len(KINDS)))
    axes = figure.subplots(len(KINDS), 1, sharex=True)
    for axis, kind in zip(axes, KINDS, strict=True):
        for series, _ in found:
            if series.kind is kind:
                minutes = [second / 60 for second in series.times_s]
                axis.plot(minutes, series.values, label=series.of, linewidth=1)
        axis.axvspan(0, warm_up_s / 60, color="0.93", zorder=0)
        axis.set_ylabel(f"{kind.name}, {kind.unit}".removesuffix(", "))
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("minutes (grey: warm-up)")
    figure.savefig(file, dpi=110, bbox_inches="tight")
