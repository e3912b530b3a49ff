"""Generated events and feedback, with what the reference model makes of them.

Feedback is on versions, so it is made step by step, from what the model has chosen so far; the
pipeline gets all of it at once, and must come to the same versions by itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.reference.model import (
    Demand,
    Event,
    Feedback,
    Function,
    Input,
    ReferenceModel,
    Settings,
    Version,
)

BEGIN_MS = 1_700_000_000_000 // 3_600_000 * 3_600_000
"""A whole hour, and so the end of a step of every length that tests use."""


@dataclass(frozen=True)
class Shape:
    """What a workload looks like."""

    keys: int = 40
    steps: int = 200
    step_ms: int = 60_000
    event_probability: float = 0.6
    """Of a key to have events in a step."""

    feedback_probability: float = 0.4
    """Of a key with a value to have feedback in a step."""

    demand_probability: float = 0.1
    """Of a key to be waited for in a step, if the table computes on demand."""

    values: int = 1_000
    """Events' values are whole numbers below: sums of some are exact in float32."""


@dataclass
class Step:
    """What belongs to one step of event time, in no particular order."""

    end_ms: int
    inputs: list[Input] = field(default_factory=list)


@dataclass
class Workload:
    """Inputs, and the model that has seen them all."""

    shape: Shape
    model: ReferenceModel
    steps: list[Step] = field(default_factory=list)

    @property
    def end_ms(self) -> int:
        """End of the last step."""
        return self.steps[-1].end_ms if self.steps else BEGIN_MS

    @property
    def keys(self) -> list[str]:
        """Every entity."""
        return [key_name(i) for i in range(self.shape.keys)]

    def inputs(self) -> Iterator[Input]:
        """Everything, step by step."""
        for step in self.steps:
            yield from step.inputs


def key_name(i: int) -> str:
    """Names with spaces, accents and characters beyond UTF-16's first plane among them."""
    return f"key-{i}" if i % 5 else f"clé 𝛑 {i}"


def generate(
    settings: Settings, parallelism: int, function: Function, shape: Shape, seed: int
) -> Workload:
    """Events and feedback of so many steps; the model decides each step as it is made."""
    workload = Workload(shape, ReferenceModel(settings, parallelism, function))
    extend(workload, seed)
    return workload


def extend(workload: Workload, seed: int) -> None:
    """As many steps again."""
    rng = random.Random(seed)
    for _ in range(workload.shape.steps):
        step = Step(workload.end_ms + workload.shape.step_ms)
        step.inputs += _events(rng, workload, step)
        step.inputs += _feedback(rng, workload, step)
        if workload.model.on_demand:
            step.inputs += _demands(rng, workload, step)
        decide(workload, step)


def decide(workload: Workload, step: Step) -> None:
    """Adds a step, and has the model decide it."""
    workload.steps.append(step)
    for given in step.inputs:
        workload.model.take(given)
    workload.model.advance(step.end_ms)


def disordered(
    inputs: Sequence[Input],
    rng: random.Random,
    *,
    lag_ms: int,
    duplicates: float = 0.1,
) -> list[Input]:
    """The inputs as a network may deliver them: some events twice, and none behind its time.

    Args:
        lag_ms: an input comes at most so much event time after a newer one.
        duplicates: share of the events that come again, at any later time.
    """
    newest = max(_time(given) for given in inputs)
    arrivals = [(_time(given) + rng.uniform(0, lag_ms), given) for given in inputs]
    arrivals += [
        (rng.uniform(_time(given), newest + lag_ms), given)
        for given in inputs
        if isinstance(given, Event) and rng.random() < duplicates
    ]
    arrivals.sort(key=lambda arrival: arrival[0])
    return [given for _, given in arrivals]


def _time(given: Input) -> int:
    assert given.timestamp_ms is not None
    return given.timestamp_ms


def _times(rng: random.Random, step: Step, shape: Shape, count: int) -> list[int]:
    """Distinct times in the step; its very end, which belongs to it, more often than chance."""
    times = {step.end_ms - rng.randrange(shape.step_ms) for _ in range(count)}
    if rng.random() < 0.1:
        times.add(step.end_ms)
    return sorted(times)


def _events(rng: random.Random, workload: Workload, step: Step) -> Iterator[Event]:
    shape = workload.shape
    for key in workload.keys:
        if rng.random() < shape.event_probability:
            for time in _times(rng, step, shape, rng.randint(1, 3)):
                yield Event(key, time, float(rng.randrange(shape.values)))


def _feedback(rng: random.Random, workload: Workload, step: Step) -> Iterator[Feedback]:
    for key in workload.keys:
        versions = workload.model.versions(key)
        if rng.random() >= workload.shape.feedback_probability:
            continue
        for time in _times(rng, step, workload.shape, rng.randint(1, 3)):
            error = None if rng.random() < 0.2 else rng.expovariate(1.0)
            yield Feedback(key, _some_version(rng, versions), error, time)


def _demands(rng: random.Random, workload: Workload, step: Step) -> Iterator[Demand]:
    for key in workload.keys:
        if rng.random() < workload.shape.demand_probability:
            for time in _times(rng, step, workload.shape, rng.randint(1, 2)):
                yield Demand(key, time)


def _some_version(rng: random.Random, versions: Sequence[Version]) -> Version | None:
    """Mostly the current one; else one that was replaced, one that never was, or none at all."""
    if not versions or rng.random() < 0.05:
        return None
    kind = rng.random()
    if kind < 0.7:
        return versions[-1]
    if kind < 0.9:
        return rng.choice(versions)
    return Version(versions[-1].timestamp_micros + 1, versions[-1].origin)
