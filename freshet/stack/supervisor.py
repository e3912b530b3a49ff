"""Replaces TaskManagers that die: ``python -m freshet.stack.supervisor HOME``.

What a cluster manager does for a real cluster: a job that lost a TaskManager finds a slot again.
Kafka and Redis are left to whoever killed them, because they come back with or without their data.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from freshet.errors import StackError
from freshet.stack.stack import Stack

_INTERVAL_S = 1.0


def main() -> None:
    """Looks after the stack until it is gone."""
    home = Path(sys.argv[1])
    while True:
        time.sleep(_INTERVAL_S)
        # Another command may hold the stack for a while; look again later.
        with contextlib.suppress(StackError):
            if not Stack.replace_lost_task_managers(home):
                return
        _reap()


def _reap() -> None:
    """Lets go of replacements that have died in their turn."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main()
