"""Ideas for better priorities that no policy has, because they are no better for sure.

::

    python -m benchmarks.ideas --data azure=examples/data/azure_vm_cpu.npz --data NAME=PATH ...

Each is simulated (``freshet.evaluation.simulation``) beside ``regret-proportional`` with the same
budgets, one version and four kept. Writes ``ideas.json`` and ``ideas.md``.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded; products are small

import numpy as np

from freshet.evaluation.record import ArmRecord
from freshet.evaluation.result import ratio_interval
from freshet.evaluation.series import SeriesWorkload, load_series
from freshet.evaluation.simulation import (
    CHOICE_DECAY,
    KeyState,
    Moment,
    Priority,
    Simulation,
    with_missing,
)
from freshet.evaluation.variants import Arm, Variant
from freshet.evaluation.workload import Floats

BUDGETS = (0.005, 0.01, 0.02, 0.05)
BASE = "regret-proportional"
KEEP = 4


def _recent_error_times_queries(keys: KeyState, moment: Moment) -> Floats:
    return with_missing(keys.recent_error * keys.queries, keys, moment)


def _regret_times_root_of_queries(keys: KeyState, moment: Moment) -> Floats:
    return with_missing(keys.regret * np.sqrt(keys.queries), keys, moment)


def _gain_of_waiting(keys: KeyState, moment: Moment) -> Floats:
    return with_missing(keys.recent_error * keys.queries - keys.regret, keys, moment)


def _regret_over_half_the_first_error(keys: KeyState, moment: Moment) -> Floats:
    first = keys.first_error / np.maximum(keys.first_queries, 1)
    return with_missing(keys.regret - 0.5 * first * keys.queries, keys, moment)


IDEAS: dict[str, Priority] = {
    "recent error x queries": _recent_error_times_queries,
    "regret x root of queries": _regret_times_root_of_queries,
    "recent error x queries - regret": _gain_of_waiting,
    "regret over half the first error": _regret_over_half_the_first_error,
}
"""By what each computes from the errors and the queries since a key's last update."""

ALL_ALIKE = f"{BASE}, kept versions by all their errors alike"


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description="Try ideas for priorities on several data sets.")
    parser.add_argument("--data", action="append", metavar="NAME=PATH", help="may be repeated")
    parser.add_argument("--out", type=Path, default=Path("out/ideas"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = {}
    for text in arguments.data or ["azure=examples/data/azure_vm_cpu.npz"]:
        name, _, path = text.partition("=")
        results[name] = _compare(SeriesWorkload(load_series(path)))
    lines = _markdown(results)
    (arguments.out / "ideas.json").write_text(json.dumps(results, indent=1) + "\n")
    (arguments.out / "ideas.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _compare(workload: SeriesWorkload) -> dict[str, Any]:
    """Ratio of each idea's loss to that of regret-proportional, at each budget."""
    result = {}
    for keep in (1, KEEP):
        base = _simulate(workload, BASE, keep)
        result |= {
            str(Variant(idea, keep)): _ratios(_simulate(workload, idea, keep), base)
            for idea in IDEAS
        }
    result[str(Variant(ALL_ALIKE, KEEP))] = _ratios(
        _simulate(workload, BASE, KEEP, choice_decay=1.0), base
    )
    return result


def _simulate(
    workload: SeriesWorkload, policy: str, keep: int, choice_decay: float = CHOICE_DECAY
) -> list[ArmRecord]:
    arms = [Arm(Variant(policy, keep), budget) for budget in BUDGETS]
    return Simulation(workload, ideas=IDEAS, choice_decay=choice_decay).replay(arms)


def _ratios(ones: list[ArmRecord], others: list[ArmRecord]) -> list[dict[str, float]]:
    found = []
    for one, other in zip(ones, others, strict=True):
        low, high = ratio_interval(one, other, 0)
        found.append({"ratio": one.loss / other.loss, "low": low, "high": high})
    return found


def _markdown(results: dict[str, dict[str, Any]]) -> list[str]:
    head = " | ".join(f"{budget:.1%}" for budget in BUDGETS)
    lines = []
    for name, result in results.items():
        lines += [
            f"## {name}: loss beside {BASE}'s with as many versions",
            "",
            f"| idea | {head} |",
            "|---|" + "---|" * len(BUDGETS),
        ]
        for idea, cells in result.items():
            shown = (f"{c['ratio']:.3f} ({c['low']:.3f}–{c['high']:.3f})" for c in cells)
            lines.append(f"| {idea} | " + " | ".join(shown) + " |")
        lines.append("")
    return lines


if __name__ == "__main__":
    main()
