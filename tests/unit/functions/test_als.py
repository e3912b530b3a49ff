"""Goal: a user's vector is the exact least-squares solution of the ratings that count.

Method: hand-made models; solutions are compared with numpy's least squares of the stacked system,
batches with single computations bit by bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.errors import ConfigError
from freshet.functions import ALSUserEmbedding, ItemFactors, Window
from freshet.functions.isolation import FunctionStartError, IsolatedFunction
from freshet.functions.serialization import dump_function, load_function
from freshet.table import FeatureTable, Points, Source
from freshet.table.loading import table_from_mapping

MODEL = ItemFactors(
    ids=np.array([10, 20, 30, 40]),
    factors=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]]),
    item_bias=np.array([0.5, 0.0, -0.5, 0.25]),
    global_mean=3.0,
    mean_user=np.array([0.2, -0.1]),
)


def window_of(ratings: list[tuple[Any, float]], key: str = "u") -> Window:
    events = [{"movie_id": item, "rating": rating} for item, rating in ratings]
    return Window(key, np.arange(len(events)), events, len(events))


def least_squares(
    ratings: dict[int, float], ridge: float, prior: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Ridge regression as ordinary least squares with d more rows that pull to the prior."""
    rows = [MODEL.ids.tolist().index(item) for item in ratings]
    rest = np.array(list(ratings.values())) - MODEL.global_mean - MODEL.item_bias[rows]
    pull = np.sqrt(ridge) * np.eye(2)
    system = np.vstack((MODEL.factors[rows].reshape(-1, 2), pull))
    return np.linalg.lstsq(system, np.append(rest, pull @ prior), rcond=None)[0]


known_ratings = st.lists(
    st.tuples(st.sampled_from([10, 20, 30, 40]), st.floats(0.5, 5.0)), max_size=12
)
any_ratings = st.lists(
    st.tuples(st.sampled_from([10, 20, 30, 40, 50, -1]), st.floats(0.5, 5.0)), max_size=12
)


@given(known_ratings, st.floats(0.01, 100), st.booleans(), st.sampled_from(["mean", "zero"]))
def test_the_vector_is_the_least_squares_solution(
    ratings: list[tuple[int, float]], ridge: float, per_rating: bool, prior: Any
) -> None:
    function = ALSUserEmbedding(MODEL, ridge=ridge, ridge_per_rating=per_rating, prior=prior)
    value = function.compute(window_of(ratings))
    last = dict(ratings)
    drawn_to = MODEL.mean_user if prior == "mean" else np.zeros(2)
    expected = least_squares(last, ridge * (max(1, len(last)) if per_rating else 1), drawn_to)
    assert value.dtype == np.float32
    assert value == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_by_hand() -> None:
    # One item with factors (1, 0), rated 1 above what is expected of it: halfway from 0 to 1.
    function = ALSUserEmbedding(MODEL, ridge=1.0, prior="zero")
    assert list(function.compute(window_of([(10, 4.5)]))) == [0.5, 0]


@given(st.lists(any_ratings, min_size=1, max_size=20), st.data())
def test_a_batch_is_its_users_one_by_one_to_the_bit(
    users: list[list[tuple[int, float]]], data: st.DataObject
) -> None:
    function = ALSUserEmbedding(MODEL, ridge=0.3, min_ratings=2)
    windows = [window_of(ratings, f"u{place}") for place, ratings in enumerate(users)]
    alone = [function.compute(window).tobytes() for window in windows]
    order = data.draw(st.permutations(range(len(windows))))
    together = function.compute_batch([windows[place] for place in order])
    assert [value.tobytes() for value in together] == [alone[place] for place in order]


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_a_batch_in_many_dimensions_is_its_users_one_by_one(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    model = ItemFactors(np.arange(50), random.normal(size=(50, 16)))
    function = ALSUserEmbedding(model)
    windows = []
    for user in range(count):
        events = np.column_stack((random.permutation(50), random.uniform(1, 5, 50)))
        events = events[: random.integers(0, 51)]
        windows.append(Window(str(user), np.arange(len(events)), events, 0))
    together = function.compute_batch(windows)
    alone = [function.compute(window) for window in windows]
    assert [v.tobytes() for v in together] == [v.tobytes() for v in alone]


@given(any_ratings, st.data())
def test_unknown_items_and_order_do_not_matter(
    ratings: list[tuple[int, float]], data: st.DataObject
) -> None:
    function = ALSUserEmbedding(MODEL)
    value = function.compute(window_of(ratings))
    counting = list({item: (item, r) for item, r in ratings if item in MODEL.ids}.values())
    shuffled = data.draw(st.permutations(counting))
    assert value.tobytes() == function.compute(window_of(shuffled)).tobytes()


def test_vector_events_are_as_json_events() -> None:
    ratings = [(10, 4.0), (99, 1.0), (30, 2.5), (10, 3.0)]
    function = ALSUserEmbedding(MODEL)
    vectors = Window("u", np.arange(4), np.array(ratings), 4)
    value = function.compute(window_of(ratings))
    assert function.compute(vectors).tobytes() == value.tobytes()
    named = [{"book": item, "stars": rating} for item, rating in ratings]
    renamed = ALSUserEmbedding(MODEL, item="book", rating="stars")
    assert renamed.compute(Window("u", np.arange(4), named, 4)).tobytes() == value.tobytes()


@pytest.mark.parametrize("prior", ["mean", "zero"])
def test_a_user_of_whom_too_little_is_known_has_the_prior(prior: Any) -> None:
    function = ALSUserEmbedding(MODEL, prior=prior, min_ratings=3)
    expected = MODEL.mean_user if prior == "mean" else np.zeros(2)
    for ratings in ([], [(99, 5.0)] * 5, [(10, 5.0), (20, 5.0), (10, 4.0)]):
        value = function.compute(window_of(ratings))
        assert value == pytest.approx(expected.astype(np.float32))
    enough = function.compute(window_of([(10, 5.0), (20, 5.0), (30, 5.0)]))
    assert enough != pytest.approx(expected)


@pytest.mark.parametrize(
    ("events", "error", "reason"),
    [
        ([{"rating": 1.0}], ValueError, "event 0 must have 'movie_id'"),
        ([{"movie_id": 1, "rating": "5"}], ValueError, "a number 'rating'"),
        ([{"movie_id": 1, "rating": True}], ValueError, "a number 'rating'"),
        ([{"movie_id": 1, "rating": float("nan")}], ValueError, "must be finite"),
        ([{"movie_id": "10", "rating": 1.0}], TypeError, "'10' is a str.* ids are integers"),
        ([{"movie_id": [1], "rating": 1.0}], TypeError, "is a list"),
    ],
)
def test_events_that_are_no_ratings_fail_with_the_reason(
    events: list[dict[str, Any]], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        ALSUserEmbedding(MODEL).compute(Window("u", np.arange(len(events)), events, 0))


def test_predict_scores_users_and_items() -> None:
    user = np.array([1.0, 2.0])
    predicted = ALSUserEmbedding.predict(user, MODEL, [10, 30, 77])
    assert list(predicted) == [3.0 + 0.5 + 1.0, 3.0 - 0.5 + 3.0, 3.0]
    users = np.array([[1.0, 2.0], [np.nan, np.nan]], np.float32)  # the second one is missing
    predicted = ALSUserEmbedding.predict(users, MODEL, [20, 20])
    assert predicted == pytest.approx([3.0 + 2.0, 3.0 - 0.1])
    stranger = ItemFactors(["a"], [[1.0]], unknown_item=np.array([2.0]))  # type: ignore[arg-type]
    assert list(stranger.predict([3.0], ["a", "b"])) == [3.0, 6.0]


def test_factors_are_read_as_they_were_saved(tmp_path: Path) -> None:
    path = tmp_path / "items.npz"
    MODEL.save(path)
    loaded = ItemFactors.load(path)
    for name in ItemFactors.__dataclass_fields__:
        assert np.array_equal(getattr(loaded, name), getattr(MODEL, name))
    window = window_of([(10, 4.0), (40, 1.0)])
    value = ALSUserEmbedding(path).compute(window)
    assert value.tobytes() == ALSUserEmbedding(MODEL).compute(window).tobytes()
    np.savez(path, ids=MODEL.ids, factors=MODEL.factors)
    least = ItemFactors.load(path)
    assert least.global_mean == 0 and list(least.mean_user) == [0, 0]


def test_factors_that_can_not_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing\.npz can't be read"):
        ALSUserEmbedding(tmp_path / "nothing.npz").prepare()
    (tmp_path / "text.npz").write_text("no model")
    with pytest.raises(ValueError, match=r"they are an \.npz with ids"):
        ALSUserEmbedding(tmp_path / "text.npz").prepare()
    with pytest.raises(FunctionStartError, match=r"nothing\.npz can't be read"):
        IsolatedFunction(ALSUserEmbedding(tmp_path / "nothing.npz"), timeout_s=10)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"ids": np.array([1.5, 2.5])}, "integers or of text"),
        ({"ids": np.array([1, 1])}, "an id twice"),
        ({"factors": np.ones(2)}, r"must be \[items, dimensions\]"),
        ({"factors": np.ones((3, 2))}, "each of the 2 ids"),
        ({"factors": np.array([[1.0], [np.nan]])}, "factors has numbers that are not finite"),
        ({"item_bias": np.ones(3)}, "item_bias must have 2 numbers"),
        ({"mean_user": np.ones(3)}, "mean_user must have 1 numbers"),
        ({"global_mean": np.inf}, "it must be finite"),
    ],
)
def test_factors_that_do_not_fit_are_refused(changed: dict[str, Any], reason: str) -> None:
    fitting: dict[str, Any] = {"ids": np.array([1, 2]), "factors": np.ones((2, 1))}
    with pytest.raises(ValueError, match=reason):
        ItemFactors(**{**fitting, **changed})


def test_the_function_travels_with_its_factors() -> None:
    window = window_of([(10, 4.0)])
    function = ALSUserEmbedding(MODEL)
    value = function.compute(window)
    travelled = load_function(dump_function(function))
    assert np.array_equal(travelled.compute(window), value)  # type: ignore[arg-type]


def test_bad_parameters_are_told_together() -> None:
    function = ALSUserEmbedding("items.npz", ridge=0, prior="median", min_ratings=-1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as caught:
        FeatureTable(name="t", function=function, window=Points(10))
    for problem in (
        "source of kind json",
        "relative path 'items.npz'",
        "ridge must be a number above 0, not 0",
        "prior must be 'mean' or 'zero', not 'median'",
        "min_ratings must be an integer of 0 or more, not -1",
    ):
        assert problem in str(caught.value)


def test_als_in_yaml() -> None:
    table = table_from_mapping(
        {
            "name": "users",
            "window": {"points": 100},
            "source": {"kind": "json"},
            "function": {"name": "als", "factors": "s3://models/items.npz", "ridge": 1},
        }
    )
    assert table.function == ALSUserEmbedding("s3://models/items.npz", ridge=1)
    assert table.source == Source(kind="json")
