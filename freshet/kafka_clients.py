"""The client properties of one Kafka, in the names of each library that connects to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:,/]+):(\d{1,5})")

_KAFKA_PYTHON_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}

_JAVA_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def client_properties(bootstrap: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of a librdkafka client (confluent-kafka).

    Args:
        bootstrap: servers, ``host:port[,host:port]``.
        properties: all others, by librdkafka's names.
    """
    return {"bootstrap.servers": bootstrap, **properties}


def admin_properties(bootstrap: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """The same for kafka-python, which administers the topics.

    Properties that it has no name for tune the other clients and are left out.
    """
    named = dict(properties)
    if "sasl.mechanisms" in named:
        named["sasl.mechanism"] = named["sasl.mechanisms"]
    renamed = {
        ours: named[theirs] for theirs, ours in _KAFKA_PYTHON_NAMES.items() if theirs in named
    }
    return renamed | {"bootstrap_servers": bootstrap.split(",")}


def java_properties(bootstrap: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The same for a Java client, which names a login and a certificate differently."""
    named = client_properties(bootstrap, properties)
    username = named.pop("sasl.username", None)
    password = named.pop("sasl.password", None)
    mechanism = named.pop("sasl.mechanisms", None) or named.get("sasl.mechanism")
    if mechanism:
        named["sasl.mechanism"] = mechanism
    if username is not None and password is not None and mechanism in _JAVA_LOGIN_MODULES:
        named.setdefault(
            "sasl.jaas.config",
            f"{_JAVA_LOGIN_MODULES[mechanism]} required username={_jaas_quote(username)}"
            f" password={_jaas_quote(password)};",
        )
    authority = named.pop("ssl.ca.location", None)
    if authority is not None:
        named.setdefault("ssl.truststore.type", "PEM")
        named.setdefault("ssl.truststore.location", authority)
    return named


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
            problems.append(f"{where}kafka_bootstrap: {address.strip()!r} is not host:port")
    if "bootstrap.servers" in properties:
        problems.append(
            f"{where}kafka_properties: bootstrap.servers belongs in {where}kafka_bootstrap"
        )
    return problems


def _jaas_quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
