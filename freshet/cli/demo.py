"""``freshet demo``: two policies of the real feature job side by side, and regions to send to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from freshet.cli.output import JsonOption, emit

_INTERRUPTED_CODE = 130
_LONG_PARTS = ("updates_by_key", "loss_by_key", "loss_by_step", "staleness_hours_by_step")


def command(
    days: Annotated[
        float, typer.Option(min=0.05, help="Days of event time to replay, of 24.8 that there are.")
    ] = 14.0,
    budget: Annotated[
        float, typer.Option(min=0.0001, max=1.0, help="Share of features computed each hour.")
    ] = 0.01,
    speed_up: Annotated[
        float | None,
        typer.Option(min=1, help="Event time over wall time; as fast as possible when not given."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=30, help="Seconds; the replay ends early to keep to it.")
    ] = 285.0,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="Seed of the confidence intervals.")] = 1,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Leave the stack up; stop it: freshet down.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay real readings under two scheduling policies, and send the features to two regions."""
    # Imported late: other commands need none of this.
    from freshet.demo.live import LiveDisplay
    from freshet.demo.report import certainty, conclusion, replication
    from freshet.demo.run import DemoOptions, run_demo

    options = DemoOptions(
        days=days,
        budget=budget,
        speed_up=speed_up,
        time_limit_s=time_limit,
        out=out.absolute(),
        seed=seed,
        keep_running=keep_running,
    )
    outcome = run_demo(options, LiveDisplay(Console(stderr=True, highlight=False)))
    emit(
        _summary(outcome.report) | {"files": [str(outcome.json_file), str(outcome.html_file)]},
        f"Look at {_shown(outcome.html_file)} (numbers: {_shown(outcome.json_file)}).",
        conclusion(outcome.report),
        certainty(outcome.report),
        replication(outcome.report),
        *(
            [f"The stack runs on: {outcome.stack.config.flink_rest}. Stop it with: freshet down"]
            if outcome.stack is not None
            else []
        ),
        as_json=as_json,
    )
    if outcome.report["interrupted"]:
        raise typer.Exit(_INTERRUPTED_CODE)


def _shown(file: Path) -> str:
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)


def _summary(report: dict[str, Any]) -> dict[str, Any]:
    """The report without its long series, which are in the file."""
    return report | {
        "policies": {
            name: {part: value for part, value in policy.items() if part not in _LONG_PARTS}
            for name, policy in report["policies"].items()
        },
        "steps": {part: value for part, value in report["steps"].items() if part != "ends"},
    }
