"""Holds the user's guide against docker-compose.yml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.deployment.files import COMPOSE, GUIDE, Files, variables_of
from tests.deployment.parts import mounts_of, published_ports, services_of


def guide_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """What the user's guide says of services, ports, variables and volumes, and is not so."""
    guide = files[GUIDE]
    rows = re.findall(
        r"^\| `([\w-]+)` \| (\w+) \| .* \| (?:`([\d.:]+)`)? ?\|$", guide, re.MULTILINE
    )
    told = {name: (profile, address) for name, profile, address in rows}
    problems = []
    for name, service in services_of(compose):
        addresses = [":".join(port.split(":")[:2]) for port in service.get("ports", ())]
        real = (service["profiles"][0], "".join(addresses))
        if told.get(name) != real:
            problems.append(f"{GUIDE}: {name} is {real}, not {told.get(name)}")
    problems += [
        f"{GUIDE}: there is no {name}" for name in told.keys() - compose["services"].keys()
    ]
    for name, default in variables_of(files[COMPOSE]).items():
        if not re.search(rf"^\| `{name}` \| `?{re.escape(default)}`? \|", guide, re.MULTILINE):
            problems.append(f"{GUIDE}: does not tell of {name} with its default {default}")
    for _, service in services_of(compose):
        for source, target in mounts_of(service):
            row = rf"^\| .*`{re.escape(source)}`.* \| .* \| `{re.escape(target)}` \|$"
            if not source.startswith(".") and not re.search(row, guide, re.MULTILINE):
                problems.append(f"{GUIDE}: does not tell of volume {source} at {target}")
    commands = re.findall(
        r"docker compose (?:exec|run|logs)(?: --\S+(?: FRESHET_\S+)?)* (\w+)", guide
    )
    problems += [
        f"{GUIDE}: there is no {name}" for name in commands if name not in compose["services"]
    ]
    return problems + _address_problems(guide, compose)


def _address_problems(guide: str, compose: Mapping[str, Any]) -> list[str]:
    """Addresses on the host that a reader is told to use."""
    told = set(re.findall(r"127\.0\.0\.1:(\d+)", guide))
    real = {
        str(host) for _, each in services_of(compose) for _, host in published_ports(each).values()
    }
    return [f"{GUIDE}: nothing is published on port {port}" for port in sorted(told - real)]
