"""The operator that runs a feature function: bytes in, bytes out, in the scheduler's chain."""

from __future__ import annotations

from pyflink.datastream.functions import MapFunction, RuntimeContext

from freshet.functions.isolation import IsolatedFunction


class FeatureFunctionOperator(MapFunction):
    """Hands batches of windows to the feature function in its own process, and its answers back.

    The operator itself only moves bytes. Under thread mode the interpreter is embedded in the
    TaskManager's JVM, where a call costs tens of microseconds; the process behind it is what
    makes a hang or a crash of the function harmless and keeps subtasks off each other's
    interpreter lock.

    Args:
        pickled_function: what ``dump_function`` made of the feature function.
        timeout_s: limit of one key's computation, seconds.
        python: interpreter of the function's process; None for the worker's own.
    """

    def __init__(self, pickled_function: bytes, timeout_s: float, python: str | None) -> None:
        self._pickled_function = pickled_function
        self._timeout_s = timeout_s
        self._python = python
        self._function: IsolatedFunction | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Starts the function's process."""
        self._function = IsolatedFunction(
            self._pickled_function, timeout_s=self._timeout_s, python=self._python
        )

    def map(self, value: bytes) -> bytes:
        """Computes one batch; both sides are in the format of ``freshet.functions.protocol``."""
        assert self._function is not None, "open() comes before map()"
        return self._function.call(bytes(value))

    def close(self) -> None:
        """Ends the function's process."""
        if self._function is not None:
            self._function.close()
            self._function = None
