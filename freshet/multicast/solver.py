"""The process that solves requests: one line of JSON in, one out; it ends with its input.

A thread of its own reads, so that a caller can always write, also while this process still imports
the planner or solves, and that the process ends at once when its caller is gone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import sys
import threading
from typing import Any


def _read_requests(requests: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _write(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Says that it is ready, then answers each request with a plan or with what is wrong."""
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()

    # Seconds on a busy machine, while the caller may write already.
    from freshet.multicast.requests import Request
    from freshet.multicast.solving import solve

    _write({"ready": True})
    while True:
        line = requests.get()
        try:
            _write(dataclasses.asdict(solve(Request(**json.loads(line)))))
        except Exception as error:
            _write({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
