"""Item factors of a matrix factorisation: the fixed model that users' vectors are fitted to."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_ZEROS: Any = None  # replaced when the factors are made

UNKNOWN = -1
"""Row of an item that the model does not know."""


@dataclass(frozen=True, eq=False)
class ItemFactors:
    """What a model knows of m items, in d dimensions.

    A user with vector u is predicted to rate item i with
    ``global_mean + item_bias[i] + u @ factors[i]``.

    Raises:
        ValueError: shapes that don't fit, repeated ids, or numbers that are not finite.
    """

    ids: npt.NDArray[Any] = field(repr=False)
    """Integers or text [m], as events name the items."""

    factors: npt.NDArray[np.float64] = field(repr=False)
    """[m, d]."""

    item_bias: npt.NDArray[np.float64] = field(default=_ZEROS, repr=False)
    """How much better than the mean each item is rated [m]; None: zeros."""

    global_mean: float = 0.0
    """Mean rating."""

    mean_user: npt.NDArray[np.float64] = field(default=_ZEROS, repr=False)
    """Vector of a user of whom nothing is known [d]; None: zeros."""

    unknown_item: npt.NDArray[np.float64] = field(default=_ZEROS, repr=False)
    """Factors of an item that the model does not know [d]; None: zeros."""

    def __post_init__(self) -> None:
        ids = np.asarray(self.ids)
        factors = np.array(self.factors, np.float64)
        if ids.ndim != 1 or ids.dtype.kind not in "iuU":
            raise ValueError(
                f"ids must be a row of integers or of text, not {ids.dtype} {ids.shape}"
            )
        if factors.ndim != 2 or len(factors) != len(ids) or 0 in factors.shape:
            raise ValueError(
                f"factors must be [items, dimensions] with a row for each of the {len(ids)} ids, "
                f"not {factors.shape}"
            )
        arrays = {"ids": ids, "factors": factors}
        m, d = factors.shape
        for name, length in (("item_bias", m), ("mean_user", d), ("unknown_item", d)):
            given = getattr(self, name)
            row = np.zeros(length) if given is None else np.array(given, np.float64)
            if row.shape != (length,):
                raise ValueError(f"{name} must have {length} numbers, not the shape {row.shape}")
            arrays[name] = row
        for name, array in arrays.items():
            if name != "ids" and not np.isfinite(array).all():
                raise ValueError(f"{name} has numbers that are not finite")
            object.__setattr__(self, name, array)
        object.__setattr__(self, "global_mean", float(self.global_mean))
        if not np.isfinite(self.global_mean):
            raise ValueError(f"global_mean is {self.global_mean}; it must be finite")
        if len(self._row_of) < len(ids):
            raise ValueError("ids has an id twice; each item has one row")

    @property
    def dimensions(self) -> int:
        """Length of a user's or an item's vector."""
        return int(self.factors.shape[1])

    @classmethod
    def load(cls, location: str | Path) -> ItemFactors:
        """Reads what :meth:`save` wrote: an ``.npz`` with the fields' names.

        Only ``ids`` and ``factors`` must be there.

        Args:
            location: a path, or a URL that smart-open reads.

        Raises:
            ValueError: it can't be read or is something else.
        """
        import smart_open

        try:
            with smart_open.open(str(location), "rb") as file:
                content = file.read()
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                known = [name for name in cls.__dataclass_fields__ if name in stored]
                return cls(**{name: stored[name] for name in known})
        except Exception as e:
            raise ValueError(
                f"the item factors {location} can't be read: {e}; they are an .npz with ids [m] "
                "and factors [m, d], such as ItemFactors.save writes, and must be readable "
                "wherever the function runs"
            ) from e

    def save(self, location: str | Path) -> None:
        """Writes an ``.npz``.

        Args:
            location: a path, or a URL that smart-open writes.
        """
        import smart_open

        content = io.BytesIO()
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        np.savez_compressed(content, **fields)
        with smart_open.open(str(location), "wb") as file:
            file.write(content.getvalue())

    def rows_of(self, ids: Iterable[object]) -> npt.NDArray[np.int64]:
        """Rows of items, :data:`UNKNOWN` for those that the model does not know.

        Raises:
            TypeError: an id is text where the model has numbers, or the other way round.
        """
        ids = list(ids)
        try:
            rows = np.fromiter((self._row_of.get(i, UNKNOWN) for i in ids), np.int64, len(ids))
        except TypeError:  # a list or a dict
            rows = np.full(len(ids), UNKNOWN)
        if (rows == UNKNOWN).any():
            # An id of another kind would be unknown for ever, and nobody would notice.
            kind = str if self.ids.dtype.kind == "U" else (int, float)
            for row, i in zip(rows, ids, strict=True):
                if row == UNKNOWN and (isinstance(i, bool) or not isinstance(i, kind)):
                    raise TypeError(
                        f"item {i!r} is a {type(i).__name__}, and the model's ids are "
                        f"{'text' if kind is str else 'integers'}; let events name items as the "
                        "model does"
                    )
        return rows

    def predict(self, users: npt.ArrayLike, ids: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Predicted ratings.

        A user whose vector is NaN, as that of a missing feature is, is taken as the mean user.

        Args:
            users: one vector [d], or one for each item [n, d].
            ids: items [n].

        Returns:
            Ratings [n].
        """
        rows = self.rows_of(np.asarray(ids).tolist())
        vectors = np.broadcast_to(np.asarray(users, np.float64), (len(rows), self.dimensions))
        vectors = np.where(np.isnan(vectors), self.mean_user, vectors)
        known = rows != UNKNOWN
        factors = np.where(known[:, None], self.factors[rows], self.unknown_item)
        biases = np.where(known, self.item_bias[rows], 0.0)
        ratings: npt.NDArray[np.float64] = (
            self.global_mean + biases + np.einsum("nd,nd->n", vectors, factors)
        )
        return ratings

    @cached_property
    def _row_of(self) -> dict[object, int]:
        return {i: row for row, i in enumerate(self.ids.tolist())}
