"""A broker that is reached over TLS and with a login: its certificate, and what clients need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from freshet.stack.kafka import Security
from tests.integration.security.certificates import STORE_PASSWORD, Certificates

_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Secured:
    """One certificate and one login."""

    broker: Security
    client_properties: dict[str, str]
    """With the password."""

    password_file: Path

    @property
    def references(self) -> dict[str, str]:
        """The same as a configuration's ``kafka_properties``: the password is in its file alone."""
        return self.client_properties | {"sasl.password": f"${{file:{self.password_file}}}"}


def secured(folder: Path, user: str = "freshet", password: str = 'quoted "secret"') -> Secured:
    """Makes a certificate of loopback and the authority that vouches for it, and a login.

    Args:
        folder: for the certificates and the password; made when missing.
        user: name of the login.
        password: of the login.
    """
    certificates = Certificates(folder, ["broker"])
    password_file = folder / "password"
    password_file.write_text(f"{password}\n", encoding="utf-8")
    escaped = password.replace('"', '\\"')
    return Secured(
        Security(
            "SASL_SSL",
            {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": str(certificates["broker"].store),
                "ssl.keystore.password": STORE_PASSWORD,
                "ssl.key.password": STORE_PASSWORD,
                "sasl.enabled.mechanisms": "PLAIN",
                # A file of properties takes a backslash for itself.
                "plain.sasl.jaas.config": (
                    f'{_LOGIN_MODULE} required user_{user}="{escaped}";'.replace("\\", "\\\\")
                ),
            },
        ),
        {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(certificates.authority),
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        },
        password_file,
    )
