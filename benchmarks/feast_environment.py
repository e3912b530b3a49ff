"""Feast in a virtual environment of its own, and a process in it that takes orders."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.context import REPOSITORY, Context

_LOCK = REPOSITORY / "benchmarks" / "requirements-feast.lock"
_WORKER = REPOSITORY / "benchmarks" / "feast_worker.py"


def feast_python(context: Context) -> Path:
    """Interpreter of Feast's environment, which is made the first time.

    Raises:
        RuntimeError: it could not be made.
    """
    folder = context.cache / "feast"
    python = folder / "bin" / "python"
    stamp = folder / ".lock-digest"
    digest = hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return python
    context.say("installing Feast (once)")
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    _run([str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(_LOCK)])
    stamp.write_text(digest, encoding="utf-8")
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


class Feast:
    """A Feast client in its own process; see ``feast_worker.py``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, **order: Any) -> dict[str, Any]:
        """Sends an order and waits for the answer.

        Raises:
            RuntimeError: the process ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the Feast process ended on {order}; its log is beside the run's")
        result: dict[str, Any] = json.loads(answer)
        return result


@contextmanager
def feast(context: Context, redis_url: str, log: Path) -> Iterator[Feast]:
    """A Feast client of this Redis."""
    folder = context.folder("feast")
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [str(feast_python(context)), str(_WORKER), str(folder), redis_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
        )
        try:
            yield Feast(process)
        finally:
            process.kill()
            process.wait()
