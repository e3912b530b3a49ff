"""``freshet top``: tables and regions as they are, again and again."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, note
from freshet.config import Config

if TYPE_CHECKING:
    from freshet.status.following import Following
    from freshet.status.snapshot import Snapshot

_KEY_WAIT_S = 0.1
_FIRST_PATIENCE_S = 15.0
"""Of a snapshot that makes connections and reads reports from their beginning."""


def command(
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two views.")] = 1.0,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Print so many views, one below the other, and end; without keys. Where the output"
            " is no terminal it is like this, without an end.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="The same as --batch 1.")] = False,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show tables, regions, freshness, regret, backlog and dollars, live.

    Keys: q ends it, arrows scroll, s sorts by something else.

    With --json there is one object a line for each view.
    """
    from freshet.status.following import Following

    console = Console(highlight=False)
    views = 1 if once else batch
    with Following(lambda: Config.load(config_file, overrides=overrides or ())) as following:
        if views is None and console.is_terminal and not as_json:
            _watch(following, console, interval)
        else:
            _print(following, console, interval, views, as_json=as_json)


def _print(
    following: Following, console: Console, interval_s: float, views: int | None, *, as_json: bool
) -> None:
    from freshet.status.screen import view

    for number, snapshot in enumerate(_paced(following, interval_s), start=1):
        if as_json:
            typer.echo(json.dumps(snapshot.to_dict(), ensure_ascii=False))
        else:
            console.print(view(snapshot, console.width), "")
        if number == views:
            return


def _paced(following: Following, interval_s: float) -> Iterator[Snapshot]:
    """Snapshots from the second on: the first has no rates, and takes long."""
    following.snapshot(_FIRST_PATIENCE_S)
    while True:
        time.sleep(interval_s)
        yield following.snapshot()


def _watch(following: Following, console: Console, interval_s: float) -> None:
    from rich.live import Live

    from freshet.status.keyboard import Keyboard
    from freshet.status.newest import Newest
    from freshet.status.screen import Screen

    note("Asking the servers ...")
    screen, drawn = Screen(), None
    with (
        contextlib.suppress(KeyboardInterrupt),
        # In a thread: whoever presses a key is not kept waiting by a server.
        Newest(following.snapshot, interval_s) as newest,
        Keyboard() as keyboard,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while newest.failure is None:
            snapshot, _ = newest.get()
            state = (snapshot.taken_at_ms, console.size, screen.order, screen.top)
            if state != drawn:
                live.update(screen.draw(console, snapshot), refresh=True)
                drawn = state
            key = keyboard.wait(_KEY_WAIT_S)
            if key == "q":
                return
            if key is not None:
                screen.press(key)
        raise newest.failure
