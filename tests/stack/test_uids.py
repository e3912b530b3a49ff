"""Goal: the operators' uids stay, since savepoints find an operator's state by them.

Method: the jobs' graphs are built, as their scripts do, and compared with the committed list.

Fails when: an operator has no uid or another one than before. A uid may be new; then the list is
written anew (see ``tests/releases/job_uids.py``). One that is gone takes users' state along.
"""

from __future__ import annotations

import json
import subprocess
import sys

from freshet.stack.layout import CHECKOUT

_FILE = CHECKOUT / "tests" / "data" / "uids.json"
_DEADLINE_S = 120


def test_uids_are_the_committed_ones() -> None:
    # In a process of its own: PyFlink keeps a JVM until its process ends.
    done = subprocess.run(
        [sys.executable, "-m", "tests.releases.job_uids"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout) == json.loads(_FILE.read_text(encoding="utf-8"))
