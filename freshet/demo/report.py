"""What a run of the demo measured, as numbers: the content of ``report.json``."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from freshet.demo.dissemination import Dissemination
from freshet.demo.model import Floats
from freshet.demo.regions import PROFILES
from freshet.demo.tables import REGRET_PROPORTIONAL, ROUND_ROBIN
from freshet.observer import percentiles_ms

BOOTSTRAP_RESAMPLES = 10_000
CONFIDENCE = 0.95

_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
_DEAD_LETTER_SAMPLES = 20
_PACKAGES = ("apache-flink", "confluent-kafka", "numpy", "redis", "statsmodels")


@dataclass
class PolicyRecord:
    """What happened under one policy. Steps are appended as they end."""

    table: str

    errors: list[Floats] = field(default_factory=list)
    """For each step, errors in units of each key's naive error [h, k]; NaN where unserved."""

    staleness_ms: list[Floats] = field(default_factory=list)
    """For each step, age in event time of what was served [k]; NaN where unserved."""

    updates: Mapping[str, int] = field(default_factory=Counter)
    """Change events of each key."""

    freshness_ms: Sequence[float] = ()
    """Wall time from production to change event, after the first value of each key."""

    initial_freshness_ms: Sequence[float] = ()
    """The same for the first value of each key."""

    dead_letters: Sequence[Mapping[str, Any]] = ()

    def loss(self) -> float:
        """Mean error over all answered queries, in units of the naive error; NaN without any."""
        return _mean(np.stack(self.errors)) if self.errors else float("nan")


@dataclass
class RunRecord:
    """What happened in a run of the demo."""

    keys: tuple[str, ...]
    scale: Floats
    """Naive error of each key [k], percent points of CPU."""

    policies: dict[str, PolicyRecord]
    configuration: dict[str, Any]
    """Options of the run, for the reader."""

    dissemination: Dissemination
    """What the regions reported."""

    steps_planned: int
    seed: int
    """Of the bootstrap."""

    step_ends_ms: list[int] = field(default_factory=list)
    """Event time at which each step's forecasts were due, epoch milliseconds."""

    events: int = 0
    feedback: int = 0
    malformed: Counter[str] = field(default_factory=Counter)
    """Deliberately malformed events, by what is wrong."""

    wall_s: dict[str, float] = field(default_factory=dict)
    """Wall time of each phase, seconds."""

    speed_up: float | None = None
    """Event time over wall time, reached."""

    interrupted: bool = False


def build_report(run: RunRecord) -> dict[str, Any]:
    """The report as JSON types; numbers that were not measured are None.

    Args:
        run: of at least the tables' names; it need not have come to an end.
    """
    policies = {name: _policy(run, record) for name, record in run.policies.items()}
    records = list(run.policies.values())
    freshness = [sample for record in records for sample in record.freshness_ms]
    initial = [sample for record in records for sample in record.initial_freshness_ms]
    letters = [letter for record in records for letter in record.dead_letters]
    report: dict[str, Any] = _without_nan(
        {
            "interrupted": run.interrupted,
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "policies": policies,
            "comparison": compare(run),
            "events": run.events,
            "feedback": run.feedback,
            "changes": sum(policy["updates"] for policy in policies.values()),
            "dead_letters": len(letters),
            "dead_letters_expected": sum(run.malformed.values()) * len(records),
            "malformed_events_sent": dict(run.malformed),
            "dead_letter_samples": [_letter(letter) for letter in letters[:_DEAD_LETTER_SAMPLES]],
            "freshness_ms": percentiles_ms(freshness) | {"samples": len(freshness)},
            "freshness_initial_ms": percentiles_ms(initial) | {"samples": len(initial)},
            **run.dissemination.to_report(_prices()),
            "notes": _NOTES,
            "steps": {
                "count": len(run.step_ends_ms),
                "planned": run.steps_planned,
                "step_ms": _HOUR_MS,
                "ends": [_iso(time_ms) for time_ms in run.step_ends_ms],
            },
            "speed_up": run.speed_up,
            "wall_s": {phase: round(seconds, 2) for phase, seconds in run.wall_s.items()},
            "configuration": run.configuration,
            "naive_error_percent_points": dict(
                zip(run.keys, (round(scale, 4) for scale in run.scale.tolist()), strict=True)
            ),
            "host": {
                "cores": os.cpu_count(),
                "machine": platform.machine(),
                "system": platform.system(),
            },
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in _PACKAGES},
            },
        }
    )
    return report


def _prices() -> Callable[[str, str], float]:
    # Imported late: the planner takes a second, which a start should not wait for.
    from freshet.planner import load_network

    network = load_network(str(PROFILES))

    def usd_per_gb(source: str, target: str) -> float:
        return float(network.price_usd_per_gb[network.index[source], network.index[target]])

    return usd_per_gb


_NOTES = {
    "loss": "Mean absolute error of the forecasts over the key's naive one-step error in the first"
    " window, averaged over all queries.",
    "freshness_ms": "Steady state: wall time from producing the newest event in a value to seeing"
    " the value's change event, for every value but the first of each key. With a budget for each"
    " step it says how long a chosen key takes, not how long a key waits to be chosen: that is its"
    " staleness.",
    "freshness_initial_ms": "The same for the first value of each key, when all keys are computed"
    " at once.",
    "staleness_hours": "Age, in event time, of the feature that answered a query, when the step"
    " began.",
    "regions": "freshness_ms: from a value's computation (computed_at) to its being readable in the"
    " region's store, live changes; the events themselves are of 2017. From the percentiles of each"
    " report, and rather too large than too small. It is near the table's freshness_slo because"
    " changes wait for others to share a chunk as long as they are in time. equal_to_home: whether"
    " the stored bytes of all keys were the same in the end.",
    "egress_usd": "ours: bytes of the chunks that each link delivered, as its sender reports them,"
    " times the link's price. direct: the bytes that came into each destination, times the price of"
    " sending them there from home, without a region between them. 1 GB is 10^9 bytes. Reports to"
    " home are not in either.",
    "updates": "Change events: the first value of each key, and those that the budget paid for.",
}


def compare(run: RunRecord) -> dict[str, Any] | None:
    """Regret-proportional against round-robin on the same queries; None without both.

    The intervals are paired bootstraps: whole keys, or whole days, are drawn with replacement, and
    both policies are scored on the same draw.
    """
    regret, robin = (run.policies.get(policy) for policy in (REGRET_PROPORTIONAL, ROUND_ROBIN))
    steps = min(len(record.errors) for record in (regret, robin)) if regret and robin else 0
    if regret is None or robin is None or steps == 0:
        return None
    ours, theirs = np.stack(regret.errors[:steps]), np.stack(robin.errors[:steps])
    both = np.isfinite(ours) & np.isfinite(theirs)
    ours, theirs = np.where(both, ours, np.nan), np.where(both, theirs, np.nan)
    mine, others = _mean(ours), _mean(theirs)
    by_key = np.stack([_mean_by_key(ours), _mean_by_key(theirs)])
    by_day = np.stack(
        [_mean_by_day(ours, run.step_ends_ms), _mean_by_day(theirs, run.step_ends_ms)]
    )
    difference = by_key[0] - by_key[1]
    return {
        "loss_ratio": mine / others,
        "loss_difference": mine - others,
        "over_keys": _bootstrap(by_key, run.seed),
        "over_days": _bootstrap(by_day, run.seed),
        "keys_better": int((difference < 0).sum()),
        "keys_worse": int((difference > 0).sum()),
        "days_better": int((by_day[0] < by_day[1]).sum()),
        "days": int(by_day.shape[1]),
    }


def _bootstrap(losses: Floats, seed: int) -> dict[str, Any]:
    """Percentile intervals of the loss ratio and difference; losses [2, n] of ours and theirs."""
    losses = losses[:, np.isfinite(losses).all(axis=0)]
    count = losses.shape[1]
    if count == 0:
        return {"units": 0, "confidence": CONFIDENCE, "loss_ratio": None, "loss_difference": None}
    draws = np.random.default_rng(seed).integers(0, count, (BOOTSTRAP_RESAMPLES, count))
    mine, others = losses[0][draws].mean(axis=1), losses[1][draws].mean(axis=1)
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return {
        "units": count,
        "confidence": CONFIDENCE,
        "loss_ratio": np.quantile(mine / others, tails).tolist(),
        "loss_difference": np.quantile(mine - others, tails).tolist(),
    }


def conclusion(report: Mapping[str, Any]) -> str:
    """What the result means, in one or two sentences."""
    compared = report["comparison"]
    if compared is None:
        return "The run ended before any forecast was due, so there is nothing to compare."
    ours = report["policies"][REGRET_PROPORTIONAL]
    theirs = report["policies"][ROUND_ROBIN]
    change = abs(1 - compared["loss_ratio"])
    verb = "less" if compared["loss_ratio"] < 1 else "more"
    updates = (
        f"the same {ours['updates']:,} updates"
        if ours["updates"] == theirs["updates"]
        else f"{ours['updates']:,} updates against {theirs['updates']:,}"
    )
    return (
        f"With {updates}, regret-proportional scheduling had {change:.1%} {verb} prediction loss "
        f"than round-robin: {ours['loss']:.3f} against {theirs['loss']:.3f} times the naive error."
    )


def certainty(report: Mapping[str, Any]) -> str:
    """How sure the comparison is, and what it costs, in one or two sentences."""
    compared = report["comparison"]
    if compared is None:
        return "Let it run longer to see a comparison."
    ages = [
        report["policies"][policy]["staleness_hours"]["mean"]
        for policy in (REGRET_PROPORTIONAL, ROUND_ROBIN)
    ]
    low, high = compared["over_keys"]["loss_ratio"]
    keys = compared["over_keys"]["units"]
    sure = "" if high < 1 or low > 1 else ", so it may be chance"
    return (
        f"The ratio is {compared['loss_ratio']:.3f} (95 % interval {low:.3f} to {high:.3f} over "
        f"machines{sure}), better for {compared['keys_better']} of {keys} machines and on "
        f"{compared['days_better']} of {compared['days']} days, with values that were on "
        f"average {ages[0]:.0f} h old against {ages[1]:.0f} h."
    )


def replication(report: Mapping[str, Any]) -> str:
    """What came of sending a table to other regions, in a sentence."""
    regions, cost = report["regions"], report["egress_usd"]
    names = " and ".join(regions)
    if not cost["direct"] or any(region["keys"] is None for region in regions.values()):
        return f"The run ended before {names} were compared with {report['home']}."
    saved = 1 - cost["ours"] / cost["direct"]
    apart = [name for name, region in regions.items() if not region["equal_to_home"]]
    have = (
        f"The stores of {' and '.join(apart)} were not that of {report['home']} in time"
        if apart
        else f"{names} have every key as {report['home']} has it, byte for byte"
    )
    return (
        f"{have}, for {abs(saved):.0%} {'less' if saved >= 0 else 'more'} egress cost than sending"
        " straight to each."
    )


def report_json(report: Mapping[str, Any]) -> bytes:
    """The report as the bytes of a JSON file."""
    return (json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _policy(run: RunRecord, record: PolicyRecord) -> dict[str, Any]:
    updates = {key: int(record.updates.get(key, 0)) for key in run.keys}
    total = sum(updates.values())
    initial = sum(count > 0 for count in updates.values())
    summary: dict[str, Any] = {
        "table": record.table,
        "loss": None,
        "mae_percent_points": None,
        "updates": total,
        "updates_initial": initial,
        "updates_scheduled": total - initial,
        "queries": 0,
        "queries_unserved": 0,
        "staleness_hours": {"mean": None, "p99": None},
        "freshness_ms": percentiles_ms(record.freshness_ms),
        "dead_letters": len(record.dead_letters),
        "updates_by_key": updates,
        "loss_by_key": {},
        "loss_by_step": [],
        "staleness_hours_by_step": [],
    }
    if not record.errors:
        return summary
    errors, staleness = np.stack(record.errors), np.stack(record.staleness_ms) / _HOUR_MS
    served = staleness[np.isfinite(staleness)]
    by_key = _mean_by_key(errors).tolist()
    return summary | {
        "loss": _mean(errors),
        "mae_percent_points": _mean(errors * run.scale),
        "queries": int(np.isfinite(errors).sum()),
        "queries_unserved": int(np.isnan(errors).sum()),
        "staleness_hours": {
            "mean": _mean(served),
            "p99": float(np.percentile(served, 99)) if served.size else None,
        },
        "loss_by_key": dict(zip(run.keys, _rounded(by_key), strict=True)),
        "loss_by_step": _rounded([_mean(step) for step in errors]),
        "staleness_hours_by_step": _rounded([_mean(step) for step in staleness]),
    }


def _letter(letter: Mapping[str, Any]) -> dict[str, Any]:
    value = letter["value"]
    return {
        "table": letter["table"],
        "stage": letter["stage"],
        "reason": letter["reason"],
        "value": None if value is None else value.decode("utf-8", errors="replace"),
    }


def _mean(values: npt.ArrayLike) -> float:
    array = np.asarray(values)
    finite = array[np.isfinite(array)]
    return float(finite.mean()) if finite.size else float("nan")


def _mean_by_key(errors: Floats) -> Floats:
    """Mean of each key [k] of errors [n, h, k]; NaN where nothing was answered."""
    answered = np.isfinite(errors).sum(axis=(0, 1))
    total = np.nansum(errors, axis=(0, 1))
    mean: Floats = np.where(answered > 0, total / np.maximum(answered, 1), np.nan)
    return mean


def _mean_by_day(errors: Floats, step_ends_ms: Sequence[int]) -> Floats:
    """Mean of each day of event time."""
    # A step belongs to the day that it began in.
    days = (np.asarray(step_ends_ms[: len(errors)]) - 1) // _DAY_MS
    return np.array([_mean(errors[days == day]) for day in np.unique(days)])


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 5) for value in values]


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: what was not measured is null."""
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
