"""The interface of a feature function: a window in, a feature value out."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from freshet.functions.window import Window
from freshet.values import FeatureValue

if TYPE_CHECKING:
    from freshet.table import Duration, FeatureTable, Points


class FeatureFunction(ABC):
    """Computes the feature value of one key from its window.

    Write a subclass, most easily a dataclass whose fields are the parameters::

        @dataclass
        class Range(FeatureFunction):
            scale: float = 1.0

            def compute(self, window):
                return [self.scale * (window.values.max() - window.values.min())]

    Where it runs. The instance is pickled by value when the table is submitted, so that its module
    need not be installed on the cluster; modules that it imports must be. Each subtask runs it in a
    process of its own. A call that raises, hangs or crashes costs one key one dead letter: the key
    keeps its last good value, and its neighbours are computed.

    State. Fields that a call sets live as long as the process, which is replaced after a hang or
    a crash and after every restart of the job. They are caches, never the only copy of something:
    what a feature depends on belongs into the events. One subtask sees only its own keys.
    """

    @abstractmethod
    def compute(self, window: Window) -> FeatureValue:
        """The feature value of one key.

        Returns:
            A 1-D array or a sequence of finite numbers, stored as float32; or a finite number,
            text, bytes, or lists and dicts of these, stored as Avro.

        Raises:
            RateLimited: a third party takes no more calls for now; the key is tried again later.
            Exception: any other; the key goes to dead letters with the reason and the stack.
        """

    def compute_batch(self, windows: Sequence[Window]) -> Sequence[FeatureValue]:
        """The feature values of several keys, in the same order.

        Override it where computing together is cheaper, as with matrices; it must then agree with
        :meth:`compute`. If it raises, or takes longer than the timeout of one key, each key is
        computed alone with :meth:`compute`, so that only the guilty fail. If it raises
        ``RateLimited``, all keys are tried again later.
        """
        return [self.compute(window) for window in windows]

    def for_table(self, table: FeatureTable) -> FeatureFunction:
        """The function to run for a table: this one, or a copy that knows more of the table.

        Called when the table is submitted. Whoever computes a table's values by other means, such
        as a simulation, runs this one too.
        """
        return self

    def prepare(self) -> None:  # noqa: B027 - optional, so not abstract
        """Loads what all calls need, such as libraries and model files.

        Runs once in the worker, before its first call and before it forks the process that serves
        calls, so that replacing that process does not load again. Must not start threads.
        """

    def min_points(self, window: Points | Duration) -> int:
        """Fewest points of a window that the function can compute from, at least 1.

        Args:
            window: the extent of the table's window.
        """
        return 1

    def validate(self, table: FeatureTable) -> list[str]:
        """Problems of the table for this function and of its parameters, one sentence each."""
        return []

    def parameters(self) -> dict[str, Any]:
        """The parameters by name: the fields of a dataclass, else nothing."""
        if not dataclasses.is_dataclass(self):
            return {}
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}


def has_own_batch(function: FeatureFunction) -> bool:
    """Whether the function overrides :meth:`FeatureFunction.compute_batch`."""
    return type(function).compute_batch is not FeatureFunction.compute_batch
