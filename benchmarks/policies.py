"""Compares every policy on several data sets and seeds: what ``docs/choosing-a-policy.md`` says.

::

    python -m benchmarks.policies --data azure=examples/data/azure_vm_cpu.npz --data NAME=PATH ...

Uses the simulation of ``freshet evaluate``, which the tests hold equal to the real job, so that
hundreds of arms take minutes. Writes ``policies.json``, ``policies.md`` and a picture for each data
set.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded; products are small

import numpy as np
from rich.console import Console

from freshet.evaluation.queries import Queries
from freshet.evaluation.record import ArmRecord
from freshet.evaluation.result import ratio_interval
from freshet.evaluation.series import SeriesWorkload, load_series
from freshet.evaluation.simulation import POLICIES, Simulation
from freshet.evaluation.variants import NONE, UNLIMITED, Arm, Variant
from freshet.report.figures import INK, PALETTE, finish, new_figure, to_png

BUDGETS = (0.005, 0.01, 0.02, 0.05)
SEARCHED_BUDGETS = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.2, 0.5)
"""Among these the smallest is looked for that is within 1 % of unlimited."""

KEPT = (
    *((policy, 1) for policy in POLICIES),
    ("round-robin", 4),
    ("regret-proportional", 2),
    ("regret-proportional", 4),
    ("regret-proportional", 8),
)
VARIANTS = [Variant(policy, keep) for policy, keep in KEPT]
SEEDED = [
    Variant(policy, keep)
    for policy, keep in (
        ("round-robin", 1),
        ("random", 1),
        ("query-proportional", 1),
        ("regret-proportional", 1),
        ("regret-proportional", 2),
        ("regret-proportional", 4),
    )
]
BOUNDS = [Arm(Variant(UNLIMITED), float("inf")), Arm(Variant(NONE), 0.0)]
WITHIN = 1.01

Records = dict[str, ArmRecord]


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description="Compare all policies on several data sets.")
    parser.add_argument(
        "--data",
        action="append",
        metavar="NAME=PATH",
        help="a data set as `freshet evaluate stl` reads it; may be repeated",
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds of random queries; 0 for none")
    parser.add_argument("--out", type=Path, default=Path("out/policies"))
    arguments = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    given = arguments.data or ["azure=examples/data/azure_vm_cpu.npz"]
    arguments.out.mkdir(parents=True, exist_ok=True)
    results, lines = {}, []
    for text in given:
        name, _, path = text.partition("=")
        started = time.monotonic()
        results[name] = _compare(name, path, arguments.seeds, console)
        results[name]["seconds"] = round(time.monotonic() - started, 1)
        lines += _markdown(name, results[name])
        (arguments.out / f"{name}.png").write_bytes(_picture(results[name]))
        # After each, so that an interrupted run leaves what it has.
        (arguments.out / "policies.json").write_text(json.dumps(results, indent=1) + "\n")
        (arguments.out / "policies.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _compare(name: str, path: str, seeds: int, console: Console) -> dict[str, Any]:
    grid = load_series(path)
    workload = SeriesWorkload(grid)
    console.print(f"{name}: {len(workload.keys)} keys, {workload.steps} steps")
    arms = [*BOUNDS, *(Arm(variant, budget) for variant in VARIANTS for budget in BUDGETS)]
    records = _simulate(workload, arms, 0)
    unlimited = records[UNLIMITED].loss
    result: dict[str, Any] = {
        "keys": len(workload.keys),
        "steps": workload.steps,
        "notes": list(workload.notes),
        "unlimited": unlimited,
        "none": records[NONE].loss,
        "loss": {
            str(variant): [records[str(Arm(variant, budget))].loss for budget in BUDGETS]
            for variant in VARIANTS
        },
        "against": {},
        "queries": {},
    }
    for base in ("round-robin", "regret-proportional"):
        result["against"][base] = {
            str(variant): [_against(records, variant, Variant(base), budget) for budget in BUDGETS]
            for variant in VARIANTS
            if str(variant) != base
        }
    console.print(f"{name}: the smallest budget that is as good as unlimited")
    result["within_1_percent"] = _smallest(workload, unlimited)
    for queries in (Queries.POISSON, Queries.ZIPF) if seeds else ():
        console.print(f"{name}: {queries} queries, {seeds} seeds")
        result["queries"][queries.value] = _seeded(grid, queries, seeds)
    return result


def _simulate(workload: SeriesWorkload, arms: Sequence[Arm], seed: int) -> Records:
    return {str(record.arm): record for record in Simulation(workload, seed).replay(arms)}


def _against(records: Records, variant: Variant, base: Variant, budget: float) -> dict[str, float]:
    one, other = records[str(Arm(variant, budget))], records[str(Arm(base, budget))]
    low, high = ratio_interval(one, other, 0)
    return {"ratio": one.loss / other.loss, "low": low, "high": high}


def _smallest(workload: SeriesWorkload, unlimited: float) -> dict[str, float | None]:
    """For each variant the smallest budget whose loss is within 1 % of unlimited."""
    variants = [
        Variant("round-robin"),
        Variant("regret-proportional"),
        Variant("regret-proportional", 2),
        Variant("regret-proportional", 4),
    ]
    arms = [Arm(variant, budget) for variant in variants for budget in SEARCHED_BUDGETS]
    records = _simulate(workload, arms, 0)
    found: dict[str, float | None] = {}
    for variant in variants:
        enough = [
            budget
            for budget in SEARCHED_BUDGETS
            if records[str(Arm(variant, budget))].loss <= WITHIN * unlimited
        ]
        found[str(variant)] = min(enough, default=None)
    return found


def _seeded(grid: Any, queries: Queries, seeds: int) -> dict[str, Any]:
    """Loss at 1 % under random queries: mean and range over seeds, and ratios of each seed."""
    losses: dict[str, list[float]] = {str(variant): [] for variant in SEEDED}
    for seed in range(seeds):
        workload = SeriesWorkload(grid, queries=queries, seed=seed)
        records = _simulate(workload, [Arm(variant, 0.01) for variant in SEEDED], seed)
        for record in records.values():
            losses[str(record.arm.variant)].append(record.loss)
    robin, regret = np.array(losses["round-robin"]), np.array(losses["regret-proportional"])
    return {
        name: {
            "mean": float(np.mean(values)),
            "low": min(values),
            "high": max(values),
            "to_round_robin": (np.array(values) / robin).round(4).tolist(),
            "to_regret_proportional": (np.array(values) / regret).round(4).tolist(),
        }
        for name, values in losses.items()
    }


def _markdown(name: str, result: dict[str, Any]) -> list[str]:
    head = " | ".join(f"{budget:.1%}" for budget in BUDGETS)
    lines = [
        f"## {name}",
        "",
        f"{result['keys']} keys, {result['steps']} steps; unlimited {result['unlimited']:.3f}, "
        f"none {result['none']:.3f}. {' '.join(result['notes'])}",
        "",
        f"| policy | {head} |",
        "|---|" + "---|" * len(BUDGETS),
    ]
    for policy, losses in result["loss"].items():
        lines.append(f"| {policy} | " + " | ".join(f"{loss:.3f}" for loss in losses) + " |")
    for base, ratios in result["against"].items():
        lines += ["", f"| ratio to {base} | {head} |", "|---|" + "---|" * len(BUDGETS)]
        for policy, cells in ratios.items():
            shown = (f"{c['ratio']:.3f} ({c['low']:.3f}–{c['high']:.3f})" for c in cells)
            lines.append(f"| {policy} | " + " | ".join(shown) + " |")
    lines += ["", "| policy | smallest budget within 1 % of unlimited |", "|---|---|"]
    for policy, budget in result["within_1_percent"].items():
        lines.append(f"| {policy} | {'more than 50 %' if budget is None else f'{budget:.1%}'} |")
    for queries, found in result["queries"].items():
        lines += [
            "",
            f"| {queries} queries, budget 1 % | loss, mean (range) | to round-robin, each seed "
            "| to regret-proportional |",
            "|---|---|---|---|",
        ]
        for policy, row in found.items():
            robin = " ".join(f"{ratio:.3f}" for ratio in row["to_round_robin"])
            regret = " ".join(f"{ratio:.3f}" for ratio in row["to_regret_proportional"])
            lines.append(
                f"| {policy} | {row['mean']:.3f} ({row['low']:.3f}–{row['high']:.3f}) "
                f"| {robin} | {regret} |"
            )
    return [*lines, ""]


def _picture(result: dict[str, Any]) -> bytes:
    """Loss against budget."""
    figure, axes = new_figure("loss")
    shown = [
        name
        for name in result["loss"]
        if name not in ("regret-over-baseline", "max-pending", "minimum-past")
    ]
    for color, name in zip(PALETTE, shown, strict=False):
        axes.plot(BUDGETS, result["loss"][name], color=color, marker="o", markersize=4, label=name)
    axes.axhline(result["unlimited"], color=INK, linestyle="--", linewidth=1, label=UNLIMITED)
    axes.set_xscale("log")
    axes.set_xticks(BUDGETS, [f"{budget:.1%}" for budget in BUDGETS])
    axes.minorticks_off()
    axes.set_xlabel("updates in a step, share of keys")
    figure.set_size_inches(8.6, 4.2)
    return to_png(finish(figure, axes))


if __name__ == "__main__":
    main()
