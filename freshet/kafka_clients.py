"""The client properties of one Kafka, in the names of each library that connects to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from freshet.secrets import rewrite

JAVA_PROVIDER = "freshet"
"""What a Java client's properties call the class that resolves references."""

JAVA_PROVIDER_CLASS = "dev.freshet.connectors.secret.SecretProvider"

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

_HOSTNAME_CHECK = "ssl.endpoint.identification.algorithm"
_NO_HOSTNAME_CHECK = "none"  # in librdkafka's words

JAVA_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""The mechanisms of logins that all three libraries have, and Java's class for each."""


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
    renamed: dict[str, Any] = {
        ours: named[theirs] for theirs, ours in _KAFKA_PYTHON_NAMES.items() if theirs in named
    }
    if named.get(_HOSTNAME_CHECK) == _NO_HOSTNAME_CHECK:
        renamed["ssl_check_hostname"] = False
    return renamed | {"bootstrap_servers": bootstrap.split(",")}


def java_properties(bootstrap: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The same for a Java client, which names a login and a certificate differently.

    References to secrets stay references, in Kafka's own notation: the client resolves them where
    it runs, by a config provider in the Freshet jar.
    """
    named = client_properties(bootstrap, properties)
    username = named.pop("sasl.username", None)
    password = named.pop("sasl.password", None)
    mechanism = named.pop("sasl.mechanisms", None) or named.get("sasl.mechanism")
    named = {name: rewrite(value, _java_reference, str) for name, value in named.items()}
    if mechanism:
        named["sasl.mechanism"] = mechanism
    if username is not None and password is not None and mechanism in JAVA_LOGIN_MODULES:
        named.setdefault(
            "sasl.jaas.config",
            f"{JAVA_LOGIN_MODULES[mechanism]} required username={_jaas_quote(username)}"
            f" password={_jaas_quote(password)};",
        )
    _name_certificates(named)
    if named.get(_HOSTNAME_CHECK) == _NO_HOSTNAME_CHECK:
        named[_HOSTNAME_CHECK] = ""
    if any(f"${{{JAVA_PROVIDER}:" in value for value in named.values()):
        named["config.providers"] = JAVA_PROVIDER
        named[f"config.providers.{JAVA_PROVIDER}.class"] = JAVA_PROVIDER_CLASS
    return named


def _name_certificates(named: dict[str, str]) -> None:
    authority = named.pop("ssl.ca.location", None)
    if authority is not None:
        named.setdefault("ssl.truststore.type", "PEM")
        named.setdefault("ssl.truststore.location", authority)
    certificate = named.pop("ssl.certificate.location", None)
    key = named.pop("ssl.key.location", None)
    if certificate is not None and key is not None:
        # A key store of Java's is one file, but two texts will do.
        named.setdefault("ssl.keystore.type", "PEM")
        named.setdefault("ssl.keystore.certificate.chain", _java_reference("file", certificate))
        named.setdefault("ssl.keystore.key", _java_reference("file", key))


def _java_reference(kind: str, name: str) -> str:
    return f"${{{JAVA_PROVIDER}:{kind}:{name}}}"


def _jaas_quote(text: str) -> str:
    # What the provider puts here it escapes by the same rules.
    quoted = rewrite(text, lambda kind, name: _java_reference(f"jaas-{kind}", name), _jaas_escape)
    return f'"{quoted}"'


def _jaas_escape(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("\n", "\\n").replace("\r", "\\r")
