"""What is wrong with the address and the properties of a Kafka, before a client connects to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from freshet.kafka_clients import JAVA_LOGIN_MODULES
from freshet.secrets import reference_problems

_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:,/]+):(\d{1,5})")

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN = ("sasl.username", "sasl.password")
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")

_NOT_EVERYWHERE = {
    "ssl.ca.pem": "ssl.ca.location",
    "ssl.certificate.pem": "ssl.certificate.location",
    "ssl.key.pem": "ssl.key.location",
    "ssl.keystore.location": "ssl.certificate.location and ssl.key.location",
    "ssl.keystore.password": "ssl.key.password",
}
"""Properties that one of the libraries would ignore, and so connect otherwise than the others; what
to use in their place."""


def connection_problems(where: str, bootstrap: str, properties: Mapping[str, str]) -> list[str]:
    """What is wrong with a bootstrap address and the properties beside it.

    Args:
        where: goes before the names of the two fields, such as ``"regions.a:b."``.
        bootstrap: value of ``kafka_bootstrap``.
        properties: value of ``kafka_properties``.
    """
    problems = []
    for address in bootstrap.split(","):
        match = _HOST_PORT.fullmatch(address.strip())
        if match is None or not 0 < int(match[2]) < 65_536:
            # With an '@' it may be a URL with a password, which a comma cuts in two.
            found = "what has an '@'" if "@" in bootstrap else repr(address.strip())
            problems.append(f"{where}kafka_bootstrap: {found} is not host:port")
    if "bootstrap.servers" in properties:
        problems.append(
            f"{where}kafka_properties: bootstrap.servers belongs in {where}kafka_bootstrap"
        )
    for name, value in properties.items():
        problems += reference_problems(f"{where}kafka_properties.{name}", value)
    found_problems = [*_login_problems(properties), *_certificate_problems(properties)]
    return problems + [f"{where}kafka_properties{problem}" for problem in found_problems]


def _login_problems(properties: Mapping[str, str]) -> list[str]:
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        # Not quoted: it may be a secret in the wrong place.
        return [f".security.protocol: is none of {', '.join(_PROTOCOLS)}"]
    given = [name for name in _LOGIN if name in properties]
    if not protocol.startswith("SASL_"):
        return given and [
            f".security.protocol: {protocol} uses no login; set it to SASL_SSL, or leave out"
            f" {' and '.join(given)}"
        ]
    mechanism = properties.get("sasl.mechanisms") or properties.get("sasl.mechanism")
    known = ", ".join(JAVA_LOGIN_MODULES)
    if mechanism is None:
        return [f".sasl.mechanism: is missing; set it to one of {known}"]
    if mechanism not in JAVA_LOGIN_MODULES:
        return [
            f".sasl.mechanism: {mechanism[:32]!r} is not supported, as the jobs and the commands"
            f" have different libraries for it; use one of {known}, or security.protocol=SSL"
            " with a client's certificate"
        ]
    return [
        f".{name}: is missing; {mechanism} needs it" for name in _LOGIN if name not in properties
    ]


def _certificate_problems(properties: Mapping[str, str]) -> list[str]:
    problems = [
        f".{name}: is not understood by every client; use {instead}"
        for name, instead in _NOT_EVERYWHERE.items()
        if name in properties
    ]
    problems += [
        f".{name}: {properties[name]!r} is no file; mount it there for the commands, the JobManager"
        " and every TaskManager"
        for name in _FILES
        if name in properties and not Path(properties[name]).is_file()
    ]
    pair = _FILES[1:]
    given = [name for name in pair if name in properties]
    if len(given) == 1:
        (missing,) = set(pair) - set(given)
        problems.append(f".{missing}: is missing; {given[0]} is of no use without it")
    return problems
