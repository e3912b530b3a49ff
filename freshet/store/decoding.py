"""Features as a client sees them, decoded from what the store returned: many in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import repeat
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from freshet.store.layout import (
    ENCODING_MASK,
    ENCODING_SHIFT,
    FLAGS_MAX,
    HEADER_BYTES,
    HEADER_DTYPE,
    LAYOUT,
    TOMBSTONE,
    LayoutError,
    unpack,
)
from freshet.store.rows import BLANK_HEADER, Records, newest_of
from freshet.values import Encoding, ValueEncodingError
from freshet.version import Version


class FeatureStatus(StrEnum):
    """Whether a feature can be used."""

    PRESENT = "PRESENT"
    EXPIRED = "EXPIRED"
    """Its event time is older than the table's time to live."""
    MISSING = "MISSING"
    """Never computed, or deleted."""


@dataclass(slots=True, eq=False)  # not frozen, which would triple the time to make one
class Feature:
    """One feature of one key."""

    key: str
    status: FeatureStatus

    value: Any = None
    """Float32 array [d] or a tree of Python values; None if missing. An expired value is here too:
    look at the status."""

    version: Version | None = None
    """To send back with feedback; None if missing."""

    event_time: int | None = None
    """Of the newest event in the value, epoch milliseconds; None if missing."""

    computed_at: int | None = None
    """Epoch milliseconds; None if missing."""

    staleness_ms: float | None = None
    """Age of the newest event in the value when it was read, milliseconds; None if missing."""


_STATUS_BY_CODE = (FeatureStatus.PRESENT, FeatureStatus.EXPIRED, FeatureStatus.MISSING)


class FeatureBatch(Sequence[Feature]):
    """The features of many keys, in their order.

    Arrays of the whole batch cost one pass; a single ``Feature`` is built when it is asked for.

    Args:
        table: name of the table.
        keys: entity keys [n].
        raw: what the store holds for each [n], None if missing.
        now_ms: when it was read, epoch milliseconds.
        ttl_ms: the table's time to live, milliseconds; None for no expiry.
        decode: gives the records [n] of all values (see :mod:`freshet.store.rows`), where others
            have them already.
    """

    def __init__(
        self,
        table: str,
        keys: Sequence[str],
        raw: Sequence[bytes | None],
        now_ms: float,
        ttl_ms: int | None,
        *,
        decode: Callable[[], Records | None] | None = None,
    ) -> None:
        self.table = table
        """Name of the table."""
        self.keys = keys
        """Entity keys [n]."""
        self._raw = raw
        self._now_ms = now_ms
        self._oldest = -math.inf if ttl_ms is None else now_ms - ttl_ms
        self._decode = decode

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> Feature: ...

    @overload
    def __getitem__(self, index: slice) -> FeatureBatch: ...

    def __getitem__(self, index: int | slice) -> Feature | FeatureBatch:
        if isinstance(index, slice):
            part = FeatureBatch(self.table, self.keys[index], self._raw[index], self._now_ms, None)
            part._oldest = self._oldest
            return part
        return self._feature(self.keys[index], self._raw[index])

    def __iter__(self) -> Iterator[Feature]:
        records = self._records
        if records is None or not self._all_vectors:
            return map(self._feature, self.keys, self._raw)
        return map(
            _feature_of_row,
            self.keys,
            self.statuses,
            records["value"],
            self.versions,
            records["event_time"].tolist(),
            records["computed_at"].tolist(),
            repeat(self._now_ms),
        )

    @cached_property
    def values(self) -> npt.NDArray[np.float32]:
        """The vectors [n, d], a row of NaN for each feature that is not PRESENT.

        Raises:
            ValueEncodingError: a value is no vector, or vectors differ in length; use the single
                features then.
        """
        present = self.present
        records = self._records
        if records is None or not self._all_vectors:
            return self._values_one_by_one(present)
        values = records["value"].astype(np.float32)  # a copy, contiguous and writable
        if not present.all():
            values[~present] = np.nan
        return values

    @cached_property
    def statuses(self) -> list[FeatureStatus]:
        """Statuses [n]."""
        codes = np.where(self.present, 0, np.where(self._found, 1, 2))
        return [_STATUS_BY_CODE[code] for code in codes.tolist()]

    @cached_property
    def present(self) -> npt.NDArray[np.bool_]:
        """Whether each feature is PRESENT [n]."""
        fresh: npt.NDArray[np.bool_] = self._headers["event_time"] >= self._oldest
        return self._found & fresh

    @cached_property
    def versions(self) -> list[Version | None]:
        """Versions [n], None if missing."""
        headers = self._headers
        pairs = zip(headers["timestamp_micros"].tolist(), headers["origin"].tolist(), strict=True)
        return [
            Version(*pair) if found else None
            for pair, found in zip(pairs, self._found.tolist(), strict=True)
        ]

    @property
    def version_timestamps(self) -> npt.NDArray[np.int64]:
        """Timestamps of the versions [n], microseconds, -1 if missing."""
        return np.where(self._found, self._headers["timestamp_micros"], -1)

    @property
    def version_origins(self) -> npt.NDArray[np.int64]:
        """Origins of the versions [n], -1 if missing."""
        return np.where(self._found, self._headers["origin"].astype(np.int64), -1)

    @property
    def event_times(self) -> npt.NDArray[np.int64]:
        """Event times [n], epoch milliseconds, -1 if missing."""
        return np.where(self._found, self._headers["event_time"], -1)

    @property
    def staleness_ms(self) -> npt.NDArray[np.float64]:
        """Ages of the newest events at the time of reading [n], milliseconds, NaN if missing."""
        return np.where(self._found, self._now_ms - self._headers["event_time"], np.nan)

    def _feature(self, key: str, data: bytes | None) -> Feature:
        if data is None:
            return Feature(key, FeatureStatus.MISSING)
        try:
            stored = unpack(data)
            if stored.tombstone:
                return Feature(key, FeatureStatus.MISSING)
            value = stored.value
        except (LayoutError, ValueEncodingError) as e:
            raise type(e)(f"table {self.table!r}, key {key!r}: {e}") from e
        fresh = stored.event_time >= self._oldest
        return Feature(
            key,
            FeatureStatus.PRESENT if fresh else FeatureStatus.EXPIRED,
            value,
            stored.version,
            stored.event_time,
            stored.computed_at,
            self._now_ms - stored.event_time,
        )

    @cached_property
    def _records(self) -> Records | None:
        """Header and vector of all keys [n], a tombstone where missing; None if sizes differ."""
        if self._decode is not None:
            return self._decode()
        return newest_of(self._raw)

    @cached_property
    def _headers(self) -> npt.NDArray[Any]:
        """Headers [n], a tombstone's where missing.

        Raises:
            LayoutError: some value is of another layout.
        """
        headers = self._records
        if headers is None:
            heads = [BLANK_HEADER if data is None else data[:HEADER_BYTES] for data in self._raw]
            if any(len(head) < HEADER_BYTES for head in heads):
                self._raise_first_problem()
            headers = np.frombuffer(b"".join(heads), HEADER_DTYPE)
        if (headers["layout"] != LAYOUT).any() or (headers["flags"] > FLAGS_MAX).any():
            self._raise_first_problem()
        return headers

    @cached_property
    def _found(self) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = self._headers["flags"] & TOMBSTONE == 0
        return found

    @cached_property
    def _all_vectors(self) -> bool:
        """Whether every value that is found is a vector."""
        encodings = self._headers["flags"] >> ENCODING_SHIFT & ENCODING_MASK
        return bool((encodings[self._found] == Encoding.FLOAT32_VECTOR).all())

    def _values_one_by_one(self, present: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        """The slow way, for batches with vectors of several sizes or values that are no vectors."""
        vectors = {int(i): self[int(i)].value for i in np.flatnonzero(present)}
        are_vectors = all(isinstance(v, np.ndarray) for v in vectors.values())
        lengths = {len(v) for v in vectors.values()} if are_vectors else set()
        if not are_vectors or len(lengths) > 1:
            what = "vectors of several lengths" if are_vectors else "values that are no vectors"
            raise ValueEncodingError(
                f"table {self.table!r} has {what}; read the single features of the batch instead "
                "of its values"
            )
        values = np.full((len(self), max(lengths, default=0)), np.nan, np.float32)
        for i, vector in vectors.items():
            values[i] = vector
        return values

    def _raise_first_problem(self) -> None:
        for key, data in zip(self.keys, self._raw, strict=True):
            self._feature(key, data)
        raise AssertionError("the vectorised and the single decoding disagree")


def _feature_of_row(
    key: str,
    status: FeatureStatus,
    value: npt.NDArray[np.float32],
    version: Version | None,
    event_time: int,
    computed_at: int,
    now_ms: float,
) -> Feature:
    if version is None:
        return Feature(key, status)
    return Feature(key, status, value, version, event_time, computed_at, now_ms - event_time)
