"""Partial alternating least squares: a user's vector, fitted to a model of the items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from freshet.functions.base import FeatureFunction
from freshet.functions.item_factors import UNKNOWN, ItemFactors
from freshet.functions.window import Window

if TYPE_CHECKING:
    from freshet.table import FeatureTable

AlsPrior = Literal["mean", "zero"]
"""What a user's vector is drawn to."""

_KEPT_MODELS = 4  # in memory, as long as the process lives


@dataclass(frozen=True)
class ALSUserEmbedding(FeatureFunction):
    """A user's vector from the user's ratings, with the items' factors fixed (RALF §2.5.1).

    One half-step of alternating least squares. With the factors Q [k, d] of the k items that the
    user rated, and the ratings r less what the model says of any user, the vector is::

        u = argmin |r - Q u|² + ridge |u - prior|² = (QᵀQ + ridge I)⁻¹ (Qᵀr + ridge prior)

    The key of the table is the user. An event is a JSON object with an item and a rating, or a
    vector that begins with these two. Of several ratings of one item the last counts; items that
    the model does not know count for nothing. The order of the ratings of different items does not
    matter, to the bit.
    """

    factors: str | Path | ItemFactors
    """The model: an absolute path or a URL of what ``ItemFactors.save`` wrote, read once by each
    worker; or the factors themselves, which then travel with the job."""

    ridge: float = 2.0
    """How strongly the vector is drawn to the prior, above 0: as so many ratings would of items
    whose factors have length 1."""

    ridge_per_rating: bool = False
    """Multiplies ridge by the number of ratings (ALS-WR, Zhou et al. 2008)."""

    prior: AlsPrior = "mean"
    """``"mean"``: the model's mean user, so that a user of whom little is known is like the others;
    ``"zero"``: zeros."""

    min_ratings: int = 1
    """A user with fewer ratings of known items has the prior as vector."""

    item: str = "movie_id"
    """Field of the item in a JSON event."""

    rating: str = "rating"
    """Field of the rating in a JSON event."""

    def prepare(self) -> None:
        """Reads the model."""
        self.model()

    def model(self) -> ItemFactors:
        """The items' factors.

        Raises:
            ValueError: they can't be read.
        """
        if isinstance(self.factors, ItemFactors):
            return self.factors
        return _loaded(str(self.factors))

    def compute(self, window: Window) -> npt.NDArray[np.float32]:
        """Float32 [d], the user's vector.

        Raises:
            ValueError: an event without item or rating, or with a rating that is not finite.
            TypeError: events name items in text and the model in numbers, or the other way round.
        """
        return self.compute_batch([window])[0]

    def compute_batch(self, windows: Sequence[Window]) -> list[npt.NDArray[np.float32]]:
        """The vectors of several users; each is to the bit what it is when computed alone."""
        model = self.model()
        d = model.dimensions
        prior = model.mean_user if self.prior == "mean" else np.zeros(d)
        unit = np.eye(d)
        normal = np.empty((len(windows), d, d))
        right = np.empty((len(windows), d))
        for user, window in enumerate(windows):
            rows, ratings = self._known_ratings(model, window)
            if len(rows) < self.min_ratings:
                rows, ratings = rows[:0], ratings[:0]
            known = model.factors[rows]
            ridge = self.ridge * (max(1, len(rows)) if self.ridge_per_rating else 1)
            normal[user] = known.T @ known + ridge * unit
            right[user] = known.T @ (ratings - model.global_mean - model.item_bias[rows])
            right[user] += ridge * prior
        # LAPACK solves one system after the other, so that neighbours change nothing.
        vectors = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
        return list(vectors.astype(np.float32))

    @staticmethod
    def predict(
        value: npt.ArrayLike, model: ItemFactors, items: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Predicted ratings, see :meth:`ItemFactors.predict`.

        Args:
            value: a user's feature value [d], or one for each item [n, d], such as the ``values``
                of ``get_many``.
            model: the items' factors.
            items: ids [n].

        Returns:
            Ratings [n].
        """
        return model.predict(value, items)

    def validate(self, table: FeatureTable) -> list[str]:
        """Checks the parameters and the kind of the source; the model is not read here."""
        problems = []
        if table.source.kind == "scalar":
            problems.append(
                "function: ALSUserEmbedding needs a source of kind json, with objects such as "
                f'{{"{self.item}": 1, "{self.rating}": 4.5}}, or vector, not scalar'
            )
        if not isinstance(self.factors, str | Path | ItemFactors):
            problems.append(
                f"function.factors must be a path, a URL or ItemFactors, not {self.factors!r}"
            )
        elif not isinstance(self.factors, ItemFactors):
            location = str(self.factors)
            if "://" not in location and not Path(location).is_absolute():
                problems.append(
                    f"function.factors is the relative path {location!r}; workers run in another "
                    "folder: use an absolute path or a URL that all of them can read"
                )
        if not (_is_number(self.ridge) and 0 < self.ridge < np.inf):
            problems.append(f"function.ridge must be a number above 0, not {self.ridge!r}")
        if self.prior not in get_args(AlsPrior):
            problems.append(f"function.prior must be 'mean' or 'zero', not {self.prior!r}")
        if not (isinstance(self.min_ratings, int) and self.min_ratings >= 0):
            problems.append(
                f"function.min_ratings must be an integer of 0 or more, not {self.min_ratings!r}"
            )
        return problems

    def _known_ratings(
        self, model: ItemFactors, window: Window
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Rows of the rated items that the model knows, ascending, and their last ratings."""
        ids, ratings = self._events(window)
        if not np.isfinite(ratings).all():
            place = int(np.flatnonzero(~np.isfinite(ratings))[0])
            raise ValueError(f"the rating of event {place} is {ratings[place]}; it must be finite")
        rows = model.rows_of(ids)
        known = np.flatnonzero(rows != UNKNOWN)[::-1]
        items, newest = np.unique(rows[known], return_index=True)
        return items, ratings[known[newest]]

    def _events(self, window: Window) -> tuple[list[Any], npt.NDArray[np.float64]]:
        values = window.values
        if not isinstance(values, list):
            if values.ndim != 2 or values.shape[1] < 2:
                raise ValueError(
                    "the window's values must be objects or vectors [item, rating], not the shape "
                    f"{values.shape}"
                )
            return values[:, 0].tolist(), values[:, 1]
        try:
            ids = [event[self.item] for event in values]
            ratings = [event[self.rating] for event in values]
        except KeyError:
            ids, ratings = [], [None]
        if not set(map(type, ratings)) <= {int, float}:
            raise self._no_rating(values)
        return ids, np.array(ratings, np.float64)

    def _no_rating(self, events: list[dict[str, Any]]) -> ValueError:
        """Says which event is no rating."""
        place, event = next(
            (place, event)
            for place, event in enumerate(events)
            if self.item not in event or type(event.get(self.rating)) not in (int, float)
        )
        return ValueError(
            f"event {place} must have {self.item!r}, and a number {self.rating!r}, and is "
            f"{event!r:.200}; set the function's item and rating to the names of the fields"
        )


@lru_cache(_KEPT_MODELS)
def _loaded(location: str) -> ItemFactors:
    return ItemFactors.load(location)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
