"""``freshet down``: stop the embedded stack."""

from __future__ import annotations

from freshet.cli.output import JsonOption, emit
from freshet.config import stack_home
from freshet.stack import Stack


def command(as_json: JsonOption = False) -> None:
    """Stop what `freshet up` started, and nothing else."""
    stack = Stack.stop_detached()
    if stack is None:
        emit(
            {"stopped": False}, f"No stack runs here (no state in {stack_home()}).", as_json=as_json
        )
        return
    emit(
        {"stopped": True, "logs": str(stack.logs)},
        f"Stopped. The logs are in {stack.logs}.",
        as_json=as_json,
    )
