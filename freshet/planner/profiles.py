"""Reads a network from files: prices and bandwidths as CSV, limits of VMs as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from freshet.errors import ConfigError, FreshetError
from freshet.planner.problem import Floats, Network, RegionLimits
from freshet.replay import read_bytes
from freshet.table.checks import Problems, suggestion

PRICE_FILE = "cost.csv"
PRICE_COLUMNS = ("src", "dest", "cost")

BANDWIDTH_FILE = "throughput.csv"
BANDWIDTH_COLUMNS = ("src_region", "dst_region", "throughput_sent")

LIMITS_FILE = "limits.json"
LIMIT_FIELDS = ("egress_gbps", "ingress_gbps", "usd_per_hour", "min_vms", "max_vms")

DEFAULT_MAX_VMS = 2
"""VMs in a region where neither the limits nor the caller say otherwise."""

_BITS_PER_GBIT = 1e9
_SECONDS_PER_HOUR = 3600.0
_MOST_VMS = 10_000
_SHOWN_PAIRS = 10
"""Missing pairs that are named one by one; more are counted."""


def load_network(folder: str, *, limits: str | None = None, max_vms: int | None = None) -> Network:
    """Reads a folder of profiles.

    ``cost.csv`` has ``src``, ``dest`` and ``cost`` ($ per GB); ``throughput.csv`` has
    ``src_region``, ``dst_region`` and ``throughput_sent`` (bit/s of one VM, 0 for no link). Other
    columns are ignored. Both must have every ordered pair of the regions that they name.

    Limits are JSON: objects of ``egress_gbps``, ``ingress_gbps`` (none for no limit),
    ``usd_per_hour``, ``min_vms`` and ``max_vms`` under the name of a region, of a provider, or
    ``default``; the more specific wins, field by field.

    Args:
        folder: a path, or a URL that smart-open reads.
        limits: a file of limits; ``limits.json`` of the folder when None.
        max_vms: VMs in any region at most, below what the limits allow.

    Raises:
        ConfigError: the files are wrong; holds every problem.
        FreshetError: a file can't be read.
    """
    base = folder.rstrip("/")
    problems = Problems()
    prices = _read_pairs(f"{base}/{PRICE_FILE}", PRICE_COLUMNS, problems)
    bandwidths = _read_pairs(f"{base}/{BANDWIDTH_FILE}", BANDWIDTH_COLUMNS, problems)
    regions = sorted({region for pair in prices for region in pair})
    _check_pairs(f"{base}/{PRICE_FILE}", prices, regions, problems)
    _check_pairs(f"{base}/{BANDWIDTH_FILE}", bandwidths, regions, problems)
    limits_file = limits or f"{base}/{LIMITS_FILE}"
    rules = _read_limits(limits_file, regions, problems)
    if problems:
        raise ConfigError(problems, f"profiles {folder}")
    return Network(
        regions=tuple(regions),
        price_usd_per_gb=_as_matrix(prices, regions),
        bandwidth_bps=_as_matrix(bandwidths, regions),
        limits=tuple(_limits_of(region, rules, max_vms) for region in regions),
    )


_Pairs = dict[tuple[str, str], float]


def _read_pairs(location: str, columns: tuple[str, str, str], problems: Problems) -> _Pairs:
    reader = csv.DictReader(io.StringIO(_read_text(location)))
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        problems.append(
            f"{location} has no column {', '.join(missing)}; it needs {','.join(columns)}"
        )
        return {}
    pairs: _Pairs = {}
    for number, row in enumerate(reader, start=2):
        source, destination = row[columns[0]] or "", row[columns[1]] or ""
        where = f"{location}, line {number}"
        if (source, destination) in pairs:
            problems.append(f"{where}: the pair {source}, {destination} is given twice; keep one")
        pairs[source, destination] = _number(row[columns[2]], columns[2], where, problems)
    return {pair: value for pair, value in pairs.items() if pair[0] != pair[1]}


def _number(text: str | None, name: str, where: str, problems: Problems) -> float:
    try:
        value = float(text or "")
    except ValueError:
        problems.append(f"{where}: {name} must be a number, not {text!r}")
        return 0.0
    if not math.isfinite(value) or value < 0:
        problems.append(f"{where}: {name} must be finite and not negative, not {text}")
    return value


def _check_pairs(location: str, pairs: _Pairs, regions: list[str], problems: Problems) -> None:
    if not pairs:
        return
    known = set(regions)
    for region in sorted({region for pair in pairs for region in pair} - known):
        problems.append(f"{location}: region {region!r} has no price{suggestion(region, regions)}")
    missing = [(u, v) for u in regions for v in regions if u != v and (u, v) not in pairs]
    problems.extend(f"{location}: the pair {u}, {v} is missing" for u, v in missing[:_SHOWN_PAIRS])
    if len(missing) > _SHOWN_PAIRS:
        problems.append(f"{location}: {len(missing) - _SHOWN_PAIRS} more pairs are missing")


def _as_matrix(pairs: _Pairs, regions: list[str]) -> Floats:
    rows = [[pairs.get((u, v), 0.0) for v in regions] for u in regions]
    return np.array(rows, np.float64).reshape(len(regions), len(regions))


_Rules = Mapping[str, Mapping[str, Any]]


def _read_limits(location: str, regions: list[str], problems: Problems) -> _Rules:
    try:
        rules = json.loads(_read_text(location))
    except json.JSONDecodeError as e:
        problems.append(f"{location} is no JSON: {e}")
        return {}
    if not isinstance(rules, dict) or not all(isinstance(rule, dict) for rule in rules.values()):
        problems.append(f"{location} must hold an object for each region or provider")
        return {}
    names = ["default", *sorted({_provider(region) for region in regions}), *regions]
    for name, rule in rules.items():
        problems.one_of(f"{location}: region or provider", name, names)
        problems.unknown_fields(f"{location}, {name}: ", rule, LIMIT_FIELDS)
        _check_rule(f"{location}, {name}: ", rule, problems)
    return rules


def _check_rule(where: str, rule: Mapping[str, Any], problems: Problems) -> None:
    for field in ("egress_gbps", "ingress_gbps"):
        if rule.get(field) is not None:
            problems.number(where + field, rule[field], lambda value: value > 0, "more than 0")
    if "usd_per_hour" in rule:
        problems.number(
            where + "usd_per_hour", rule["usd_per_hour"], lambda value: value >= 0, "not negative"
        )
    if "max_vms" in rule:
        problems.integer(where + "max_vms", rule["max_vms"], 0, _MOST_VMS)
    if "min_vms" in rule:
        problems.integer(where + "min_vms", rule["min_vms"], 1, _MOST_VMS)


def _limits_of(region: str, rules: _Rules, max_vms: int | None) -> RegionLimits:
    merged: dict[str, Any] = {}
    for name in ("default", _provider(region), region):
        merged |= rules.get(name, {})
    most = int(merged.get("max_vms", DEFAULT_MAX_VMS if max_vms is None else max_vms))
    most = most if max_vms is None else min(most, max_vms)
    return RegionLimits(
        egress_bps=_bps(merged.get("egress_gbps")),
        ingress_bps=_bps(merged.get("ingress_gbps")),
        usd_per_s=float(merged.get("usd_per_hour", 0.0)) / _SECONDS_PER_HOUR,
        max_vms=most,
        min_vms=int(merged.get("min_vms", 1)),
    )


def _bps(gbps: float | None) -> float:
    return math.inf if gbps is None else gbps * _BITS_PER_GBIT


def _provider(region: str) -> str:
    return region.partition(":")[0]


def _read_text(location: str) -> str:
    try:
        return read_bytes(location).decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise FreshetError(f"{location} is no text: {e}; save it as UTF-8") from e
