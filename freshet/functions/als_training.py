"""Trains a matrix factorisation by alternating least squares: the model of ``ALSUserEmbedding``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from freshet.functions.item_factors import ItemFactors

_CHUNK_NUMBERS = 1 << 23  # of the outer products that are held at a time: 64 MiB
_DAMPING = 5.0  # an item's bias counts as if so many more had rated it as the mean


@dataclass(frozen=True, eq=False)
class TrainedAls:
    """What :func:`train_als` found."""

    items: ItemFactors
    """The model; the means of the users and of the items stand for those that it does not know."""

    user_ids: npt.NDArray[Any]
    """[k], ascending."""

    user_factors: npt.NDArray[np.float64]
    """[k, d]."""

    losses: tuple[float, ...]
    """What is minimised, after each half-step; it never rises."""


def train_als(
    users: npt.ArrayLike,
    items: npt.ArrayLike,
    ratings: npt.ArrayLike,
    d: int = 16,
    *,
    ridge: float = 2.0,
    iterations: int = 10,
    seed: int = 0,
    ridge_per_rating: bool = False,
    biases: bool = True,
) -> TrainedAls:
    """Factors of users and items, U and Q, such that ``U[u] @ Q[i]`` is near the rating.

    Minimises the sum of ``(r - U[u] @ Q[i])²`` over the ratings, plus ridge times the squares of
    all vectors, by solving for all users, then for all items, in turns (Koren et al. 2009). The
    same arguments give the same result.

    Args:
        users: ids, integers or text [n].
        items: ids, integers or text [n].
        ratings: [n]. A user who rates an item twice counts with both.
        d: dimensions, at least 1, or 2 with biases.
        ridge: above 0.
        iterations: turns, at least 1.
        seed: of the first factors.
        ridge_per_rating: multiplies a vector's ridge by its number of ratings (Zhou et al. 2008).
        biases: takes the mean rating and the items' biases off first, and keeps the last dimension
            for the users' biases: each item has 1 there.

    Raises:
        ValueError: arrays of different lengths, no ratings, or parameters out of range.
    """
    values = np.asarray(ratings, np.float64)
    user_ids, user_of = np.unique(np.asarray(users), return_inverse=True)
    item_ids, item_of = np.unique(np.asarray(items), return_inverse=True)
    if not (values.ndim == 1 and user_of.shape == item_of.shape == values.shape and len(values)):
        raise ValueError(
            "users, items and ratings must be rows of one length, at least 1, not the shapes "
            f"{user_of.shape}, {item_of.shape} and {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("ratings must be finite")
    if d < 1 + biases or iterations < 1 or not ridge > 0:
        raise ValueError(
            f"d must be at least {1 + biases}, iterations at least 1 and ridge above 0, not {d}, "
            f"{iterations} and {ridge}"
        )
    mean = 0.0
    bias: npt.NDArray[np.float64] = np.zeros(len(item_ids))
    if biases:
        mean = float(values.mean())
        counts = np.bincount(item_of, minlength=len(item_ids))
        bias = np.bincount(item_of, values - mean, len(item_ids)) / (counts + _DAMPING)
    rest = values - mean - bias[item_of]

    by_user = _Side(user_of, len(user_ids), ridge, ridge_per_rating)
    by_item = _Side(item_of, len(item_ids), ridge, ridge_per_rating)
    free = d - biases  # dimensions of the items' factors that are solved for
    q = np.random.default_rng(seed).normal(scale=1 / np.sqrt(d), size=(len(item_ids), d))
    q[:, free:] = 1

    def loss() -> float:
        errors = rest - np.einsum("nd,nd->n", u[user_of], q[item_of])
        return float(np.square(errors).sum()) + by_user.penalty(u) + by_item.penalty(q[:, :free])

    losses = []
    for _ in range(iterations):
        u = by_user.solve(q[item_of], rest)
        losses.append(loss())
        q[:, :free] = by_item.solve(u[user_of, :free], rest - u[user_of, free:].sum(axis=1))
        losses.append(loss())
    model = ItemFactors(item_ids, q, bias, mean, u.mean(axis=0), q.mean(axis=0))
    return TrainedAls(model, user_ids, u, tuple(losses))


class _Side:
    """The users or the items: whose ratings are which, and what their vectors cost.

    Args:
        owner: whose each rating is [n], of 0, ..., count - 1, each at least once.
        count: how many there are.
        ridge: price of a squared length.
        ridge_per_rating: the price is for each rating.
    """

    def __init__(
        self, owner: npt.NDArray[np.int64], count: int, ridge: float, ridge_per_rating: bool
    ) -> None:
        self._order = np.argsort(owner, kind="stable")
        ratings = np.bincount(owner, minlength=count)
        self._starts = np.append(0, np.cumsum(ratings))
        self._ridges = ridge * (ratings if ridge_per_rating else np.ones(count))

    def solve(
        self, known: npt.NDArray[np.float64], rest: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """The best vectors [count, d].

        Args:
            known: vector of the other side for each rating [n, d].
            rest: what their products are to be near [n].
        """
        count, d = len(self._ridges), known.shape[1]
        normal = self._ridges[:, None, None] * np.eye(d)
        right = np.empty((count, d))
        for first, last in self._chunks(d):
            begin, end = self._starts[first], self._starts[last]
            rows = known[self._order[begin:end]]
            starts = self._starts[first:last] - begin
            normal[first:last] += np.add.reduceat(rows[:, :, None] * rows[:, None, :], starts)
            weighted = rows * rest[self._order[begin:end], None]
            right[first:last] = np.add.reduceat(weighted, starts)
        vectors: npt.NDArray[np.float64] = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
        return vectors

    def penalty(self, vectors: npt.NDArray[np.float64]) -> float:
        """What the length of the vectors costs."""
        return float((self._ridges * np.square(vectors).sum(axis=1)).sum())

    def _chunks(self, d: int) -> list[tuple[int, int]]:
        """Ranges of owners of so few ratings each that memory is bounded."""
        most = max(1, _CHUNK_NUMBERS // d**2)
        chunks, first = [], 0
        while first < len(self._ridges):
            last = int(np.searchsorted(self._starts, self._starts[first] + most, "right")) - 1
            last = max(first + 1, last)
            chunks.append((first, last))
            first = last
        return chunks
