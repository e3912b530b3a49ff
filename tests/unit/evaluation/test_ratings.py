"""The workload of ratings: its halves, its predictions, its files, and what policies make of it.

Method: made-up ratings of few users; predictions are compared with those of the shipped function.
"""

from __future__ import annotations

import gc
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.errors import ConfigError
from freshet.evaluation.queries import Queries
from freshet.evaluation.ratings import RATING_MS, Ratings, RatingsWorkload, load_ratings
from freshet.evaluation.simulation import POLICIES, Simulation
from freshet.evaluation.variants import NONE, UNLIMITED, Arm, Variant
from freshet.evaluation.workload import Features, computed_by_warm_up
from freshet.evaluation.workloads import load_workload
from freshet.functions import ALSUserEmbedding
from freshet.functions.als_training import train_als
from freshet.replay import ReplayError
from freshet.table.loading import table_from_mapping
from tests.unit.evaluation.made_up import ratings

BOUNDS = [Arm(Variant(UNLIMITED), float("inf")), Arm(Variant(NONE), 0.0)]

REAL_RATINGS = "FRESHET_TEST_RATINGS"
"""Variable with the path of MovieLens's ratings as a CSV, for the test that needs real ones."""


def workload(data: Ratings | None = None, **options: Any) -> RatingsWorkload:
    """Ten ratings a step and three dimensions, unless told otherwise."""
    return RatingsWorkload(
        ratings() if data is None else data, **{"ratings_per_step": 10, "dimensions": 3, **options}
    )


def features_at(replayed: RatingsWorkload, time_ms: int) -> Features:
    """The features of all users as of a time."""
    values = np.full((len(replayed.keys), replayed.dimension()), np.nan, np.float32)
    times = np.full(len(replayed.keys), -1)
    for key in range(len(replayed.keys)):
        window = replayed.window(key, time_ms)
        if window is not None:
            values[key], times[key] = replayed.function().compute(window), window.event_time
    return Features(values, times)


# The data.


def test_ratings_are_sorted_by_time_and_ties_keep_their_order(tmp_path: Path) -> None:
    text = "userId,movieId,rating,timestamp\n7,m,3,30\n8,n,4.5,10.5\n7,n,1,10.5\n\n9,m,2,20\n"
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    loaded = load_ratings(str(path))
    rows = zip(loaded.user.tolist(), loaded.movie.tolist(), loaded.rating.tolist(), strict=True)
    named = [(loaded.users[user], loaded.movies[movie], stars) for user, movie, stars in rows]
    assert named == [("8", "n", 4.5), ("7", "n", 1.0), ("9", "m", 2.0), ("7", "m", 3.0)]


def test_headings_are_optional_and_times_may_be_dates(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("a,x,1,2024-05-02T00:00Z\nb,x,2,2024-05-01\n")
    loaded = load_ratings(str(path))
    assert [loaded.users[user] for user in loaded.user] == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u,m,r,t\n1,2,3\n", r"line 2: it has 3 field\(s\); a line is user_id,movie_id"),
        ("1,2,good,4\n1,2,good,4\n", "line 2: could not convert"),
        ("1,2,nan,4\n", "line 1: the rating is nan"),
        ("1,2,3,soon\n", "line 1: 'soon' is no time"),
        ("1,,3,4\n", "line 1: user or movie is empty"),
        ('"1,2,3,4\n' + "x" * 200_000, "is no CSV"),
    ],
)
def test_what_is_no_rating_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    with pytest.raises(ReplayError, match=reason):
        load_ratings(str(path))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"none\.csv can't be read"):
        load_ratings(str(tmp_path / "none.csv"))


# The halves.


@given(st.integers(25, 300), st.integers(0, 1000), st.integers(1, 12))
def test_the_halves_are_the_warm_up_and_the_steps(count: int, seed: int, per_step: int) -> None:
    data = ratings(count, seed)
    replayed = workload(data, ratings_per_step=per_step)
    half = count // 2
    end_ms = replayed.warm_up_end_ms()
    assert end_ms % replayed.step_ms == 0
    warm_up = replayed.warm_up()
    # All in one step, so that each user is computed once; in each user's order, all times differ.
    assert (np.diff(warm_up.timestamps) >= 0).all() and warm_up.timestamps[-1] == end_ms
    assert warm_up.timestamps[0] > end_ms - replayed.step_ms
    for user in range(len(replayed.keys)):
        mine = warm_up.series == user
        expected = np.flatnonzero(data.user[:half] == user)
        assert (np.diff(warm_up.timestamps[mine]) > 0).all()
        movies = [warm_up.values[i][0] for i in np.flatnonzero(mine)]
        assert movies == data.movie[expected].tolist()
    assert replayed.steps == (count - half) // per_step
    for index in range(replayed.steps):
        step = replayed.step(index)
        first = half + index * per_step
        assert step.begin_ms == end_ms + index * replayed.step_ms
        assert step.end_ms == step.begin_ms + replayed.step_ms
        expected_times = step.begin_ms + RATING_MS * np.arange(1, per_step + 1)
        assert step.times_ms.tolist() == expected_times.tolist()
        assert step.events.timestamps.tolist() == step.times_ms.tolist()
        assert step.events.series.tolist() == step.keys.tolist()
        assert step.keys.tolist() == data.user[first : first + per_step].tolist()
        stars = [value[1] for value in step.events.values]
        assert stars == data.rating[first : first + per_step].tolist()


def test_a_window_is_all_ratings_of_the_user_up_to_a_time() -> None:
    data = ratings()
    replayed = workload(data)
    for index in (-1, 0, 7, replayed.steps - 1):
        known = 200 + (index + 1) * 10
        for user in range(len(replayed.keys)):
            window = replayed.window(user, replayed.step(index).end_ms)
            mine = np.flatnonzero(data.user[:known] == user)
            if window is None:
                assert not len(mine)
                continue
            expected = np.column_stack((data.movie[mine], data.rating[mine]))
            assert np.array_equal(window.values, expected)
            assert (np.diff(window.timestamps) > 0).all()
            assert window.event_time == window.timestamps[-1] <= replayed.step(index).end_ms
    assert replayed.definition()["window"]["points"] == np.bincount(data.user).max()


def test_users_of_the_first_half_are_computed_by_the_warm_up() -> None:
    data = ratings()
    computed = computed_by_warm_up(workload(data))
    assert computed.tolist() == [user in data.user[:200] for user in range(12)]
    assert not computed.all()


def test_steps_may_be_fewer() -> None:
    assert workload(steps=3).steps == 3
    assert workload(steps=300).steps == 20


# The predictions.


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("cold_start", ["mean", "zero"])
def test_errors_are_those_of_the_shipped_prediction(biases: bool, cold_start: str) -> None:
    data = ratings()
    replayed = workload(data, biases=biases, cold_start=cold_start, clip=False, seed=3)
    model = train_als(
        data.user[:200], data.movie[:200], data.rating[:200], 3, ridge=2.0, seed=3, biases=biases
    ).items
    default = model.mean_user if cold_start == "mean" else np.zeros(3)
    strangers = 0
    for index in range(replayed.steps):
        step = replayed.step(index)
        features = features_at(replayed, step.begin_ms)
        errors = replayed.errors(step, features)
        for query, (user, (movie, stars)) in enumerate(
            zip(step.keys.tolist(), step.events.values, strict=True)
        ):
            vector = features.values[user] if features.present[user] else default
            if movie in model.ids:
                predicted = ALSUserEmbedding.predict(vector, model, [movie])[0]
            else:
                strangers += 1
                predicted = data.rating[:200].mean() + (vector[-1] if biases else 0)
            assert errors[query] == pytest.approx((predicted - stars) ** 2, rel=1e-5, abs=1e-9)
    assert strangers > 0


def test_clipped_predictions_are_within_the_scale() -> None:
    free, clipped = (workload(ridge=1e-6, clip=clip) for clip in (False, True))
    step = free.step(19)
    huge = Features(np.full((12, 3), 1e4, np.float32), np.full(12, step.begin_ms))
    assert free.errors(step, huge).max() > 1e4
    assert clipped.errors(step, huge).max() <= (5 - 0.5) ** 2


def test_a_new_user_is_predicted_with_the_default_then_with_a_vector() -> None:
    data = ratings()
    new = int(np.setdiff1d(data.user[200:], data.user[:200])[0])
    first = int(np.flatnonzero(data.user == new)[0])
    replayed = workload(data)
    before = replayed.step((first - 200) // 10)
    assert new in before.keys and replayed.window(new, before.begin_ms) is None
    window = replayed.window(new, before.end_ms)
    assert window is not None and len(window) == (before.keys == new).sum()
    (record,) = Simulation(replayed).replay([BOUNDS[0]])
    strangers = 0
    for index in range(replayed.steps):
        step = replayed.step(index)
        strangers += int((~features_at(replayed, step.begin_ms).present[step.keys]).sum())
    assert record.unserved == strangers > 0


# The table.


def test_the_definition_is_a_table_whose_function_is_the_workloads() -> None:
    replayed = workload(cold_start="zero", ridge=0.5)
    table = table_from_mapping({"name": "users", **replayed.definition()})
    window = replayed.window(0, replayed.step(5).end_ms)
    assert window is not None
    mine, theirs = replayed.function().compute(window), table.function.compute(window)
    assert isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray)
    assert mine.tobytes() == theirs.tobytes()
    assert table.window.to_dict()["points"] == np.bincount(ratings().user).max()
    assert replayed.missing_regret == 0


def test_the_models_file_goes_with_the_workload() -> None:
    replayed = workload()
    file = Path(replayed.definition()["function"]["factors"])
    assert file.is_file()
    assert replayed.definition()["function"]["factors"] == str(file)
    del replayed
    gc.collect()
    assert not file.parent.exists()


def test_a_budget_is_a_share_of_the_ratings() -> None:
    assert workload().updates_per_step(0.2) == 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"ratings_per_step": 201},
            "there are 400 ratings, and a model and a step of 201 need 402",
        ),
        ({"ridge": 0.0}, "--ridge must be above 0"),
        ({"dimensions": 1}, "at least 2, one of them for the users' biases, not 1"),
        ({"dimensions": 0, "biases": False}, "at least 1, not 0"),
        ({"cold_start": "mene"}, "did you mean 'mean'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        workload(**options)


def test_no_ratings_are_refused() -> None:
    nothing = Ratings([], [], *(np.zeros(0, np.int64),) * 2, np.zeros(0))
    with pytest.raises(ConfigError, match="there are 0 ratings"):
        workload(nothing)


def test_more_ratings_of_a_user_than_a_step_has_milliseconds_are_refused() -> None:
    count = 2 * (RATING_MS + 1)
    one = np.zeros(count, np.int64)
    with pytest.raises(ConfigError, match="give a longer --step"):
        workload(Ratings(["u"], ["m"], one, one, np.ones(count)), ratings_per_step=1)


def test_it_is_loaded_by_name(tmp_path: Path) -> None:
    data = ratings()
    path = tmp_path / "ratings.csv"
    rows = zip(data.user, data.movie, data.rating, strict=True)
    path.write_text("".join(f"{u},{m},{r},{time}\n" for time, (u, m, r) in enumerate(rows)))
    options: dict[str, Any] = {
        "seed": 1,
        "steps": None,
        "period": None,
        "ridge": 0.1,
        "dimensions": 4,
        "cold_start": "zero",
        "biases": False,
        "clip": False,
    }
    loaded = load_workload("als", str(path), queries=Queries.UNIFORM, step="20", **options)
    assert loaded.steps == 10
    assert loaded.describe() == {
        "ratings_per_step": 20,
        "ridge": 0.1,
        "dimensions": 4,
        "cold_start": "zero",
        "biases": False,
        "clip": False,
    }
    unknown = np.setdiff1d(data.movie[200:], data.movie[:200])
    count = np.isin(data.movie[200:], unknown).sum()
    assert any(f"{count} of the replayed ratings" in text for text in loaded.notes)
    with pytest.raises(ConfigError, match="no number of ratings"):
        load_workload("als", str(path), queries=Queries.UNIFORM, step="1h", **options)


# What policies make of it.


def test_budgets_lie_between_nothing_and_everything() -> None:
    arms = [*BOUNDS, *(Arm(Variant(policy), budget) for policy in POLICIES for budget in (0.1, 1))]
    records = Simulation(workload()).replay(arms)
    unlimited, none = records[:2]
    assert unlimited.loss < none.loss
    assert none.key_updates.sum() == 0
    for record in records[2:]:
        if record.arm.budget == 1:
            assert record.loss == unlimited.loss, str(record.arm)
        else:
            assert record.key_updates.sum() == 20 * 1, str(record.arm)


def test_keeping_versions_is_possible() -> None:
    arms = [Arm(Variant("round-robin", keep), 0.1) for keep in (1, 4)]
    one, four = Simulation(workload()).replay(arms)
    assert one.key_updates.tolist() == four.key_updates.tolist()
    assert one.loss != four.loss


@pytest.mark.skipif(
    REAL_RATINGS not in os.environ, reason=f"set {REAL_RATINGS} to a CSV of MovieLens's ratings"
)
def test_regret_is_better_than_taking_turns_on_real_ratings() -> None:
    replayed = RatingsWorkload(load_ratings(os.environ[REAL_RATINGS]))
    policies = ("regret-proportional", "query-proportional", "round-robin")
    arms = [*BOUNDS, *(Arm(Variant(policy), 0.02) for policy in policies)]
    unlimited, none, regret, query, turns = (r.loss for r in Simulation(replayed).replay(arms))
    assert unlimited < regret < query < turns < none
