"""What happened to one arm of an evaluation, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from freshet.evaluation.variants import Arm
from freshet.evaluation.workload import Features, Floats, Ints, Step


@dataclass
class ArmRecord:
    """Losses, staleness and updates of one arm; grows by a step at a time."""

    arm: Arm
    keys: int
    """Number of the workload's keys, k."""

    loss_sums: list[float] = field(default_factory=list)
    """Sum of the errors in each step."""

    query_counts: list[int] = field(default_factory=list)
    """Queries in each step."""

    key_loss: Floats = field(init=False)
    """Sum of the errors of each key [k]."""

    key_queries: Ints = field(init=False)
    """Queries of each key [k]."""

    key_updates: Ints = field(init=False)
    """Updates of each key [k] since the replay began; its first value is not counted."""

    staleness_ms: list[npt.NDArray[np.float32]] = field(default_factory=list)
    """Age of what was served, for each query that was served a value, milliseconds."""

    unserved: int = 0
    """Queries that found no value and were answered with the model's default."""

    wall_s: float = 0.0
    """Time of the run in which this arm was, seconds."""

    def __post_init__(self) -> None:
        self.key_loss = np.zeros(self.keys)
        self.key_queries = np.zeros(self.keys, np.int64)
        self.key_updates = np.zeros(self.keys, np.int64)

    def answered(self, step: Step, errors: Floats, served_event_times: Ints) -> None:
        """Takes in a step.

        Args:
            step: the step.
            errors: of its queries [q].
            served_event_times: event time of the value that each query was served [q], epoch
                milliseconds; -1 where there was none.
        """
        self.loss_sums.append(float(errors.sum()))
        self.query_counts.append(len(errors))
        np.add.at(self.key_loss, step.keys, errors)
        np.add.at(self.key_queries, step.keys, 1)
        served = served_event_times >= 0
        self.unserved += int((~served).sum())
        ages = step.times_ms[served] - served_event_times[served]
        self.staleness_ms.append(ages.astype(np.float32))

    @property
    def loss(self) -> float:
        """Mean error over all queries; NaN without any."""
        queries = sum(self.query_counts)
        return sum(self.loss_sums) / queries if queries else float("nan")

    def staleness_s(self) -> tuple[float, float]:
        """Mean and 99th percentile of the staleness, seconds; NaN without any."""
        ages = np.concatenate(self.staleness_ms) if self.staleness_ms else np.zeros(0)
        if not len(ages):
            return float("nan"), float("nan")
        return float(ages.mean(dtype=np.float64)) / 1e3, float(np.percentile(ages, 99)) / 1e3


def serve(step: Step, kept: list[Features], choice: Ints, errors: list[Floats]) -> Floats:
    """Errors of what was served, out of those of every kept version.

    Args:
        step: with queries [q].
        kept: features of each kept version, newest first.
        choice: index into them of what each key is served [k].
        errors: of each query with each version; as many as kept, each [q].

    Returns:
        [q].
    """
    served: Floats = np.choose(choice[step.keys], errors)
    return served


def served_event_times(step: Step, kept: list[Features], choice: Ints) -> Ints:
    """Event time of the value that each query was served [q]; -1 where there was none."""
    times = np.choose(choice, [features.event_times for features in kept])
    chosen: Ints = times[step.keys]
    return chosen
