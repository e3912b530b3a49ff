"""Does several things at once, such as starting servers that wait for nothing of each other."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable


def run_together(actions: list[Callable[[], None]]) -> None:
    """Runs all at once and waits; the first failure is raised, the others' ends are awaited.

    The threads are daemons: an interrupt is handled at once, and what they wait for is then
    killed, which ends them.
    """
    outcomes: list[concurrent.futures.Future[None]] = []
    for action in actions:
        outcome: concurrent.futures.Future[None] = concurrent.futures.Future()
        outcomes.append(outcome)
        threading.Thread(target=_run_into, args=(action, outcome), daemon=True).start()
    done, _ = concurrent.futures.wait(outcomes, return_when=concurrent.futures.FIRST_EXCEPTION)
    for outcome in done:
        outcome.result()


def _run_into(action: Callable[[], None], outcome: concurrent.futures.Future[None]) -> None:
    try:
        action()
    except BaseException as error:
        outcome.set_exception(error)
    else:
        outcome.set_result(None)
