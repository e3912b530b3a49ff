"""Parts of a Compose file, in the forms that checks need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def services_of(compose: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The services, by name."""
    return list(compose["services"].items())


def own_services(compose: Mapping[str, Any]) -> set[str]:
    """Names of the services that run an image which one of them builds."""
    built = {service["image"] for _, service in services_of(compose) if "build" in service}
    return {name for name, service in services_of(compose) if service["image"] in built}


def mounts_of(service: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Sources and targets of what a service mounts."""
    return [tuple(volume.split(":")[:2]) for volume in service.get("volumes", ())]


def mount_targets(service: Mapping[str, Any]) -> set[str]:
    """Where a service mounts something."""
    return {target for _, target in mounts_of(service)}


def published_ports(service: Mapping[str, Any]) -> dict[int, tuple[str, int]]:
    """Port in the container to address and port on the host."""
    ports = (port.split(":") for port in service.get("ports", ()))
    return {int(inner): (address, int(outer)) for address, outer, inner in ports}


def listeners_of(text: str) -> dict[str, tuple[str, int]]:
    """Host and port of each of a broker's listeners, by name."""
    found = re.findall(r"(\w+)://([^:,]*):(\d+)", text)
    return {name: (host, int(port)) for name, host, port in found}


def kafka_settings(compose: Mapping[str, Any]) -> dict[str, str]:
    """The broker's settings, which its image takes from ``KAFKA_…``, by Kafka's names."""
    environment = compose["services"]["kafka"]["environment"]
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): str(value)
        for name, value in environment.items()
    }
