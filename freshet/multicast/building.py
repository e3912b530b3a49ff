"""What the multicast and region jobs are told, from the tables, the configuration and the topics.

Everything that can be wrong with it is told here, before a job is submitted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from freshet.config import Config
from freshet.errors import ConfigError
from freshet.multicast.settings import PlainNetwork, PlannedTable, PlannerSettings
from freshet.planner import Network, load_network
from freshet.planner.problem import RegionLimits
from freshet.regions import WAYPOINT
from freshet.stack.layout import CHECKOUT
from freshet.table import FeatureTable
from freshet.topics import Log

REPORT_INTERVAL_MS = 500
"""Between two reports of a subtask: the planner sees a change within about this."""

CATCH_UP_AFTER_MS = 3_000
"""How long a region may lack what nobody has for it, before it is sent again."""

CACHE_BYTES = 64 << 20
"""Recent changes that are kept for catch-up, all tables and subtasks of a job together."""

_LEAST_WEIGHT = 1e-9
"""Stands for 0: priorities are compared, and nothing is below this."""


def multicast_settings(
    tables: Sequence[FeatureTable], config: Config, logs: Mapping[str, Log]
) -> dict[str, Any]:
    """Settings of the multicast operator.

    Args:
        tables: to send.
        config: of the home region.
        logs: each table's changes topic, by the table's name.

    Raises:
        ConfigError: with every table that cannot be sent, and why.
    """
    _check(tables, config)
    others = [region for name, region in config.regions.items() if name != config.home_region]
    return {
        "home": config.home_region,
        "tables": [_table_dict(table, config, logs[table.name]) for table in tables],
        "lanes": min(region.inbox_partitions for region in others),
        "early_share": config.priority_share,
        "report_interval_ms": REPORT_INTERVAL_MS,
        "catch_up_after_ms": CATCH_UP_AFTER_MS,
        "cache_bytes": CACHE_BYTES,
    }


def _table_dict(table: FeatureTable, config: Config, log: Log) -> dict[str, Any]:
    definition = table.to_dict(topic_prefix=config.topic_prefix)
    return {
        "table": table.name,
        "topic": definition["changes_topic"],
        "log": log.id,
        "shards": log.partitions,
        "slo_ms": definition["freshness_slo_ms"],
        "weight": max(definition["priority_weight"], _LEAST_WEIGHT),
    }


def planner_settings(
    tables: Sequence[FeatureTable], config: Config, logs: Mapping[str, Log]
) -> PlannerSettings:
    """Settings of the planner in the multicast job.

    The arguments are those of :func:`multicast_settings`.

    Raises:
        ConfigError: the profiles are wrong, or lack a region; or as above.
        FreshetError: the profiles cannot be read.
    """
    _check(tables, config)
    return PlannerSettings(
        home=config.home_region,
        tables=tuple(
            PlannedTable(
                table=table.name,
                destinations=_destinations(table, config),
                shards=logs[table.name].partitions,
                slo_ms=table.to_dict()["freshness_slo_ms"],
            )
            for table in tables
        ),
        network=_plain(deployment_network(config)),
    )


def region_settings(
    tables: Sequence[FeatureTable], config: Config, clock_ahead_ms: int = 0
) -> dict[str, Any]:
    """Settings of a region's operator.

    Args:
        tables: that it gets, or passes on.
        config: of the region.
        clock_ahead_ms: for tests: what its clock is taken to be ahead of its machine's.

    Raises:
        ConfigError: with every table that the region does not serve.
    """
    keeps = config.role != WAYPOINT
    problems = [
        f"table {table.name} is not for {config.region}; add the region to its regions"
        for table in tables
        if keeps and config.region not in table.regions
    ]
    if problems:
        raise ConfigError(problems, f"region job of {config.region}")
    return {
        "region": config.region,
        "applies": keeps,
        "tables": [
            {
                "table": table.name,
                "keep_versions": table.keep_versions,
                "slo_ms": table.to_dict()["freshness_slo_ms"],
                "definition": _definition_json(table, config),
            }
            for table in tables
        ],
        "report_interval_ms": REPORT_INTERVAL_MS,
        "early_share": config.priority_share,
        "clock_ahead_ms": clock_ahead_ms,
    }


def _definition_json(table: FeatureTable, config: Config) -> str:
    """A table's definition as clients find it in the store."""
    return json.dumps(table.to_dict(topic_prefix=config.topic_prefix))


def _destinations(table: FeatureTable, config: Config) -> tuple[str, ...]:
    return tuple(region for region in table.regions if region != config.home_region)


def _check(tables: Sequence[FeatureTable], config: Config) -> None:
    problems = []
    if config.region != config.home_region:
        problems.append(
            f"the configuration is that of {config.region}; use the home region's,"
            f" {config.home_region}: tables are sent from there"
        )
    names = [table.name for table in tables]
    problems += sorted({f"table {name} is given twice" for name in names if names.count(name) > 1})
    for table in tables:
        problems += _table_problems(table, config)
    if problems:
        raise ConfigError(problems, "multicast job")


def _table_problems(table: FeatureTable, config: Config) -> list[str]:
    destinations = _destinations(table, config)
    if not destinations:
        return [
            f"table {table.name} is for {', '.join(table.regions)} alone; name the regions that"
            " serve it in its regions"
        ]
    problems = []
    for region in destinations:
        if region not in config.regions:
            known = ", ".join(config.regions) or "none"
            problems.append(
                f"table {table.name} is for {region}, which is not in the configuration's"
                f" regions ({known}); add it there, or take it out of the table's"
            )
        elif config.regions[region].role == WAYPOINT:
            problems.append(
                f"table {table.name} is for {region}, which is a waypoint and has no Redis; make"
                " it a destination, or take it out of the table's regions"
            )
    return problems


def profiles_folder(config: Config) -> str:
    """The planner's prices and bandwidths: the configuration's, else those that ship."""
    return config.profiles or str(Path(CHECKOUT) / "examples" / "data" / "cloudcast")


def deployment_network(config: Config) -> Network:
    """Home and the configured regions: data can go through no other.

    Brokers are there whether or not they are used, so with the profiles that ship they cost
    nothing, and there is one in each region. Profiles of one's own say what is so.

    Raises:
        ConfigError: the profiles are wrong, or lack a region.
        FreshetError: they cannot be read.
    """
    folder = profiles_folder(config)
    network = load_network(folder)
    regions = sorted({config.home_region, *config.regions})
    missing = [region for region in regions if region not in network.index]
    if missing:
        raise ConfigError(
            [
                f"region {region} is not there; add its prices and bandwidths, or name a folder"
                " of your own as profiles in the configuration"
                for region in missing
            ],
            f"profiles {folder}",
        )
    places = [network.index[region] for region in regions]
    limits = [network.limits[place] for place in places]
    if config.profiles is None:
        limits = [replace(limit, usd_per_s=0.0, max_vms=1, min_vms=1) for limit in limits]
    return Network(
        tuple(regions),
        network.price_usd_per_gb[places][:, places],
        network.bandwidth_bps[places][:, places],
        tuple(limits),
    )


def _plain(network: Network) -> PlainNetwork:
    return PlainNetwork(
        network.regions,
        tuple(tuple(row) for row in network.price_usd_per_gb.tolist()),
        tuple(tuple(row) for row in network.bandwidth_bps.tolist()),
        tuple(_plain_limits(limits) for limits in network.limits),
    )


def _plain_limits(limits: RegionLimits) -> dict[str, float | None]:
    return {
        "egress_bps": None if math.isinf(limits.egress_bps) else limits.egress_bps,
        "ingress_bps": None if math.isinf(limits.ingress_bps) else limits.ingress_bps,
        "usd_per_s": limits.usd_per_s,
        "max_vms": limits.max_vms,
        "min_vms": limits.min_vms,
    }
