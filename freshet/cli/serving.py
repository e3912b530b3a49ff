"""What ``freshet status --serve`` does: takes snapshots and serves the page until interrupted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import typer

from freshet.config import Config
from freshet.errors import FreshetError
from freshet.stack.signals import exit_on_signals

LOOPBACK = "127.0.0.1"

_ADDRESS = re.compile(
    r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\s:/@\[\]]+)):)?(?P<port>\d{1,5})"
)
_PORT_MAX = 65_535


def address_of(text: str) -> tuple[str, int]:
    """Host and port of ``[HOST:]PORT``; without a host the loopback's.

    Raises:
        FreshetError: it is something else.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match["port"]) > _PORT_MAX:
        raise FreshetError(
            f"--serve {text!r} is not [HOST:]PORT; give for example 8090, or 0.0.0.0:8090 to be"
            " seen from elsewhere, or [::1]:8090"
        )
    return match["v6"] or match["host"] or LOOPBACK, int(match["port"])


def run_page(
    address: str, config_file: Path | None, overrides: Sequence[str], interval_s: float
) -> None:
    """Serves the page until the process is told to end.

    Args:
        address: ``[HOST:]PORT``.
        config_file: of the home region; None for what applies here.
        overrides: of the configuration's fields.
        interval_s: between two snapshots, seconds.

    Raises:
        FreshetError: the address or the configuration is wrong.
    """
    from freshet.multicast.building import profiles_folder
    from freshet.status.following import Following
    from freshet.status.maps import PlanMaps
    from freshet.status.newest import Newest
    from freshet.status.server import StatusServer

    host, port = address_of(address)

    def load() -> Config:
        return Config.load(config_file, overrides=overrides)

    maps = PlanMaps(profiles_folder(load()))
    with (
        exit_on_signals(),
        Following(load) as following,
        Newest(following.snapshot, interval_s) as newest,
        StatusServer(host, port, newest, maps, interval_s) as server,
    ):
        typer.echo(f"Serving {server.url} until interrupted.")
        if not server.is_local:
            typer.echo(
                "Whoever reaches this address sees the names of tables and regions; there is no"
                " login and no encryption.",
                err=True,
            )
        server.serve_forever()
