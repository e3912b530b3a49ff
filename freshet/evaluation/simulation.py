"""The rules of the scheduler once more, in arrays: what the real job must agree with.

Written from the rules and not from the operators, with which it shares no code: each key is a
column, a step is a handful of array operations, and features are computed by calling the feature
function on windows taken from the data. It knows one subtask and the budget by event time. It is
thousands of times as fast as the job, which makes it good for trying many policies, budgets and
seeds; what it says is checked against the job by tests.

The rules (RALF §2.3.3 and §2.4.3):

- A key is eligible when events came that its value does not contain, and its window is full enough.
- A step's events and feedback are applied at its end; then the budget is spent on the eligible keys
  with the highest priority. Ties go to the key that was chosen longest ago, then by name.
- A key without a value is computed before all that have one, where the workload does not say what
  regret a missing value has.
- A chosen key is computed on all of its data, its feedback is cleared, and its new version answers
  the queries of the next step.
- The budget's fraction carries over, by at most one update.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from freshet.evaluation.record import ArmRecord, serve, served_event_times
from freshet.evaluation.variants import NONE, UNLIMITED, Arm
from freshet.evaluation.workload import (
    Features,
    Floats,
    Ints,
    Step,
    Workload,
    computed_by_warm_up,
)

ROUNDING = 1e-9
DEFAULT_REGRET = 1e-6
"""Regret of a pending event, as a table's ``default_regret``."""

CHOICE_DECAY = 0.7
"""Weight of a kept version's past errors at each further query, as ``VersionChooser``'s."""

RECENT_WEIGHT = 0.2
"""Weight of the newest error in the moving average of errors."""

_MASK = (1 << 64) - 1

Hashes = npt.NDArray[np.uint64]


@dataclass(eq=False)
class KeyState:
    """What the scheduler knows of every key, each an array [k]."""

    names: Sequence[str]
    name_hashes: Hashes
    regret: Floats
    """Sum of the errors of what was served since the last update."""

    queries: Floats
    """Queries since the last update."""

    pending: Ints
    """Events that the value does not contain."""

    computed: Ints
    """Events that the value contains, over the key's life."""

    chosen: Ints
    """Step in which the key was last chosen, -2 for never."""

    updates: Ints
    recent_error: Floats
    """Moving average of the errors since the last update: the mean of the first few, then one in
    which the newest weighs RECENT_WEIGHT."""

    first_error: Floats
    """Sum of the errors in the first step with feedback after the update."""

    first_queries: Floats


@dataclass(frozen=True)
class Moment:
    """What a priority may depend on beside the keys."""

    step_end_ms: int
    seed: int
    missing_regret: float | None


Priority = Callable[[KeyState, Moment], Floats]
"""The priority of each key [k]; larger is earlier."""


def with_missing(regret: Floats, keys: KeyState, moment: Moment) -> Floats:
    """The priority of keys that have a value, and what stands for it of those without, [k]."""
    missing = math.inf if moment.missing_regret is None else regret + moment.missing_regret
    return np.where(keys.updates > 0, regret, missing)


def _regret_proportional(keys: KeyState, moment: Moment) -> Floats:
    return with_missing(keys.regret + DEFAULT_REGRET * keys.pending, keys, moment)


def _rising_regret(keys: KeyState, moment: Moment) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        rise = np.sqrt(keys.recent_error * keys.queries / keys.regret)
    regret = keys.regret + DEFAULT_REGRET * keys.pending
    return with_missing(regret * np.where(keys.regret > 0, rise, 1.0), keys, moment)


def _regret_over_baseline(keys: KeyState, moment: Moment) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        baseline = keys.first_error / keys.first_queries
    later = keys.regret - keys.first_error - (keys.queries - keys.first_queries) * baseline
    return with_missing(np.where(keys.first_queries > 0, later, 0.0), keys, moment)


def _random(keys: KeyState, moment: Moment) -> Floats:
    return draw_lots(keys.name_hashes, moment.seed, moment.step_end_ms)


def draw_lots(name_hashes: Hashes, seed: int, drawing: int) -> Floats:
    """The keys' lots in one drawing, uniform in [0, 1).

    The finalizer of splitmix64 over the hash of a key's name plus the seed, and once more plus the
    drawing; the upper 53 bits as a fraction.

    Args:
        name_hashes: as :func:`hash_names` gives them [k].
        seed: another one draws other lots.
        drawing: end of the event-time step, epoch milliseconds.
    """
    mixed = _mix(_mix(name_hashes + np.uint64(seed & _MASK)) + np.uint64(drawing & _MASK))
    lots: Floats = (mixed >> np.uint64(11)) * 2.0**-53
    return lots


def hash_names(names: Sequence[str]) -> Hashes:
    """FNV-1a over the UTF-8 bytes of each name [k]."""
    return np.array([_fnv_1a(name.encode()) for name in names], np.uint64)


def _fnv_1a(units: bytes) -> int:
    code = 0xCBF29CE484222325
    for unit in units:
        code = (code ^ unit) * 0x100000001B3 & _MASK
    return code


def _mix(codes: Hashes) -> Hashes:
    codes = (codes ^ codes >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    codes = (codes ^ codes >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return codes ^ codes >> np.uint64(31)


_PRIORITIES: dict[str, Priority] = {
    "regret-proportional": _regret_proportional,
    "rising-regret": _rising_regret,
    "regret-over-baseline": _regret_over_baseline,
    "query-proportional": lambda keys, moment: with_missing(keys.queries, keys, moment),
    "round-robin": lambda keys, _: -keys.chosen.astype(np.float64),
    "random": _random,
    "minimum-past": lambda keys, _: -keys.computed.astype(np.float64),
    "max-pending": lambda keys, _: keys.pending.astype(np.float64),
    UNLIMITED: lambda keys, _: -keys.chosen.astype(np.float64),
}

POLICIES = tuple(name for name in _PRIORITIES if name != UNLIMITED)
"""Policies that can be simulated; others need what only a running job has."""


@dataclass(eq=False)
class _Budget:
    per_step: float
    credit: float = 0.0

    def begin_step(self) -> int:
        self.credit = max(self.credit, min(self.credit + self.per_step, self.per_step + 1))
        return int(self.credit + ROUNDING)


@dataclass(eq=False)
class _Tallies:
    """Recent errors of each kept version of each key [v, k], from which the best is chosen."""

    values: Floats
    decay: float

    def choice(self, present: npt.NDArray[np.bool_]) -> Ints:
        """Version with the smallest tally for each key [k]; of equals the newest."""
        best: Ints = np.argmin(np.where(present, self.values, np.inf), axis=0)
        return best

    def observe(self, step: Step, errors: Floats) -> None:
        """Takes in the errors of every version [v, q], query by query."""
        for part in step.rounds:
            keys = step.keys[part]
            self.values[:, keys] = self.decay * self.values[:, keys] + errors[:, part]


class FeatureCache:
    """Feature values by key and time, computed once for all arms.

    Args:
        workload: whose function computes them.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._function = workload.function()
        self._function.prepare()
        self._values: dict[tuple[int, int], tuple[npt.NDArray[np.float32], int]] = {}

    def get(
        self, keys: Sequence[int], through_ms: int
    ) -> list[tuple[npt.NDArray[np.float32], int]]:
        """Value and event time of each key as of a time."""
        missing = [key for key in keys if (key, through_ms) not in self._values]
        windows = [self._workload.window(key, through_ms) for key in missing]
        known = [window for window in windows if window is not None]
        assert len(known) == len(missing), "only keys with a full window are chosen"
        if known:
            computed = self._function.compute_batch(known)
            for key, window, value in zip(missing, known, computed, strict=True):
                vector = np.asarray(value, np.float32)
                self._values[key, through_ms] = vector, window.event_time
        return [self._values[key, through_ms] for key in keys]


@dataclass(eq=False)
class _ArmState:
    arm: Arm
    record: ArmRecord
    keys: KeyState
    budget: _Budget
    kept: list[Features]
    tallies: _Tallies
    choices: list[tuple[int, int]] = field(default_factory=list)
    """(end of the step, key) of every update."""


class Simulation:
    """Replays a workload for several arms, without a job.

    Args:
        workload: what is replayed.
        seed: of policies with chance in them.
        ideas: priorities that are no policies of the job, to try them out, by a name for each.
        choice_decay: weight of a kept version's past errors at each further query.
    """

    def __init__(
        self,
        workload: Workload,
        seed: int = 0,
        *,
        ideas: Mapping[str, Priority] | None = None,
        choice_decay: float = CHOICE_DECAY,
    ) -> None:
        self._workload = workload
        self._seed = seed
        self._priorities = _PRIORITIES | dict(ideas or {})
        self._choice_decay = choice_decay
        self._features = FeatureCache(workload)
        self._first = computed_by_warm_up(workload)
        self._ready = self._first.copy()
        self._name_hashes = hash_names(workload.keys)
        self.choices: dict[Arm, list[tuple[int, int]]] = {}
        """For each arm, (end of the step in epoch milliseconds, key) of every update in order."""

    def replay(
        self, arms: Sequence[Arm], progress: Callable[[int, int], None] = lambda done, all_: None
    ) -> list[ArmRecord]:
        """What happens to each arm, in the same order."""
        self._ready = self._first.copy()
        states = [self._start(arm) for arm in arms]
        for index in range(self._workload.steps):
            step = self._workload.step(index)
            arrived = np.bincount(step.events.series, minlength=len(self._workload.keys))
            for state in states:
                self._step(state, step, arrived)
            progress(index + 1, self._workload.steps)
        self.choices = {state.arm: state.choices for state in states}
        return [state.record for state in states]

    def _start(self, arm: Arm) -> _ArmState:
        workload = self._workload
        count = len(workload.keys)
        events = workload.warm_up()
        first = self._first
        arrived = np.bincount(events.series, minlength=count)
        keys = KeyState(
            names=workload.keys,
            name_hashes=self._name_hashes,
            regret=np.zeros(count),
            queries=np.zeros(count),
            pending=np.where(first, 0, arrived),
            computed=np.where(first, arrived, 0),
            chosen=np.where(first, -1, -2),
            updates=first.astype(np.int64),
            recent_error=np.zeros(count),
            first_error=np.zeros(count),
            first_queries=np.zeros(count),
        )
        values = np.full((count, workload.dimension()), np.nan, np.float32)
        times = np.full(count, -1)
        state = _ArmState(
            arm,
            ArmRecord(arm, count),
            keys,
            _Budget(self._updates_per_step(arm)),
            [Features(values, times)],
            _Tallies(np.zeros((arm.variant.keep, count)), self._choice_decay),
        )
        state.kept = [Features(values.copy(), times.copy()) for _ in range(arm.variant.keep)]
        self._store(state, np.flatnonzero(first).tolist(), workload.warm_up_end_ms())
        return state

    def _updates_per_step(self, arm: Arm) -> float:
        if arm.variant.policy == UNLIMITED:
            return float(len(self._workload.keys))
        return 0.0 if arm.variant.policy == NONE else self._workload.updates_per_step(arm.budget)

    def _step(self, state: _ArmState, step: Step, arrived: Ints) -> None:
        keys, present = state.keys, np.stack([features.present for features in state.kept])
        choice = state.tallies.choice(present)
        every = [self._workload.errors(step, features) for features in state.kept]
        errors = serve(step, state.kept, choice, every)
        state.record.answered(step, errors, served_event_times(step, state.kept, choice))
        if len(state.kept) > 1:
            state.tallies.observe(step, np.stack(every))
        self._feed_back(state, step, errors)
        keys.pending += arrived
        self._decide(state, step)

    def _feed_back(self, state: _ArmState, step: Step, errors: Floats) -> None:
        keys = state.keys
        first = keys.first_queries == 0
        for part in step.rounds:
            asked, newest = step.keys[part], errors[part]
            keys.regret[asked] += newest
            keys.queries[asked] += 1
            weight = np.maximum(RECENT_WEIGHT, 1 / keys.queries[asked])
            keys.recent_error[asked] += weight * (newest - keys.recent_error[asked])
        keys.first_error = np.where(first, keys.regret, keys.first_error)
        keys.first_queries = np.where(first, keys.queries, keys.first_queries)

    def _decide(self, state: _ArmState, step: Step) -> None:
        keys = state.keys
        allowed = state.budget.begin_step()
        if allowed == 0 or state.arm.variant.policy == NONE:
            return
        eligible = [
            key
            for key in np.flatnonzero(keys.pending > 0).tolist()
            if self._is_ready(key, step.end_ms)
        ]
        if not eligible:
            return
        moment = Moment(step.end_ms, self._seed, self._workload.missing_regret)
        priority = self._priorities[state.arm.variant.policy](keys, moment)
        order = sorted(
            eligible, key=lambda key: (-priority[key], keys.chosen[key], keys.names[key])
        )
        chosen = order[:allowed]
        state.budget.credit -= len(chosen)
        for key in chosen:
            keys.computed[key] += keys.pending[key]
            keys.pending[key] = 0
            keys.regret[key] = keys.queries[key] = 0.0
            keys.first_error[key] = keys.first_queries[key] = 0.0
            keys.recent_error[key] = 0.0
            keys.chosen[key] = step.index
            keys.updates[key] += 1
            state.record.key_updates[key] += 1
            state.choices.append((step.end_ms, key))
        self._store(state, chosen, step.end_ms)

    def _is_ready(self, key: int, through_ms: int) -> bool:
        """Whether a key's window is full enough, which it then stays; asked in order of time."""
        if not self._ready[key]:
            self._ready[key] = self._workload.window(key, through_ms) is not None
        return bool(self._ready[key])

    def _store(self, state: _ArmState, chosen: Sequence[int], through_ms: int) -> None:
        """Puts the new versions before the kept ones."""
        computed = self._features.get(chosen, through_ms)
        for older, newer in zip(reversed(state.kept[1:]), reversed(state.kept[:-1]), strict=True):
            older.values[chosen] = newer.values[chosen]
            older.event_times[chosen] = newer.event_times[chosen]
        for key, (value, event_time) in zip(chosen, computed, strict=True):
            state.kept[0].values[key] = value
            state.kept[0].event_times[key] = event_time
        state.tallies.values[:, chosen] = 0.0
