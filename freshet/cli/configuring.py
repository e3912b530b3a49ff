"""Options of the commands that take a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The deployment's configuration; FRESHET_CONFIG's if not given, else that of the stack"
        " that runs here.",
        show_default=False,
    ),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Sets a field of the configuration, over its file and the environment; may be"
        " repeated. 'freshet config --describe' lists the fields.",
        show_default=False,
    ),
]
