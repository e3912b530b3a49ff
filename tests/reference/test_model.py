"""The model against timelines that were worked by hand, and properties that must always hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from freshet.table import POLICIES
from tests.reference.keygroups import key_group, owner
from tests.reference.lots import lot
from tests.reference.model import (
    Choice,
    Demand,
    Event,
    Feedback,
    Input,
    Points,
    ReferenceModel,
    Settings,
    Version,
)

STEP = 10


def settings(**changes: Any) -> Settings:
    """One update a step of 10 ms, windows of two points."""
    values: dict[str, Any] = {
        "policy": "regret-proportional",
        "updates_per_step": 1.0,
        "step_ms": STEP,
        "window_points": 2,
    }
    return Settings(**(values | changes))


def values_of(key: str, window: Points) -> list[Any]:
    """A function whose value tells its window."""
    return [value for _, value in window]


def brief(choices: Sequence[Choice]) -> list[tuple[int, str, Any]]:
    """(step, key, value) of each choice."""
    return [(c.step_ms, c.key, c.value) for c in choices]


def failing_on(*times: int) -> Any:
    """A function that fails when the newest event has one of these times."""

    def function(key: str, window: Points) -> Any:
        if window[-1][0] in times:
            raise ValueError(f"bad event at {window[-1][0]}")
        return values_of(key, window)

    return function


# Timelines.


def test_the_timeline_in_the_models_docstring() -> None:
    model = ReferenceModel(settings(), 1, values_of)
    model.event(Event("a", 3, 1))
    model.event(Event("b", 4, 2))
    assert brief(model.advance(10)) == [(10, "a", [1])]
    model.event(Event("a", 12, 5))
    model.feedback(Feedback("b", Version(10_000, 1), 9.0, 13))
    assert brief(model.advance(20)) == [(20, "b", [2])]
    assert brief(model.advance(30)) == [(30, "a", [1, 5])]
    assert [c.version for c in model.choices] == [(10_000, 1), (20_000, 1), (30_000, 1)]
    assert model.counts.feedback_dropped == 1
    assert model.counts.feedback_used == 0
    assert model.pending_keys() == set()


def test_regret_decides_and_goes_with_the_value_that_caused_it() -> None:
    model = ReferenceModel(settings(updates_per_step=2.0), 1, values_of)
    for key in "ab":
        model.event(Event(key, 1, 0))
    model.advance(10)
    version = {c.key: c.version for c in model.choices}
    for key in "ab":
        model.event(Event(key, 11, 1))
    model.feedback(Feedback("b", version["b"], 0.25, 12))
    model.feedback(Feedback("b", version["b"], 0.5, 15))
    model.feedback(Feedback("a", version["a"], 0.7, 13))
    model.feedback(Feedback("a", version["a"], None, 14))
    model.advance(20)
    assert [(c.key, c.regret_removed) for c in model.choices[2:]] == [("b", 0.75), ("a", 0.7)]
    # Late by now, and on versions that are no longer served.
    model.feedback(Feedback("a", version["a"], 5.0, 16))
    assert (model.counts.feedback_used, model.counts.feedback_dropped) == (4, 1)


def test_default_regret_counts_pending_events_and_max_regret_caps() -> None:
    model = ReferenceModel(
        settings(default_regret=1.0, max_regret=3.0, updates_per_step=3.0), 1, values_of
    )
    for key in "abc":
        model.event(Event(key, 1, 0))
    model.advance(10)
    for key, count in (("a", 2), ("b", 4), ("c", 5)):  # regrets 2, 3 and 3: b before c by name
        for time in range(count):
            model.event(Event(key, 11 + time, 0))
    model.event(Event("d", 15, 0))  # no value: 3 as well, and d was never chosen
    assert [c.key for c in model.advance(30)] == ["d", "b", "c", "a"]
    assert [c.step_ms for c in model.choices[3:]] == [20, 20, 20, 30]


def test_round_robin_takes_the_least_recently_chosen() -> None:
    model = ReferenceModel(settings(policy="round-robin"), 1, values_of)
    for step in range(6):
        for key in "abc":
            model.event(Event(key, step * STEP + 1, step))
        model.advance((step + 1) * STEP)
    assert [c.key for c in model.choices] == ["a", "b", "c", "a", "b", "c"]
    assert model.choices[3].value == [2, 3]


def test_equals_take_turns_and_then_go_by_name() -> None:
    model = ReferenceModel(settings(policy="query-proportional"), 1, values_of)
    for step in range(6):
        for key in "cab":
            model.event(Event(key, step * STEP + 1, step))
        model.advance((step + 1) * STEP)
    assert [c.key for c in model.choices] == ["a", "b", "c", "a", "b", "c"]


def test_query_proportional_counts_queries_since_the_update() -> None:
    model = ReferenceModel(settings(policy="query-proportional"), 1, values_of)
    first = _first_versions(model, "abc", 30)
    for key, errors in (("a", [9.0]), ("b", [None, None]), ("c", [0.1, 0.1, None])):
        model.event(Event(key, 31, 1))
        for error in errors:
            model.feedback(Feedback(key, first[key], error, 32))
    assert [c.key for c in model.advance(60)] == ["c", "b", "a"]


def test_minimum_past_prefers_what_has_taken_in_least() -> None:
    model = ReferenceModel(settings(policy="minimum-past", updates_per_step=2.0), 1, values_of)
    for key, count in (("a", 3), ("b", 2)):
        for time in range(count):
            model.event(Event(key, 1 + time, 0))
    model.advance(10)
    for key, time in (("a", 11), ("b", 12), ("b", 13), ("c", 14)):
        model.event(Event(key, time, 1))
    assert [c.key for c in model.advance(30)[-3:]] == ["c", "b", "a"]
    for key in "abc":  # 4, 4 and 1
        model.event(Event(key, 31, 2))
    assert [c.key for c in model.advance(50)] == ["c", "b", "a"]


def test_max_pending_prefers_the_most_new_events() -> None:
    model = ReferenceModel(settings(policy="max-pending"), 1, values_of)
    for key, count in (("a", 1), ("b", 3), ("c", 2)):
        for time in range(count):
            model.event(Event(key, 1 + time, 0))
    assert [c.key for c in model.advance(30)] == ["b", "c", "a"]


def test_regret_over_baseline_subtracts_the_first_steps_mean_error() -> None:
    model = ReferenceModel(settings(policy="regret-over-baseline"), 1, values_of)
    first = _first_versions(model, "abcd", 40)
    # In the first step with feedback after the update: means 5, 1 and 2. Nothing on d.
    for key, errors in (("a", [4.0, 6.0]), ("b", [1.0]), ("c", [2.0])):
        for error in errors:
            model.feedback(Feedback(key, first[key], error, 41))
    model.advance(50)
    # Later: a is 1 below its mean, b 1.5 above it, c 2.5 in two queries; unlabelled counts nothing.
    for key, errors in (("a", [4.0]), ("b", [2.5, None]), ("c", [3.0, 3.5])):
        model.event(Event(key, 51, 1))
        for error in errors:
            model.feedback(Feedback(key, first[key], error, 52))
    model.event(Event("d", 51, 1))
    assert [c.key for c in model.advance(90)] == ["c", "b", "d", "a"]
    assert [c.regret_removed for c in model.choices[4:]] == [8.5, 3.5, 0.0, 14.0]


def test_a_missing_value_has_the_regret_that_the_table_says() -> None:
    for missing, expected in ((None, ["b", "a"]), (0.5, ["a", "b"]), (2.0, ["b", "a"])):
        model = ReferenceModel(settings(missing_regret=missing), 1, values_of)
        first = _first_versions(model, "a", 10)
        model.event(Event("a", 11, 1))
        model.feedback(Feedback("a", first["a"], 1.0, 12))
        model.event(Event("b", 11, 1))
        assert [c.key for c in model.advance(30)] == expected, missing


def test_feedback_on_a_missing_value_counts_until_there_is_one() -> None:
    model = ReferenceModel(settings(missing_regret=0.0), 1, values_of)
    # Of a before its first event in the step, of b in a step before its first event.
    model.feedback(Feedback("a", None, 2.0, 1))
    model.feedback(Feedback("b", None, 9.0, 2))
    for key, time in (("a", 3), ("c", 3), ("b", 13)):
        model.event(Event(key, time, 0))
    assert [(c.key, c.regret_removed) for c in model.advance(10)] == [("a", 2.0)]
    for key, error in (("a", 70.0), ("c", 1.0), ("b", 2.0)):
        model.feedback(Feedback(key, None, error, 15))
    model.event(Event("a", 16, 1))
    model.advance(40)
    assert [(c.key, c.regret_removed) for c in model.choices[1:]] == [
        ("b", 2.0),
        ("c", 1.0),
        ("a", 0.0),
    ]
    assert (model.counts.feedback_used, model.counts.feedback_dropped) == (3, 2)


def test_on_demand_computes_what_is_asked_for_in_the_order_of_asking() -> None:
    model = ReferenceModel(settings(on_demand=True), 1, values_of)
    for key, time in (("a", 5), ("b", 1), ("early", 2), ("late", 12)):
        model.demand(Demand(key, time))
    for key, time in (("a", 7), ("b", 8), ("unasked", 9), ("early", 13), ("late", 14)):
        model.event(Event(key, time, 0))
    assert brief(model.advance(50)) == [(10, "b", [0]), (20, "a", [0]), (30, "late", [0])]
    assert (model.counts.demands, model.counts.demands_ignored) == (3, 1)
    model.event(Event("b", 51, 1))
    assert model.advance(60) == []
    model.demand(Demand("b", None))
    model.demand(Demand("a", None))
    assert brief(model.advance(80)) == [(70, "b", [0, 1])]
    assert (model.counts.demands, model.counts.demands_ignored) == (4, 2)
    unasked = ReferenceModel(settings(), 1, values_of)
    unasked.demand(Demand("a", 1))
    assert unasked.counts.demands_ignored == 1


def test_random_draws_every_pending_key_as_often_as_another() -> None:
    counts = dict.fromkeys("abcd", 0)
    again = 0
    model = ReferenceModel(settings(policy="random", policy_seed=3), 1, values_of)
    for step in range(1_000):
        for key in counts:
            model.event(Event(key, step * STEP + 1, 0))
        (choice,) = model.advance((step + 1) * STEP)
        counts[choice.key] += 1
        again += step > 0 and model.choices[-2].key == choice.key
    # 250 each, and as many drawn twice running; the standard deviation is 13.7.
    assert all(180 < count < 320 for count in [*counts.values(), again]), (counts, again)
    other = ReferenceModel(settings(policy="random", policy_seed=4), 1, values_of)
    for step in range(20):
        for key in counts:
            other.event(Event(key, step * STEP + 1, 0))
        other.advance((step + 1) * STEP)
    assert [c.key for c in other.choices] != [c.key for c in model.choices[:20]]


def test_lots_are_those_of_the_job() -> None:
    # The same numbers are in RandomPolicyTest on the Java side.
    assert lot(0, "vm-17", 0) == 0.8983108877707906
    assert lot(0, "vm-17", 60_000) == 0.9368078731815104
    assert lot(42, "vm-17", 60_000) == 0.6736852342998204
    assert lot(-1, "clé 𝛑 0", 1_479_081_600_000) == 0.853807161004652


def _first_versions(model: ReferenceModel, keys: str, through_ms: int) -> dict[str, Version]:
    """One event of each key, all decided, and the versions that came of it."""
    for key in keys:
        model.event(Event(key, 1, 0))
    return {c.key: c.version for c in model.advance(through_ms)}


def test_fifo_computes_every_event_in_order_with_the_window_as_of_it() -> None:
    model = ReferenceModel(settings(policy="fifo", updates_per_step=2.0), 1, values_of)
    for time, key in ((1, "a"), (2, "b"), (3, "a"), (4, "a"), (5, "b")):
        model.event(Event(key, time, time))
    assert brief(model.advance(30)) == [
        (10, "a", [1]),
        (10, "b", [2]),
        (20, "a", [1, 3]),
        (20, "a", [3, 4]),
        (30, "b", [2, 5]),
    ]


def test_a_fraction_of_an_update_carries_over() -> None:
    model = ReferenceModel(settings(policy="round-robin", updates_per_step=1.29), 1, values_of)
    chosen = []
    for step in range(8):
        for key in "abcdef":
            model.event(Event(key, step * STEP + 1, step))
        chosen.append(len(model.advance((step + 1) * STEP)))
    # 1.29, 1.58, 1.87, 2.16, 1.45, 1.74, 2.03, 1.32
    assert chosen == [1, 1, 1, 2, 1, 1, 2, 1]


def test_ten_tenths_are_one_update_and_it_is_divided_among_subtasks() -> None:
    a = "a"
    other = next(k for k in "bcdefg" if _subtask(k, 2) != _subtask(a, 2))
    model = ReferenceModel(settings(updates_per_step=0.2), 2, values_of)
    for step in range(25):
        for key in (a, other):
            model.event(Event(key, step * STEP + 1, step))
        model.advance((step + 1) * STEP)
    assert sorted(brief(model.choices)) == sorted(
        (step, key, [step // STEP - 2, step // STEP - 1])
        for step in (100, 200)
        for key in (a, other)
    )


def test_unused_budget_piles_up_to_one_update_only() -> None:
    model = ReferenceModel(settings(), 1, values_of)
    model.event(Event("a", 1, 0))
    model.advance(200)
    for key in "abcd":
        model.event(Event(key, 201, 1))
    assert [len(model.advance(time)) for time in (210, 220, 230)] == [2, 1, 1]


def test_initial_updates_are_granted_once() -> None:
    model = ReferenceModel(settings(initial_updates=3.0), 1, values_of)
    for step in range(3):
        for key in "abcde":
            model.event(Event(key, step * STEP + 1, step))
    # 3 is above the cap of 2, so it is kept and not added to.
    assert [len(model.advance(time)) for time in (10, 20, 30)] == [3, 1, 1]


def test_too_few_points_make_no_choice_and_spend_no_budget() -> None:
    model = ReferenceModel(settings(min_points=2, default_regret=1.0), 1, values_of)
    model.event(Event("a", 1, 1))
    model.event(Event("b", 2, 2))
    model.event(Event("b", 3, 3))
    assert brief(model.advance(10)) == [(10, "b", [2, 3])]
    assert model.pending_keys() == {"a"}
    model.event(Event("a", 11, 4))
    assert brief(model.advance(20)) == [(20, "a", [1, 4])]


def test_fifo_passes_over_events_with_too_few_points() -> None:
    model = ReferenceModel(
        settings(policy="fifo", min_points=2, updates_per_step=5.0), 1, values_of
    )
    for time in (1, 2, 3):
        model.event(Event("a", time, time))
    assert brief(model.advance(10)) == [(10, "a", [1, 2]), (10, "a", [2, 3])]


def test_a_window_of_time_reaches_back_from_its_newest_event() -> None:
    model = ReferenceModel(settings(window_points=None, window_ms=15), 1, values_of)
    for time in (1, 6, 20):
        model.event(Event("a", time, time))
    assert brief(model.advance(10)) == [(10, "a", [1, 6])]
    # (20 - 15, 20]: 6 is inside, and stays so however late the step is decided.
    assert brief(model.advance(500)) == [(20, "a", [6, 20])]


def test_a_failure_keeps_the_value_and_its_regret_and_backs_off_doubling() -> None:
    model = ReferenceModel(settings(), 1, failing_on(11, 21, 31, 41, 51))
    model.event(Event("a", 1, 0))
    model.advance(10)
    good = model.choices[0].version
    model.feedback(Feedback("a", good, 2.0, 11))
    for step in range(1, 9):
        model.event(Event("a", step * STEP + 1, step))
        model.advance((step + 1) * STEP)
    # Fails at 20, may again 10 later: fails at 30, may again 20 later: fails at 50, 40 later: 90.
    tried = [(c.step_ms, c.failure is not None, c.regret_removed) for c in model.choices[1:]]
    assert tried == [(20, True, 2.0), (30, True, 2.0), (50, True, 2.0), (90, False, 2.0)]
    assert model.versions("a") == [good, (90_000, 1)]
    assert model.counts.failures == 3


def test_the_data_of_a_failure_is_not_pending_again() -> None:
    model = ReferenceModel(settings(), 1, failing_on(1))
    model.event(Event("a", 1, 0))
    assert len(model.advance(500)) == 1
    model.event(Event("a", 501, 7))
    assert brief(model.advance(510)) == [(510, "a", [0, 7])]


def test_versions_increase_within_a_key_group() -> None:
    one_group = settings(updates_per_step=3.0, max_parallelism=1)
    model = ReferenceModel(one_group, 1, values_of)
    for key in "abc":
        model.event(Event(key, 1, 0))
    model.advance(10)
    assert [c.version for c in model.choices] == [(10_000, 1), (10_001, 1), (10_002, 1)]


def test_duplicates_change_nothing_and_corrections_count() -> None:
    model = ReferenceModel(settings(), 1, values_of)
    for value in (1, 1, 1):
        model.event(Event("a", 1, value))
    model.event(Event("a", 1, 2, id=9))
    assert brief(model.advance(10)) == [(10, "a", [1, 2])]
    model.event(Event("a", 1, 1))
    assert model.advance(20) == []
    model.event(Event("a", 1, 5))
    assert brief(model.advance(30)) == [(30, "a", [5, 2])]
    assert model.counts.events_duplicate == 3


def test_late_events_count_from_their_arrival() -> None:
    model = ReferenceModel(settings(), 1, values_of)
    model.event(Event("a", 5, 5))
    model.event(Event("a", 15, 15))
    model.advance(20)
    model.event(Event("a", 7, 7))
    assert brief(model.advance(30)) == [(30, "a", [7, 15])]
    with pytest.raises(ValueError, match="can't predict"):
        model.event(Event("a", 2, 2))


def test_late_fifo_events_make_one_more_computation_as_of_the_newest() -> None:
    model = ReferenceModel(settings(policy="fifo", updates_per_step=3.0), 1, values_of)
    model.event(Event("a", 5, 5))
    model.event(Event("a", 15, 15))
    model.advance(20)
    model.event(Event("a", 12, 12))
    assert brief(model.advance(30)) == [(30, "a", [12, 15])]


def test_feedback_without_a_time_counts_at_once() -> None:
    model = ReferenceModel(settings(), 1, values_of)
    model.event(Event("a", 1, 0))
    model.feedback(Feedback("a", Version(10_000, 1), 1.0, None))
    model.advance(10)
    model.feedback(Feedback("a", Version(10_000, 1), 1.0, None))
    model.event(Event("a", 11, 0))
    model.advance(20)
    assert model.choices[-1].regret_removed == 1.0
    assert (model.counts.feedback_used, model.counts.feedback_dropped) == (1, 1)


def test_ties_are_by_utf_16_code_unit_as_in_java() -> None:
    model = ReferenceModel(settings(updates_per_step=3.0), 1, values_of)
    for key in ("￿", "😀", "z"):  # by code point, 😀 would come last
        model.event(Event(key, 1, 0))
    assert [c.key for c in model.advance(10)] == ["z", "😀", "￿"]


def test_a_rescaled_job_goes_on_with_the_same_steps_and_divides_what_is_left() -> None:
    model = ReferenceModel(settings(updates_per_step=2.0), 2, values_of)
    for key in "abcdefgh":
        model.event(Event(key, 1, 0))
    model.advance(10)
    assert sorted(c.subtask for c in model.choices) == [0, 1]
    model.rescale(1)
    model.advance(20)
    assert [c.subtask for c in model.choices[2:]] == [0, 0]
    assert {c.step_ms for c in model.choices[2:]} == {20}
    model.rescale(2)
    for key in "abcdefgh":
        model.event(Event(key, 21, 0))
    model.advance(30)
    assert sorted(c.subtask for c in model.choices[4:]) == [0, 1]


def test_a_budget_on_the_wall_clock_has_no_model() -> None:
    with pytest.raises(ValueError, match="rate budget"):
        Settings.from_definition({"budget": {"kind": "rate"}, "window": {}})


def test_a_policy_on_measured_time_has_no_model() -> None:
    budget = {"kind": "event-time-step"}
    with pytest.raises(ValueError, match="measured time"):
        Settings.from_definition({"budget": budget, "window": {}, "policy": "regret-per-cost"})


# Properties.


def _subtask(key: str, parallelism: int) -> int:
    return owner(key_group(key, 128), 128, parallelism)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Settings, int, list[Input]]:
    """A table, a parallelism, and inputs of which some repeat; feedback on versions that may be."""
    table = settings(
        policy=draw(st.sampled_from([name for name in POLICIES if name != "regret-per-cost"])),
        updates_per_step=draw(st.floats(0.5, 6)),
        window_points=draw(st.integers(1, 5)),
        min_points=1,
        default_regret=0.5,
        missing_regret=draw(st.sampled_from([None, 0.0])),
        on_demand=draw(st.sampled_from([False, False, True])),
    )
    keys = st.sampled_from([f"key-{i}" for i in range(8)])
    times = st.integers(1, 300)
    events = draw(
        st.lists(
            st.builds(Event, key=keys, timestamp_ms=times, value=st.just(1)),
            min_size=1,
            max_size=60,
        )
    )
    versions = st.one_of(
        st.none(), st.builds(lambda step: Version(step * STEP * 1000, 1), st.integers(1, 30))
    )
    errors = st.one_of(st.none(), st.floats(0, 1e6))
    feedback = draw(st.lists(st.builds(Feedback, keys, versions, errors, times), max_size=60))
    demands = draw(st.lists(st.builds(Demand, keys, times), max_size=30))
    return table, draw(st.integers(1, 3)), [*events, *events[::3], *feedback, *demands]


@hypothesis_settings(deadline=None, max_examples=60)
@given(workloads(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(
    workload: tuple[Settings, int, list[Input]], rng: random.Random
) -> None:
    table, parallelism, inputs = workload
    first = ReferenceModel(table, parallelism, values_of).replay(inputs)
    shuffled = list(inputs)
    rng.shuffle(shuffled)
    assert ReferenceModel(table, parallelism, values_of).replay(shuffled).choices == first.choices


@hypothesis_settings(deadline=None, max_examples=60)
@given(workloads())
def test_every_choice_keeps_the_rules(
    workload: tuple[Settings, int, list[Input]],
) -> None:
    table, parallelism, inputs = workload
    model = ReferenceModel(table, parallelism, values_of).replay(inputs)
    model.advance(5_000)
    newest = {key: max(e.timestamp_ms for e in inputs if isinstance(e, Event) and e.key == key)
              for key in {e.key for e in inputs if isinstance(e, Event)}}  # fmt: skip
    computed = {k: c.event_time_ms for k, c in model.stored().items()}
    if table.on_demand:
        asked = {demand.key for demand in inputs if isinstance(demand, Demand)}
        assert computed.keys() <= asked
    else:
        assert model.pending_keys() == set()
        assert computed == newest
    last: dict[int, int] = {}
    for choice in model.choices:
        assert choice.event_time_ms <= choice.step_ms
        assert choice.subtask == _subtask(choice.key, parallelism)
        group = key_group(choice.key, 128)
        assert choice.version.timestamp_micros > last.get(group, 0)
        assert choice.version.timestamp_micros >= choice.step_ms * 1000
        last[group] = choice.version.timestamp_micros
    for subtask in range(parallelism):
        steps = {c.step_ms for c in model.choices if c.subtask == subtask}
        share = table.updates_per_step / parallelism
        for begin in steps:
            count = sum(
                begin <= c.step_ms < begin + 5 * STEP for c in model.choices if c.subtask == subtask
            )
            assert count <= 5 * share + 1 + 1e-6
