"""Entry point of the ``freshet`` command."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from freshet.errors import FreshetError

COMMANDS = (
    "demo",
    "up",
    "down",
    "status",
    "top",
    "config",
    "submit",
    "multicast",
    "region",
    "drop",
    "get",
    "feedback",
    "replay",
    "evaluate",
    "plan",
)
"""Modules of this package that hold a command, in the order of the help."""

# Before numpy is loaded: its products here are small, and threads that wait for each other make
# them slower, by orders of magnitude on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_INTERNAL_ERROR_CODE = 70  # EX_SOFTWARE


class _OneLineErrors(TyperGroup):
    """Ends a failing command with one line and a code, not with a stack trace."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except Exception as error:
            if os.environ.get("FRESHET_DEBUG"):
                raise
            if isinstance(error, FreshetError):
                message, code = "\n".join([str(error), *getattr(error, "__notes__", ())]), 1
            else:
                message = (
                    f"internal error: {type(error).__name__}: {error}; set FRESHET_DEBUG=1 for"
                    " the stack trace"
                )
                code = _INTERNAL_ERROR_CODE
            typer.echo(f"freshet: {message}", err=True)
            sys.exit(code)


app = typer.Typer(
    cls=_OneLineErrors,
    help="Fresh features, in every region, for the least compute and egress.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Fresh features, in every region, for the least compute and egress."""


def _register() -> None:
    for name in COMMANDS:
        if importlib.util.find_spec(f"freshet.cli.{name}") is not None:
            app.command(name)(importlib.import_module(f"freshet.cli.{name}").command)


_register()

if __name__ == "__main__":
    app()
