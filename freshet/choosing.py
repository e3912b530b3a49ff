"""Chooses which of the kept versions of a feature to serve: the one that predicts best of late.

The newest value is not always the best: one that was computed inside a burst may be worse than the
one before it. Where a table keeps several versions (``FeatureTable.keep_versions``), every query
can be answered with each of them, and once its label is known each has an error::

    chooser = VersionChooser()
    kept = client.get_versions("cpu_stl", machines)
    served = chooser.choose(kept)  # a FeatureBatch, as of get_many
    ...
    chooser.observe(kept, errors)  # [versions, n], when the labels are known

The rule is in two functions, :func:`updated_tallies` and :func:`best_versions`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from freshet.store.decoding import FeatureBatch
from freshet.store.kept import KeptVersions
from freshet.store.layout import KEPT_VERSIONS_MAX

DEFAULT_DECAY = 0.7
DEFAULT_MAX_KEYS = 1_000_000

_EVICTED_SHARE = 8
"""An eighth of the keys goes at once, so that making room costs little a key."""

_FIRST_CAPACITY = 1_024
_CHAIN_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


def updated_tallies(tallies: Floats, errors: Floats, decay: float) -> Floats:
    """The tallies of some keys' versions after one more query each.

    A version without an error on a query that others answered is out of the comparison from then
    on: its tally is infinite.

    Args:
        tallies: before the query [versions, n].
        errors: of the query with each version [versions, n]; NaN where there is none.
        decay: weight of what was before, 0 to 1.
    """
    updated: Floats = decay * tallies + np.where(np.isnan(errors), np.inf, errors)
    return updated


def best_versions(tallies: Floats, usable: npt.NDArray[np.bool_]) -> Ints:
    """The version to serve of each key [n]: the smallest tally, of equals the newest.

    Args:
        tallies: of each version [versions, n], newest first.
        usable: whether a version can be served at all [versions, n]; where none can, the newest is
            chosen, so that its status is what the caller sees.
    """
    best: Ints = np.argmin(np.where(usable, tallies, np.inf), axis=0)
    return best


class VersionChooser:
    """Keeps a tally of recent errors for each kept version of each key. Thread-safe.

    All tallies of a key restart when its newest version has changed since the last observation, so
    that versions are compared by the same queries. Tallies live in this process: each model serves
    by what it has seen itself.

    Args:
        decay: weight of a version's past errors at each further query, 0 to 1.
        max_keys: most keys of a table that are remembered; those that were not seen for longest are
            forgotten, and served by their newest version then. A key takes about 0.25 KB.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(self, decay: float = DEFAULT_DECAY, *, max_keys: int = DEFAULT_MAX_KEYS) -> None:
        if not 0 <= decay <= 1:
            raise ValueError(f"decay must be 0 to 1, not {decay!r}")
        if max_keys < 1:
            raise ValueError(f"max_keys must be at least 1, not {max_keys!r}")
        self._decay = decay
        self._max_keys = max_keys
        self._tables: dict[str, _Tallies] = {}
        self._lock = threading.Lock()

    def choose(self, kept: KeptVersions) -> FeatureBatch:
        """What to serve: of each key the version with the smallest tally.

        Keys without a tally, and those whose newest version nobody has scored yet, are served by
        their newest version. What is MISSING or EXPIRED is never preferred to what is PRESENT.
        """
        return kept.pick(self.choose_indexes(kept))

    def choose_indexes(self, kept: KeptVersions) -> Ints:
        """The same as indices in ``kept.versions`` [n]."""
        usable = np.stack([batch.present for batch in kept.versions[:KEPT_VERSIONS_MAX]])
        chains = _Chains(kept)
        tallies = np.zeros((KEPT_VERSIONS_MAX, len(kept.keys)))
        with self._lock:
            table = self._tables.get(kept.table)
            if table is not None:
                slots = table.find(kept.keys)
                known = np.flatnonzero(slots >= 0)
                known = known[table.is_current(slots[known], chains, known)]
                tallies[:, known] = table.tallies[slots[known]].T
        return best_versions(tallies[: len(usable)], usable)

    def observe(self, kept: KeptVersions, errors: npt.ArrayLike) -> None:
        """Takes in how well each version answered queries, when their labels are known.

        Late labels are fine: what was read before a key's newest version was first observed is
        passed over.

        Args:
            kept: the versions as they were read for the queries; a key may be there several times,
                once for each query, in order of time.
            errors: of each version on each query [versions, n], at least 0, in the order of
                ``kept.versions``; NaN where a version was MISSING or the label is not known.

        Raises:
            ValueError: the shape is another, or an error is below 0.
        """
        scored = np.asarray(errors, np.float64)
        shape = (len(kept.versions), len(kept.keys))
        if scored.shape != shape:
            raise ValueError(
                f"errors must have the shape [versions, keys], {shape}, not {scored.shape}"
            )
        if (scored < 0).any():
            raise ValueError(f"errors must be 0 or more, not {np.nanmin(scored)}")
        padded = np.full((KEPT_VERSIONS_MAX, shape[1]), np.nan)
        padded[: shape[0]] = scored[:KEPT_VERSIONS_MAX]
        queries = np.flatnonzero(~np.isnan(padded).all(axis=0))
        chains = _Chains(kept)
        with self._lock:
            table = self._tables.setdefault(kept.table, _Tallies(self._max_keys))
            slots = table.find_or_add([kept.keys[i] for i in queries.tolist()])
            for part in _rounds(slots):
                at = queries[part]
                table.observe(slots[part], chains, at, padded[:, at], self._decay)


class _Chains:
    """Which versions each key had when it was read, as arrays [n]."""

    def __init__(self, kept: KeptVersions) -> None:
        newest = kept.newest
        self.timestamps = newest.version_timestamps
        self.origins = newest.version_origins
        # Of all versions: an older one may have come late, between those that were there.
        self.marks = np.zeros(len(kept.keys), np.uint64)
        for batch in kept.versions[:KEPT_VERSIONS_MAX]:
            version = batch.version_timestamps.astype(np.uint64) << np.uint64(16)
            version ^= batch.version_origins.astype(np.uint64)
            self.marks += np.where(batch.version_timestamps < 0, np.uint64(0), version)
            self.marks *= np.where(batch.version_timestamps < 0, np.uint64(1), _CHAIN_FACTOR)


class _Tallies:
    """The tallies of one table, in arrays that are as long as its most keys so far."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._calls = 0
        self.tallies: Floats = np.zeros((0, KEPT_VERSIONS_MAX))
        self._timestamps = np.zeros(0, np.int64)
        self._origins = np.zeros(0, np.int64)
        self._marks = np.zeros(0, np.uint64)
        self._seen = np.zeros(0, np.int64)

    def find(self, keys: Sequence[str]) -> Ints:
        """Where each key's tallies are [n], -1 if it has none; these keys are seen now."""
        slots = np.fromiter(map(self._slots.get, keys, repeat(-1)), np.intp, len(keys))
        self._calls += 1
        self._seen[slots[slots >= 0]] = self._calls
        return slots

    def find_or_add(self, keys: Sequence[str]) -> Ints:
        """The same; keys without tallies get a place, but for those that are too many."""
        new = list(dict.fromkeys(key for key in keys if key not in self._slots))
        self._make_room(len(new))
        for key in new[: len(self._free)]:
            slot = self._free.pop()
            self._slots[key] = slot
            self.tallies[slot], self._marks[slot] = 0.0, 0
            self._timestamps[slot], self._origins[slot] = -1, -1
        return self.find(keys)

    def is_current(self, slots: Ints, chains: _Chains, at: Ints) -> npt.NDArray[np.bool_]:
        """Whether tallies are of the versions that were read."""
        same: npt.NDArray[np.bool_] = self._marks[slots] == chains.marks[at]
        same &= self._timestamps[slots] == chains.timestamps[at]
        same &= self._origins[slots] == chains.origins[at]
        return same

    def observe(self, slots: Ints, chains: _Chains, at: Ints, errors: Floats, decay: float) -> None:
        """One query each of keys that all differ.

        Args:
            slots: where the keys' tallies are [k].
            chains: what was read.
            at: where the keys are in what was read [k].
            errors: of each version [versions, k].
            decay: weight of what was before.
        """
        timestamps, origins = chains.timestamps[at], chains.origins[at]
        known = self._timestamps[slots], self._origins[slots]
        newer = (timestamps > known[0]) | ((timestamps == known[0]) & (origins >= known[1]))
        restarts = newer & ~self.is_current(slots, chains, at)
        self.tallies[slots[restarts]] = 0.0
        self._timestamps[slots[restarts]] = timestamps[restarts]
        self._origins[slots[restarts]] = origins[restarts]
        self._marks[slots[restarts]] = chains.marks[at[restarts]]
        counted = slots[newer]
        self.tallies[counted] = updated_tallies(self.tallies[counted].T, errors[:, newer], decay).T

    def _make_room(self, count: int) -> None:
        """Finds places for so many more keys, as far as there may be so many."""
        missing = len(self._slots) + count - self._max_keys
        if missing > 0 and self._slots:
            self._forget(min(len(self._slots), max(missing, self._max_keys // _EVICTED_SHARE)))
        wanted = min(len(self._slots) + count, self._max_keys)
        size = len(self._seen)
        if wanted > size:
            grown = min(self._max_keys, max(wanted, 2 * size, _FIRST_CAPACITY))
            self.tallies = _grown(self.tallies, grown)
            self._timestamps = _grown(self._timestamps, grown)
            self._origins = _grown(self._origins, grown)
            self._marks = _grown(self._marks, grown)
            self._seen = _grown(self._seen, grown)
            self._free = [*range(grown - 1, size - 1, -1), *self._free]

    def _forget(self, count: int) -> None:
        """Gives up the keys that were not seen for longest."""
        slots = np.fromiter(self._slots.values(), np.intp, len(self._slots))
        oldest = np.argpartition(self._seen[slots], count - 1)[:count]
        gone = set(slots[oldest].tolist())
        self._slots = {key: slot for key, slot in self._slots.items() if slot not in gone}
        self._free.extend(gone)


def _grown(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """The array with zeros behind it."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _rounds(slots: Ints) -> Iterator[Ints]:
    """Indices of places that all differ, as often as one comes up again; in order, without -1."""
    left = np.flatnonzero(slots >= 0)
    while left.size:
        _, first = np.unique(slots[left], return_index=True)
        yield left[np.sort(first)]
        left = np.delete(left, first)
