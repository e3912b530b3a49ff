"""A broker that is reached over TLS and with a login: its certificate, and what clients need."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from freshet.stack.kafka import Security
from freshet.stack.layout import QUICK_JVM, java
from freshet.stack.ports import LOOPBACK

_STORE_PASSWORD = "changeit"
_STORE_ACCESS = ("-storepass", _STORE_PASSWORD)
_KEYTOOL_TIMEOUT_S = 120.0
_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Secured:
    """One certificate and one login."""

    broker: Security
    client_properties: dict[str, str]
    """As a configuration's ``kafka_properties``."""


def secured(folder: Path, user: str = "freshet", password: str = 'quoted "secret"') -> Secured:
    """Makes a certificate of loopback that signs itself, and a login.

    Args:
        folder: for the key store and the certificate; made when missing.
        user: name of the login.
        password: of the login.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store, certificate = folder / "broker.p12", folder / "broker.pem"
    _keytool(
        "-genkeypair",
        *("-alias", "broker", "-keystore", str(store), "-storetype", "PKCS12"),
        *("-keyalg", "EC", "-groupname", "secp256r1", "-validity", "2"),
        *("-dname", "CN=localhost", "-ext", f"san=ip:{LOOPBACK}"),
    )
    _keytool(
        "-exportcert", "-rfc", *("-alias", "broker", "-keystore", str(store)),
        *("-file", str(certificate)),
    )  # fmt: skip
    escaped = password.replace('"', '\\"')
    return Secured(
        Security(
            "SASL_SSL",
            {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": str(store),
                "ssl.keystore.password": _STORE_PASSWORD,
                "ssl.key.password": _STORE_PASSWORD,
                "sasl.enabled.mechanisms": "PLAIN",
                # A file of properties takes a backslash for itself.
                "plain.sasl.jaas.config": (
                    f'{_LOGIN_MODULE} required user_{user}="{escaped}";'.replace("\\", "\\\\")
                ),
            },
        ),
        {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(certificate),
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        },
    )


def _keytool(*arguments: str) -> None:
    program = Path(java()).resolve().with_name("keytool")
    done = subprocess.run(
        [str(program), *(f"-J{each}" for each in QUICK_JVM), *arguments, *_STORE_ACCESS],
        capture_output=True,
        text=True,
        timeout=_KEYTOOL_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
