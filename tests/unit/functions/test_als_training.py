"""Goal: training minimises what it says, never gets worse, and is the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.functions import ALSUserEmbedding, Window, als_training
from freshet.functions.als_training import TrainedAls, train_als

Ratings = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


def random_ratings(seed: int, n: int = 300, users: int = 20, items: int = 30) -> Ratings:
    random = np.random.default_rng(seed)
    pairs = random.choice(users * items, n, replace=False)
    user, item = 100 + pairs // items, 7 * (pairs % items)
    taste, kind = random.normal(size=(users, 2)), random.normal(size=(items, 2))
    rating = 3 + (taste[pairs // items] * kind[pairs % items]).sum(axis=1)
    return user, item, rating + random.normal(scale=0.1, size=n)


def errors(model: TrainedAls, ratings: Ratings) -> npt.NDArray[np.float64]:
    users, items, values = ratings
    vectors = model.user_factors[np.searchsorted(model.user_ids, users)]
    return values - model.items.predict(vectors, items)


@given(
    seed=st.integers(0, 2**32),
    d=st.integers(2, 6),
    ridge=st.floats(0.01, 10),
    per_rating=st.booleans(),
    biases=st.booleans(),
)
@settings(max_examples=25)
def test_the_loss_never_rises_and_is_what_it_says(
    seed: int, d: int, ridge: float, per_rating: bool, biases: bool
) -> None:
    ratings = random_ratings(seed)
    model = train_als(
        *ratings, d, ridge=ridge, iterations=4, ridge_per_rating=per_rating, biases=biases
    )
    losses = np.array(model.losses)
    assert len(losses) == 8
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    priced = model.items.factors[:, : d - biases]
    lengths = [np.square(model.user_factors).sum(axis=1), np.square(priced).sum(axis=1)]
    if per_rating:
        for squares, ids in zip(lengths, ratings[:2], strict=True):
            squares *= np.unique(ids, return_counts=True)[1]
    loss = np.square(errors(model, ratings)).sum() + ridge * sum(s.sum() for s in lengths)
    assert loss == pytest.approx(losses[-1])


def test_each_half_step_is_exact() -> None:
    # With no more to gain from the users' side, no user can be bettered alone.
    ratings = random_ratings(1)
    model = train_als(*ratings, 3, ridge=0.5, iterations=400)
    function = ALSUserEmbedding(model.items, ridge=0.5, prior="zero")
    for row, user in enumerate(model.user_ids):
        own = ratings[0] == user
        events = np.column_stack((ratings[1][own], ratings[2][own]))
        value = function.compute(Window(str(user), np.arange(len(events)), events, 0))
        assert value == pytest.approx(model.user_factors[row], abs=1e-3)


def test_training_finds_what_the_ratings_are_made_of() -> None:
    ratings = random_ratings(2)
    plain = np.square(ratings[2] - ratings[2].mean()).mean()
    model = train_als(*ratings, 3, ridge=0.1, iterations=20)
    assert np.square(errors(model, ratings)).mean() < 0.05 * plain


def test_the_same_arguments_give_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = random_ratings(3)
    first, again = (train_als(*ratings, 4, seed=5, iterations=2) for _ in range(2))
    for name in ("ids", "factors", "item_bias", "mean_user", "unknown_item"):
        one, other = getattr(first.items, name), getattr(again.items, name)
        assert one.tobytes() == other.tobytes()
    assert first.losses == again.losses
    assert train_als(*ratings, 4, seed=6, iterations=2).losses != first.losses
    # Nor does it matter how many are solved for at a time.
    monkeypatch.setattr(als_training, "_CHUNK_NUMBERS", 100)
    assert train_als(*ratings, 4, seed=5, iterations=2).losses == pytest.approx(first.losses)


def test_means_stand_for_the_unknown_and_ids_may_be_text() -> None:
    users, items, values = random_ratings(4)
    model = train_als(users.astype(str), items.astype(str), values, 3)
    assert model.items.ids.dtype.kind == "U"
    assert model.items.mean_user == pytest.approx(model.user_factors.mean(axis=0))
    assert model.items.unknown_item[-1] == 1  # users' biases count for unknown items too
    assert model.items.global_mean == values.mean()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"ratings": [1.0, 2.0, 3.0]}, "rows of one length"),
        ({"users": [], "items": [], "ratings": []}, "at least 1"),
        ({"ratings": [1.0, np.inf]}, "finite"),
        ({"d": 1}, "d must be at least 2"),
        ({"ridge": 0}, "ridge above 0"),
        ({"iterations": 0}, "iterations at least 1"),
    ],
)
def test_what_can_not_be_trained_on_is_refused(changed: dict[str, Any], reason: str) -> None:
    fitting: dict[str, Any] = {"users": [1, 2], "items": [1, 1], "ratings": [3.0, 4.0], "d": 2}
    train_als(**fitting)
    with pytest.raises(ValueError, match=reason):
        train_als(**{**fitting, **changed})
