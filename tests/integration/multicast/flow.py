"""Changes and deletes that keep coming while something else happens."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator

from tests.integration.multicast.changes import WATCHED, Changes

_PAUSE_S = 0.05
_BATCH = 20
_DELETE_EVERY = 5


class Flow:
    """What was written so far."""

    def __init__(self) -> None:
        self.written = 0
        self.deleted = 0


@contextlib.contextmanager
def flowing(changes: Changes, seed: int = 3) -> Iterator[Flow]:
    """Writes some changes and now and then a delete, again and again, until the block ends.

    Nobody else may write to the same table meanwhile.
    """
    flow, stop = Flow(), threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        rng = random.Random(seed)
        try:
            while not stop.wait(_PAUSE_S):
                changes.write(_BATCH)
                flow.written += _BATCH
                if rng.randrange(_DELETE_EVERY) == 0:
                    changes.delete(rng.choice(sorted(changes.newest.keys() - set(WATCHED))))
                    flow.deleted += 1
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write, name="flow", daemon=True)
    thread.start()
    try:
        yield flow
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]
