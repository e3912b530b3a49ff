"""What can be wrong with a configuration: each field by itself, and between them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from freshet.config_sources import REDIS_SCHEMES
from freshet.kafka_checks import connection_problems
from freshet.regions import REGION_NAME, WAYPOINT, region_problems
from freshet.secrets import mask_url, reference_problems, url_parts

if TYPE_CHECKING:
    from freshet.config import Config

START_OFFSETS = ("committed-or-earliest", "earliest", "latest")
"""Where a job without a checkpoint starts to read its topics."""

_TOPIC_PREFIX = re.compile(r"[A-Za-z0-9._-]*")


def problems_of(config: Config, *, places: bool = True) -> list[str]:
    """Everything that is wrong with a configuration whose fields could be read.

    Args:
        config: need not have been checked.
        places: whether to check the fields that say what is where against each other.
    """
    return [
        *_kafka_problems(config),
        *_redis_problems(config),
        *region_problems(
            config.regions, config.region, config.kafka_bootstrap, config.topic_prefix
        ),
        *(_place_problems(config) if places else ()),
        *_job_problems(config),
    ]


def _kafka_problems(config: Config) -> list[str]:
    problems = connection_problems("", config.kafka_bootstrap, config.kafka_properties)
    if not _TOPIC_PREFIX.fullmatch(config.topic_prefix):
        problems.append(
            f"topic_prefix: {config.topic_prefix!r} has characters that no topic name may have;"
            " use letters, digits, '.', '_' and '-'"
        )
    return problems


def _redis_problems(config: Config) -> list[str]:
    problems = []
    for region, url in config.redis.items():
        if not REGION_NAME.fullmatch(region):
            problems.append(f"redis: region {_shown_name(region)!r} is not provider:region")
        problems += reference_problems(f"redis.{_shown_name(region)}", url)
        try:
            scheme, is_somewhere = url_parts(url)
        except ValueError as error:
            problems.append(f"redis: {mask_url(url)!r} of {_shown_name(region)} {error}")
            continue
        if scheme not in REDIS_SCHEMES or not is_somewhere:
            problems.append(f"redis: {mask_url(url)!r} of {_shown_name(region)} is no redis:// URL")
    problems += _redis_file_problems(config)
    if config.tombstone_retention_ms <= 0:
        problems.append(
            f"tombstone_retention_ms: {config.tombstone_retention_ms} is not above 0; a delete"
            " that is forgotten at once can be undone by an older write"
        )
    return problems


def _redis_file_problems(config: Config) -> list[str]:
    meanings = {
        "redis_ca": "of the authorities that vouch for the Redis servers",
        "redis_certificate": "of the certificate that is shown to the Redis servers",
        "redis_key": "of the certificate's private key",
    }
    files = {name: getattr(config, name) for name in meanings}
    problems = [
        f"{name}: {file!r} is no file; name the PEM file {meanings[name]}, which must be there for"
        " the commands and every TaskManager"
        for name, file in files.items()
        if file is not None and not Path(file).is_file()
    ]
    for name, other in (("redis_certificate", "redis_key"), ("redis_key", "redis_certificate")):
        if files[name] is None and files[other] is not None:
            problems.append(f"{name} is missing; {other} is of no use without it")
    return problems


def _place_problems(config: Config) -> list[str]:
    """What the fields that tell what is where have wrong between them."""
    if not config.redis and config.role != WAYPOINT:
        return ["redis is missing"]
    problems = []
    is_home = config.region == config.home_region
    field_name = "home_region" if is_home else "region"
    if not is_home and not REGION_NAME.fullmatch(config.region):
        problems.append(f"region: {config.region!r} is not provider:region")
    if config.region not in config.redis and config.role != WAYPOINT:
        problems.append(
            f"{field_name}: {config.region!r} has no URL in redis, which has"
            f" {', '.join(map(_shown_name, config.redis)) or 'none'}"
        )
    if not is_home and config.home_region not in config.regions:
        problems.append(
            f"home_region: {config.home_region!r} is not in regions; add it with the address of"
            " its broker, which this region reports to"
        )
    home = config.regions.get(config.home_region)
    if home is not None and home.role == WAYPOINT:
        problems.append(
            f"regions.{config.home_region}.role: the home region keeps the tables and is no"
            " waypoint; leave the role out"
        )
    return problems


def _job_problems(config: Config) -> list[str]:
    problems = []
    if config.start_offsets not in START_OFFSETS:
        problems.append(
            f"start_offsets: {config.start_offsets!r} is none of {', '.join(START_OFFSETS)}"
        )
    if not 0 <= config.priority_share <= 1:
        problems.append(
            f"priority_share: {config.priority_share} is not between 0 and 1; 0 sends all changes"
            " in their turn"
        )
    for name in ("profiles", "flink_rest"):
        problems += _address_problems(name, getattr(config, name) or "")
    if config.flink_rest is not None and not _is_http(config.flink_rest):
        problems.append(f"flink_rest: {mask_url(config.flink_rest)!r} is not http://host:port")
    return problems


def _is_http(url: str) -> bool:
    try:
        scheme, is_somewhere = url_parts(url)
    except ValueError:
        return False
    return scheme in ("http", "https") and is_somewhere


def _address_problems(name: str, url: str) -> list[str]:
    """What needs no login must have none: messages repeat it."""
    if mask_url(url) == url:
        return []
    return [f"{name}: {mask_url(url)!r} has a login in it, which is not used; leave it out"]


def _shown_name(region: str) -> str:
    """A region's name as an error may quote it; what is none may be part of a URL."""
    return region if re.fullmatch(r"[\w.: -]*", region) else "***"
