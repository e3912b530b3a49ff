"""The result of an evaluation: the content of ``result.json``, and the table that is printed."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from freshet.evaluation.record import ArmRecord
from freshet.evaluation.variants import UNLIMITED
from freshet.evaluation.workload import Floats, Workload

BOOTSTRAP_RESAMPLES = 5_000
CONFIDENCE = 0.95

_PACKAGES = ("apache-flink", "confluent-kafka", "numpy", "redis", "statsmodels")
_BASELINES = ("round-robin", "regret-proportional")


def build_result(
    workload: Workload,
    records: Sequence[ArmRecord],
    *,
    seed: int,
    options: dict[str, Any],
    wall_s: dict[str, float],
) -> dict[str, Any]:
    """The result as JSON types; numbers that were not measured are None.

    Args:
        workload: what was replayed.
        records: of every arm, with ``unlimited`` and ``none`` among them.
        seed: of the bootstrap.
        options: of the run, for the reader.
        wall_s: time of each phase, seconds.
    """
    unlimited = next(r for r in records if r.arm.variant.policy == UNLIMITED)
    result: dict[str, Any] = {
        "workload": workload.name,
        "rows": [_row(record, unlimited) for record in records],
        "comparisons": _comparisons(records, seed),
        "unit": workload.unit,
        "budget_unit": workload.budget_unit,
        "keys": list(workload.keys),
        "steps": len(unlimited.loss_sums),
        "step_seconds": workload.step_ms / 1e3,
        "queries": int(sum(unlimited.query_counts)),
        "updates_by_key": {str(r.arm): r.key_updates.tolist() for r in records},
        "loss_by_key": {str(r.arm): _by_key(r).tolist() for r in records},
        "loss_by_step": {str(r.arm): _by_step(r).tolist() for r in records},
        "notes": list(workload.notes),
        "options": options,
        "wall_s": {phase: round(seconds, 2) for phase, seconds in wall_s.items()},
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": {"cores": os.cpu_count(), "machine": platform.machine()},
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _PACKAGES},
        },
    }
    clean: dict[str, Any] = _without_nan(result)
    return clean


def _row(record: ArmRecord, unlimited: ArmRecord) -> dict[str, Any]:
    mean, p99 = record.staleness_s()
    return {
        "policy": str(record.arm.variant),
        "budget": None if record.arm.is_bound else record.arm.budget,
        "loss": record.loss,
        "updates": int(record.key_updates.sum()),
        "updates_share": _ratio(record.key_updates.sum(), unlimited.key_updates.sum()),
        "regret": record.loss - unlimited.loss,
        "staleness_mean": mean,
        "staleness_p99": p99,
        "unserved": record.unserved,
    }


def _comparisons(records: Sequence[ArmRecord], seed: int) -> list[dict[str, Any]]:
    """Every arm against the baselines at the same budget, on the same queries.

    The intervals are paired bootstraps over keys: the same keys are drawn for both, with
    replacement, and the ratio of their losses is taken.
    """
    found = []
    for base in records:
        if str(base.arm.variant) not in _BASELINES:
            continue
        for other in records:
            if other is base or other.arm.budget != base.arm.budget:
                continue
            if other.arm.is_bound:
                continue
            low, high = ratio_interval(other, base, seed)
            found.append(
                {
                    "policy": str(other.arm.variant),
                    "against": str(base.arm.variant),
                    "budget": base.arm.budget,
                    "loss_ratio": _ratio(other.loss, base.loss),
                    "interval": [low, high],
                    "confidence": CONFIDENCE,
                }
            )
    return found


def ratio_interval(one: ArmRecord, other: ArmRecord, seed: int) -> tuple[float, float]:
    """Interval of the ratio of two arms' losses, by a paired bootstrap over keys."""
    asked = np.flatnonzero(one.key_queries > 0)
    if not len(asked):
        return float("nan"), float("nan")
    draws = np.random.default_rng(seed).integers(0, len(asked), (BOOTSTRAP_RESAMPLES, len(asked)))
    drawn = asked[draws]
    # Both answer the same queries, so the number of queries cancels out.
    ratios = one.key_loss[drawn].sum(axis=1) / other.key_loss[drawn].sum(axis=1)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return float(low), float(high)


def print_rows(result: dict[str, Any]) -> list[str]:
    """The table that is printed: a line of headings, then one for each row."""
    heads = ("policy", "budget", "loss", "regret", "updates", "of unlimited", "stale mean", "p99")
    lines = [
        [
            row["policy"],
            "" if row["budget"] is None else f"{row['budget']:g}",
            _number(row["loss"], ".4f"),
            _number(row["regret"], "+.4f"),
            f"{row['updates']:,}",
            _number(row["updates_share"], ".1%"),
            _hours(row["staleness_mean"]),
            _hours(row["staleness_p99"]),
        ]
        for row in result["rows"]
    ]
    widths = [max(len(line[i]) for line in [list(heads), *lines]) for i in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [list(heads), *lines]
    ]


def conclusion(result: Mapping[str, Any]) -> str:
    """What the comparison with round-robin, or else with the first baseline, says; in words."""
    for against in _BASELINES:
        lines = [c for c in result["comparisons"] if c["against"] == against]
        if lines:
            best = min(lines, key=lambda c: c["loss_ratio"])
            low, high = best["interval"]
            sure = high < 1 or low > 1
            return (
                f"{best['policy']} at a budget of {best['budget']:g} had {best['loss_ratio']:.3f} "
                f"of {against}'s loss (95 % interval over keys {low:.3f} to {high:.3f}): "
                + (
                    "the difference is larger than chance between keys explains."
                    if sure
                    else "that may be chance; no policy is better for sure."
                )
            )
    return "There is no baseline among the policies; add round-robin to compare with."


def _by_key(record: ArmRecord) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = record.key_loss / record.key_queries
    return mean


def _by_step(record: ArmRecord) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.asarray(record.loss_sums) / np.asarray(record.query_counts)
    return mean


def _ratio(one: Any, other: Any) -> float:
    return float(one) / float(other) if other else float("nan")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def _hours(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds / 3600:.1f} h"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
