"""Certificates of a test, made when it runs: an authority, servers and clients that it vouches for.

keytool makes them, which comes with the JDK; nothing else that can is sure to be there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freshet.stack.layout import QUICK_JVM, java
from freshet.stack.ports import LOOPBACK

STORE_PASSWORD = "changeit"
_ACCESS = ("-storepass", STORE_PASSWORD, "-storetype", "PKCS12")
_KEY = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", "2")
_TIMEOUT_S = 240.0
_EXPORTS = "java.base/sun.security.tools.keytool=ALL-UNNAMED"


@dataclass(frozen=True)
class Certificate:
    """One certificate and its key, in the forms that servers and clients want."""

    store: Path
    """PKCS#12, under :data:`STORE_PASSWORD`."""

    certificate: Path
    """PEM."""

    key: Path
    """PEM, PKCS#8 without a password."""


class Certificates:
    """Certificates of loopback, each under the name of who shows it."""

    def __init__(self, folder: Path, names: Sequence[str], strangers: Sequence[str] = ()) -> None:
        """Makes them all, by one JVM.

        Args:
            folder: for the files; made when missing.
            names: common names, each of which an authority vouches for.
            strangers: others, for which another one does.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        commands = [*self._authority("authority"), *self._authority("stranger")]
        for authority, group in (("authority", names), ("stranger", strangers)):
            for name in group:
                commands += self._signed(name, authority)
        _run(commands)
        self.authority = folder / "authority.pem"
        """Who vouches for all but strangers."""

        self.stranger = folder / "stranger.pem"
        """Who vouches for those."""

    def __getitem__(self, name: str) -> Certificate:
        """The certificate of this name."""
        return Certificate(*(self._folder / f"{name}.{end}" for end in ("p12", "pem", "key")))

    def _authority(self, name: str) -> list[Sequence[str]]:
        store = str(self._folder / f"{name}.p12")
        constraints = ("-ext", "bc:critical=ca:true")
        return [
            ("-genkeypair", *_entry(store), *_KEY, "-dname", f"CN={name}", *constraints),
            ("-exportcert", "-rfc", *_entry(store), "-file", str(self._folder / f"{name}.pem")),
        ]

    def _signed(self, name: str, authority: str) -> list[Sequence[str]]:
        store, request, signed = (str(self._folder / f"{name}.{e}") for e in ("p12", "csr", "pem"))
        signer = str(self._folder / f"{authority}.p12")
        names = ("-ext", f"san=ip:{LOOPBACK}")
        return [
            ("-genkeypair", *_entry(store), *_KEY, "-dname", f"CN={name}"),
            ("-certreq", *_entry(store), "-file", request),
            (
                *("-gencert", "-rfc", *_entry(signer), *names),
                *("-infile", request, "-outfile", signed, "-validity", "2"),
            ),
            (
                *("-importcert", "-noprompt", "-keystore", store, *_ACCESS),
                *("-alias", "authority", "-file", str(self._folder / f"{authority}.pem")),
            ),
            ("-importcert", *_entry(store), "-file", signed),
            ("-exportkey", store, STORE_PASSWORD, str(self._folder / f"{name}.key")),
        ]


def _entry(store: str) -> tuple[str, ...]:
    return ("-keystore", store, "-alias", "own", *_ACCESS)


def _run(commands: Sequence[Sequence[str]]) -> None:
    program = Path(__file__).with_name("Keytool.java")
    done = subprocess.run(
        [java(), *QUICK_JVM, "--add-exports", _EXPORTS, str(program)],
        input="".join("\t".join(command) + "\n" for command in commands),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
