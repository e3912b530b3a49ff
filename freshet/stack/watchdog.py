"""Ends a stack whose owner has died: ``python -m freshet.stack.watchdog STACK_ID OWNER STARTED``.

A ``with`` block cannot clean up after its own process was killed; this process can.
"""

from __future__ import annotations

import os
import select
import sys

from freshet.stack.processes import ProcessIdentity, kill_stack_processes


def main() -> None:
    """Waits for the owner to end, then kills what is left of its stack."""
    stack_id, pid, started = sys.argv[1:4]
    owner = ProcessIdentity(int(pid), started)
    try:
        descriptor = os.pidfd_open(owner.pid)
    except ProcessLookupError:
        descriptor = -1
    if descriptor >= 0 and owner.is_alive():
        waiter = select.poll()
        waiter.register(descriptor, select.POLLIN)
        waiter.poll()
    kill_stack_processes(stack_id)


if __name__ == "__main__":
    main()
