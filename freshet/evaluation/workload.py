"""What is replayed: events, the queries on them, and what a model makes of the features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from freshet.functions import FeatureFunction, Window
from freshet.replay import Recording

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Features:
    """The features of all keys of a workload, as they were served at one time."""

    values: npt.NDArray[np.float32]
    """Vectors [k, d]; NaN where a key has no value."""

    event_times: Ints
    """Event time of the newest event in each value [k], epoch milliseconds; -1 where none."""

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Whether each key has a value [k]."""
        found: npt.NDArray[np.bool_] = self.event_times >= 0
        return found


@dataclass(frozen=True, eq=False)
class Step:
    """One step of event time: what is asked during it, and what happens."""

    index: int
    begin_ms: int
    """When its features are read: the end of the step before, epoch milliseconds."""

    end_ms: int
    events: Recording
    keys: Ints
    """Key of each query [q], as an index into the workload's keys, in order of time."""

    times_ms: Ints
    """Event time of each query [q], epoch milliseconds, ascending."""

    detail: npt.NDArray[Any]
    """What else the workload needs to answer each query [q, ...]."""

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.keys)

    @cached_property
    def rounds(self) -> list[Ints]:
        """The queries in parts, in each of which a key has at most one; see :func:`rounds`."""
        return rounds(self.keys)


class Workload(ABC):
    """A data set with a feature function and a model: what policies are compared on.

    A model reads the features of all keys when a step begins, answers the step's queries with them,
    and learns each answer's error when the step has passed. Errors are at least 0.
    """

    name: str
    keys: Sequence[str]
    step_ms: int
    """Length of a step, milliseconds of event time."""

    steps: int
    unit: str
    """What the loss is measured in."""

    budget_unit: str
    """What a budget is a share of, for people: ``of keys in a step``."""

    missing_regret: float | None = None
    """Regret of having no value, as a table's; None computes keys without a value first."""

    notes: Sequence[str] = ()
    """What a reader must know, such as how many keys were left out."""

    def describe(self) -> dict[str, Any]:
        """Options of the workload, for the reader of a report."""
        return {}

    @abstractmethod
    def updates_per_step(self, budget: float) -> float:
        """Updates that a budget allows in a step."""

    @abstractmethod
    def definition(self) -> dict[str, Any]:
        """The table definition but for name, policy and budget, as in YAML."""

    @abstractmethod
    def function(self) -> FeatureFunction:
        """The feature function of the definition."""

    @abstractmethod
    def warm_up(self) -> Recording:
        """Events before the first step: afterwards every key that can be computed is, once."""

    @abstractmethod
    def warm_up_end_ms(self) -> int:
        """End of the step that the last of the warm-up's events is in."""

    @abstractmethod
    def step(self, index: int) -> Step:
        """A step; the same every time it is asked for."""

    @abstractmethod
    def errors(self, step: Step, features: Features) -> Floats:
        """Error of the answer to each query [q], from features that were read at its beginning.

        A key without a value is answered with the model's default, so every query has an error.
        """

    @abstractmethod
    def window(self, key: int, through_ms: int) -> Window | None:
        """The key's window as of a time; None while it has too few points."""

    @abstractmethod
    def dimension(self) -> int:
        """Length of a feature's vector, d."""


def computed_by_warm_up(workload: Workload) -> npt.NDArray[np.bool_]:
    """Whether each key has a value after the warm-up [k]."""
    end_ms = workload.warm_up_end_ms()
    return np.array([workload.window(key, end_ms) is not None for key in range(len(workload.keys))])


def rounds(keys: Ints) -> list[Ints]:
    """Splits queries so that each key has at most one in each part, in order.

    Args:
        keys: key of each query [q], in order of time.

    Returns:
        Indexes into the queries; the first part has every key's first query, and so on.
    """
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(sorted_keys) != 0]))
    number = np.arange(len(keys)) - np.repeat(
        starts, np.diff(np.concatenate([starts, [len(keys)]]))
    )
    ordinal = np.empty(len(keys), np.int64)
    ordinal[order] = number
    return [np.flatnonzero(ordinal == i) for i in range(int(number.max(initial=-1)) + 1)]
