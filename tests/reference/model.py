"""Predicts what the feature job does with a budget of updates per step of event time.

Written from the rules of the scheduler (RALF §2.3.3 and §2.4.3) and of the topics, and with no
regard for speed: every event is kept for ever, every choice looks at every key. The real pipeline
must make the same choices, in the same order, with the same windows, versions and values.

The rules in one place:

- A step ends at a multiple of the step's length, and holds the times in (end - length, end].
- What carries a time of an undecided step waits for that step's end. There each key's events are
  applied, then its feedback in order of (time, version, error), so that nothing depends on the
  order of arrival.
- On demand, only keys that someone waits for fire, those first that were asked for first. A demand
  counts after its step's events, and is of no use to a key without pending data.
- Feedback counts on the key's current version; feedback on no version (the query found no value)
  counts while a key that has had an event has no value.
- Then the subtask grants itself its budget, and fires one key after another: the one with the
  highest priority among those with pending data. Of equals the one that was chosen longest ago
  fires first, of those the first by name. Each subtask decides alone.
- What carries a time of a decided step is late, and counts from its arrival on.

Worked timeline; one subtask, steps of 10, one update a step, windows of two points::

    event a@3 = 1, event b@4 = 2      both wait
    step 10 ends                      a and b have no value: a tie, so a fires: [1], version 10000
    event a@12 = 5                    waits
    feedback (b, 10000.1, 9) @ 13     waits, and is dropped at 20: b has no such version
    step 20 ends                      b has no value, a has one: b fires: [2], version 20000
    step 30 ends                      a fires: [1, 5], version 30000
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.reference.keygroups import key_group, owner
from tests.reference.lots import lot

ROUNDING = 1e-9
"""Fractions of an update add up to whole ones in spite of binary rounding, so 10 x 0.1 is one."""

MAX_BACKOFF_STEPS = 64

RECENT_WEIGHT = 0.2
"""Weight of the newest error in the moving average of errors."""


class Version(NamedTuple):
    """Ordered by timestamp, then origin."""

    timestamp_micros: int
    origin: int

    def __str__(self) -> str:
        return f"{self.timestamp_micros}.{self.origin}"


@dataclass(frozen=True)
class Event:
    """One raw event; the same (key, timestamp, id) again is the same event."""

    key: str
    timestamp_ms: int
    value: Any
    id: int = 0


@dataclass(frozen=True)
class Feedback:
    """What a model tells of one use of a feature."""

    key: str
    version: Version | None
    """None: the query found no value."""

    error: float | None
    """None: a query whose label is not known."""

    timestamp_ms: int | None
    """None: it counts when it arrives."""


@dataclass(frozen=True)
class Demand:
    """Someone waits for a newer value of the key."""

    key: str
    timestamp_ms: int | None
    """None: it counts when it arrives."""


Input = Event | Feedback | Demand
"""Whatever arrives."""


@dataclass(frozen=True)
class Settings:
    """The part of a table definition on which choices depend."""

    policy: str
    updates_per_step: float
    step_ms: int
    initial_updates: float = 0.0
    window_points: int | None = None
    window_ms: int | None = None
    min_points: int = 1
    default_regret: float = 1e-6
    max_regret: float = 1e12
    missing_regret: float | None = None
    policy_seed: int = 0
    on_demand: bool = False
    origin: int = 1
    max_parallelism: int = 128

    @classmethod
    def from_definition(cls, definition: dict[str, Any]) -> Settings:
        """From a table's definition as JSON types."""
        budget, window = definition["budget"], definition["window"]
        if budget["kind"] != "event-time-step":
            raise ValueError(f"a {budget['kind']} budget depends on the clock: it has no model")
        if definition["policy"] == "regret-per-cost":
            raise ValueError("regret-per-cost depends on measured time: it has no model")
        return cls(
            policy=definition["policy"],
            updates_per_step=budget["updates_per_step"],
            step_ms=budget["step_ms"],
            initial_updates=budget.get("initial_updates", 0.0),
            window_points=window.get("points"),
            window_ms=window.get("duration_ms"),
            min_points=definition["min_points"],
            default_regret=definition["default_regret"],
            max_regret=definition["max_regret"],
            missing_regret=definition["missing_regret"],
            policy_seed=definition["policy_seed"],
            on_demand=definition["on_demand"] is not None,
            origin=definition["origin"],
            max_parallelism=definition["max_parallelism"],
        )


Points = tuple[tuple[int, Any], ...]
"""A window: (event time, value), oldest first."""

Function = Callable[[str, Points], Any]
"""The feature function: key and window in, value out; raises to fail."""


@dataclass(frozen=True)
class Choice:
    """One computation."""

    step_ms: int
    """End of the step in which it was chosen."""

    subtask: int
    key: str
    version: Version
    window: Points
    regret_removed: float
    """Sum of the errors on the version that it replaces."""

    value: Any
    """None when the function failed."""

    failure: str | None = None

    @property
    def event_time_ms(self) -> int:
        """Event time of the newest event in the window."""
        return self.window[-1][0]


@dataclass
class Counts:
    """What a run dropped, and what it used."""

    feedback_used: int = 0
    feedback_dropped: int = 0
    demands: int = 0
    demands_ignored: int = 0
    events_duplicate: int = 0
    failures: int = 0


@dataclass
class _Key:
    """Everything known of one key. ``pending`` holds the times of the events to be computed."""

    events: dict[tuple[int, int], Any] = field(default_factory=dict)
    waiting: list[Input] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    version: Version | None = None
    computed_through: float = -math.inf
    incorporated: int = 0
    regret: float = 0.0
    recent_error: float = 0.0
    queries: int = 0
    errors: int = 0
    first_step: int | None = None
    """Step of the first labelled feedback on the version."""

    first_errors: list[float] = field(default_factory=list)
    """Errors fed back in that step."""

    last_chosen_micros: int = 0
    demanded_at_ms: int | None = None
    failures_in_a_row: int = 0
    not_before_ms: float = -math.inf

    @property
    def is_known(self) -> bool:
        """Whether it has had an event, so that there is something to compute a value from."""
        return bool(self.pending) or self.incorporated > 0


@dataclass
class _Subtask:
    credit: float
    decided_ms: int | None = None


class ReferenceModel:
    """Takes events and feedback as they arrive, and time as it passes.

    Args:
        settings: the table.
        parallelism: subtasks of the job.
        function: the feature function.
    """

    def __init__(self, settings: Settings, parallelism: int, function: Function) -> None:
        self._settings = settings
        self._function = function
        self._keys: dict[str, _Key] = {}
        self._clock: dict[int, int] = {}
        self._subtasks = [
            _Subtask(settings.initial_updates / parallelism) for _ in range(parallelism)
        ]
        self.choices: list[Choice] = []
        """Every computation, in order within each subtask."""
        self.counts = Counts()

    @property
    def on_demand(self) -> bool:
        """Whether the table computes only what is asked for."""
        return self._settings.on_demand

    # What happens.

    def event(self, event: Event) -> None:
        """An event arrives."""
        key = self._keys.setdefault(event.key, _Key())
        identity = (event.timestamp_ms, event.id)
        if key.events.get(identity) == event.value:
            self.counts.events_duplicate += 1
            return
        key.events[identity] = event.value
        if self._is_late(event.key, event.timestamp_ms):
            self._check_still_kept(key, event)
            key.pending.append(event.timestamp_ms)
        else:
            key.waiting.append(event)

    def feedback(self, feedback: Feedback) -> None:
        """Feedback arrives."""
        time = feedback.timestamp_ms
        if time is None or self._is_late(feedback.key, time):
            self._apply(feedback)
        else:
            self._keys.setdefault(feedback.key, _Key()).waiting.append(feedback)

    def demand(self, demand: Demand) -> None:
        """A demand arrives; at a table that computes unasked it means nothing."""
        if not self._settings.on_demand:
            self.counts.demands_ignored += 1
            return
        time = demand.timestamp_ms
        if time is not None and not self._is_late(demand.key, time):
            self._keys.setdefault(demand.key, _Key()).waiting.append(demand)
            return
        decided = self._subtasks[self._subtask_of(demand.key)].decided_ms
        self._apply_demand(demand.key, 0 if decided is None else decided)

    def take(self, given: Input) -> None:
        """Whatever it is arrives."""
        match given:
            case Event():
                self.event(given)
            case Feedback():
                self.feedback(given)
            case Demand():
                self.demand(given)

    def advance(self, watermark_ms: int) -> list[Choice]:
        """Event time passes: every step that has ended is decided. Returns what was computed."""
        before = len(self.choices)
        for subtask in range(len(self._subtasks)):
            self._advance_subtask(subtask, watermark_ms)
        return self.choices[before:]

    def replay(self, inputs: Iterable[Input]) -> ReferenceModel:
        """Takes inputs of which none is late, in any order, and decides every step they reach."""
        newest = 0
        for given in inputs:
            self.take(given)
            newest = max(newest, given.timestamp_ms or 0)
        self.advance(self.step_end(newest))
        return self

    def rescale(self, parallelism: int) -> None:
        """The job is restored with another parallelism: its budget is divided anew."""
        credit = sum(subtask.credit for subtask in self._subtasks) / parallelism
        decided = [s.decided_ms for s in self._subtasks if s.decided_ms is not None]
        self._subtasks = [_Subtask(credit, max(decided, default=None)) for _ in range(parallelism)]

    # What is there in the end.

    def stored(self) -> dict[str, Choice]:
        """For each key with a value, the computation that made it."""
        return {choice.key: choice for choice in self.choices if choice.failure is None}

    def versions(self, key: str) -> list[Version]:
        """Every version that the key ever had, in order."""
        return [c.version for c in self.choices if c.key == key and c.failure is None]

    def pending_keys(self) -> set[str]:
        """Keys with data that no computation has taken."""
        return {name for name, key in self._keys.items() if key.pending}

    def step_end(self, time_ms: int) -> int:
        """End of the step that holds this time."""
        return math.ceil(time_ms / self._settings.step_ms) * self._settings.step_ms

    # A step.

    def _advance_subtask(self, subtask: int, watermark_ms: int) -> None:
        state = self._subtasks[subtask]
        if state.decided_ms is None:
            first = self._first_step_with_input(subtask)
            if first is None or first > watermark_ms:
                return
            state.decided_ms = first - self._settings.step_ms
        while state.decided_ms + self._settings.step_ms <= watermark_ms:
            state.decided_ms += self._settings.step_ms
            self._apply_waiting(subtask, state.decided_ms)
            self._spend_budget(subtask, state)

    def _first_step_with_input(self, subtask: int) -> int | None:
        times = [
            given.timestamp_ms
            for name in self._owned(subtask)
            for given in self._keys[name].waiting
            if given.timestamp_ms is not None
        ]
        return self.step_end(min(times)) if times else None

    def _apply_waiting(self, subtask: int, step_end_ms: int) -> None:
        for name in self._owned(subtask):
            key = self._keys[name]
            due = [g for g in key.waiting if (g.timestamp_ms or 0) <= step_end_ms]
            key.waiting = [g for g in key.waiting if (g.timestamp_ms or 0) > step_end_ms]
            for given in sorted(due, key=_order_of_application):
                match given:
                    case Event():
                        key.pending.append(given.timestamp_ms)
                    case Feedback():
                        self._apply(given)
                    case Demand():
                        assert given.timestamp_ms is not None
                        self._apply_demand(given.key, given.timestamp_ms)

    def _apply_demand(self, name: str, at_ms: int) -> None:
        key = self._keys.get(name)
        if key is None or not key.pending:
            self.counts.demands_ignored += 1
            return
        self.counts.demands += 1
        key.demanded_at_ms = min(at_ms, key.demanded_at_ms or at_ms)

    def _apply(self, feedback: Feedback) -> None:
        """Feedback counts when it is on the key's current version (RALF §2.4.2)."""
        key = self._keys.get(feedback.key)
        if key is None or not key.is_known or feedback.version != key.version:
            self.counts.feedback_dropped += 1
            return
        self.counts.feedback_used += 1
        key.queries += 1
        if feedback.error is None:
            return
        step = self._subtasks[self._subtask_of(feedback.key)].decided_ms
        if key.errors == 0:
            key.first_step = step
        if key.first_step == step:
            key.first_errors.append(feedback.error)
        key.errors += 1
        key.regret += feedback.error
        weight = max(RECENT_WEIGHT, 1 / key.errors)
        key.recent_error += weight * (feedback.error - key.recent_error)

    def _spend_budget(self, subtask: int, state: _Subtask) -> None:
        """At most C keys (RALF §2.3.3, eq. 2.8); what is not used piles up to one update only."""
        per_step = self._settings.updates_per_step / len(self._subtasks)
        state.credit = max(state.credit, min(state.credit + per_step, per_step + 1))
        assert state.decided_ms is not None
        without_window: set[str] = set()
        for _ in range(math.floor(state.credit + ROUNDING)):
            chosen = self._next_key(subtask, state.decided_ms, without_window)
            if chosen is None:
                return
            name, end = chosen
            self._compute(subtask, name, end, state.decided_ms)
            state.credit -= 1

    def _next_key(
        self, subtask: int, now_ms: int, without_window: set[str]
    ) -> tuple[str, int] | None:
        """The key that fires next, and the time of the newest event in its window."""
        while True:
            eligible = [
                name
                for name in self._owned(subtask)
                if self._keys[name].pending
                and self._keys[name].not_before_ms <= now_ms
                and (not self._settings.on_demand or self._keys[name].demanded_at_ms is not None)
                and name not in without_window
            ]
            if not eligible:
                return None
            name = min(eligible, key=lambda n: self._place(n, now_ms))
            end = self._window_end(self._keys[name], now_ms)
            if end is not None:
                return name, end
            without_window.add(name)

    def _window_end(self, key: _Key, now_ms: int) -> int | None:
        """Newest event of the next window; None while there are too few points for one."""
        known = sorted({time for time, _ in key.events if time <= now_ms})
        if self._settings.policy == "fifo":
            from_time = max(key.computed_through, min(key.pending))
            ends = [time for time in known if time >= from_time]
        else:
            ends = known[-1:]
        for end in ends:
            if len(self._window(key, end)) >= self._settings.min_points:
                return end
        return None

    def _window(self, key: _Key, end_ms: int) -> Points:
        points = [
            (time, key.events[time, identity])
            for time, identity in sorted(key.events)
            if time <= end_ms
        ]
        if self._settings.window_points is not None:
            return tuple(points[-self._settings.window_points :])
        assert self._settings.window_ms is not None
        return tuple((t, v) for t, v in points if t > end_ms - self._settings.window_ms)

    def _place(self, name: str, now_ms: int) -> tuple[float, int, bytes]:
        """Orders keys: the smallest fires first."""
        key = self._keys[name]
        last_chosen_ms = key.last_chosen_micros // 1000
        return -self._priority(name, key, now_ms), last_chosen_ms, _utf16(name)

    def _priority(self, name: str, key: _Key, now_ms: int) -> float:
        settings = self._settings
        if settings.on_demand:
            assert key.demanded_at_ms is not None
            return -key.demanded_at_ms
        match settings.policy:
            case "round-robin":  # the least recently chosen (RALF §2.5.3)
                return -(key.last_chosen_micros // 1000)
            case "fifo":  # the oldest event
                return -min(key.pending)
            case "random":
                return lot(settings.policy_seed, name, now_ms)
            case "minimum-past":  # the one that has taken in least
                return -key.incorporated
            case "max-pending":
                return len(key.pending)
            case "query-proportional":
                if key.version is None and settings.missing_regret is None:
                    return math.inf
                return key.queries + self._of_missing(key)
        if key.version is None and settings.missing_regret is None:  # nothing to serve
            return settings.max_regret
        return min(settings.max_regret, self._regret(key))

    def _regret(self, key: _Key) -> float:
        settings = self._settings
        if settings.policy == "regret-proportional":
            # The cumulative regret since the last update (RALF §2.3.3, eq. 2.9), without eq. 2.11's
            # baseline, with a default for each pending event.
            return key.regret + settings.default_regret * len(key.pending) + self._of_missing(key)
        if settings.policy == "rising-regret":
            # The same, more for errors that grow than for errors that fade.
            base = key.regret + settings.default_regret * len(key.pending) + self._of_missing(key)
            rise = math.sqrt(key.recent_error * key.errors / key.regret) if key.regret > 0 else 1.0
            return base * rise
        assert settings.policy == "regret-over-baseline", settings.policy
        if key.version is None:
            return key.regret + self._of_missing(key)
        if not key.first_errors:
            return 0.0
        # Eq. 2.11: what each error is above the mean one of the first step after the update.
        first = 0.0
        for error in key.first_errors:
            first += error
        count = len(key.first_errors)
        return (key.regret - first) - (key.errors - count) * (first / count)

    def _of_missing(self, key: _Key) -> float:
        missing = self._settings.missing_regret
        return 0.0 if missing is None or key.version is not None else missing

    def _compute(self, subtask: int, name: str, end_ms: int, now_ms: int) -> None:
        key = self._keys[name]
        version = self._next_version(name, now_ms)
        window = self._window(key, end_ms)
        before = len(key.pending)
        if self._settings.policy == "fifo":
            key.pending = [time for time in key.pending if time > end_ms]
        else:
            key.pending = []
        key.incorporated += before - len(key.pending)
        key.last_chosen_micros = version.timestamp_micros
        key.demanded_at_ms = None
        value, failure = None, None
        try:
            value = self._function(name, window)
        except Exception as e:
            failure = repr(e)
        self.choices.append(
            Choice(now_ms, subtask, name, version, window, key.regret, value, failure)
        )
        if failure is None:
            key.version, key.computed_through = version, end_ms
            key.regret, key.queries, key.errors, key.first_errors = 0.0, 0, 0, []
            key.recent_error = 0.0
            key.failures_in_a_row, key.not_before_ms = 0, -math.inf
        else:
            self.counts.failures += 1
            wait_steps = min(2**key.failures_in_a_row, MAX_BACKOFF_STEPS)
            key.not_before_ms = now_ms + wait_steps * self._settings.step_ms
            key.failures_in_a_row += 1

    def _next_version(self, name: str, now_ms: int) -> Version:
        """A hybrid logical clock for each key group, whose physical part is event time."""
        group = key_group(name, self._settings.max_parallelism)
        self._clock[group] = max(self._clock.get(group, 0) + 1, now_ms * 1000)
        return Version(self._clock[group], self._settings.origin)

    # Where and when.

    def _owned(self, subtask: int) -> list[str]:
        return [name for name in self._keys if self._subtask_of(name) == subtask]

    def _subtask_of(self, name: str) -> int:
        most = self._settings.max_parallelism
        return owner(key_group(name, most), most, len(self._subtasks))

    def _is_late(self, name: str, time_ms: int) -> bool:
        decided = self._subtasks[self._subtask_of(name)].decided_ms
        return decided is not None and self.step_end(time_ms) <= decided

    def _check_still_kept(self, key: _Key, event: Event) -> None:
        """How long the job remembers what no window needs is its own business: no prediction."""
        newest = max(time for time, _ in key.events)
        if event.timestamp_ms not in [time for time, _ in self._window(key, newest)]:
            raise ValueError(
                f"{event} is late and outside the newest window, so that what becomes of it is not "
                "defined; the model can't predict it"
            )


def _utf16(text: str) -> bytes:
    """Sorts as Java sorts strings: by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


def _order_of_application(given: Input) -> tuple[int, float, tuple[int, int], float]:
    """Sums of errors must not depend on the order of arrival, down to the last bit."""
    time = given.timestamp_ms if given.timestamp_ms is not None else -math.inf
    match given:
        case Event():
            return 0, time, (0, 0), 0
        case Feedback():
            error = math.inf if given.error is None else given.error
            return 1, time, given.version or (0, 0), error
        case Demand():
            return 2, time, (0, 0), 0
