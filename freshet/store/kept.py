"""The versions of many keys that a table keeps, decoded from what the store returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from freshet.store.decoding import FeatureBatch
from freshet.store.layout import HEADER, HEADER_BYTES, TOMBSTONE, LayoutError, kept_part, older_part
from freshet.store.rows import Records, all_of


class KeptVersions:
    """The kept versions of many keys' features, each of them a batch; read in one round trip.

    Args:
        table: name of the table.
        keys: entity keys [n].
        raw: what the store holds for each [n], None if it has nothing.
        now_ms: when it was read, epoch milliseconds.
        ttl_ms: the table's time to live, milliseconds; None for no expiry.
    """

    def __init__(
        self,
        table: str,
        keys: Sequence[str],
        raw: Sequence[bytes | None],
        now_ms: float,
        ttl_ms: int | None,
    ) -> None:
        self.table = table
        """Name of the table."""
        self.keys = keys
        """Entity keys [n]."""
        self._raw = raw
        self._rows = _Rows(raw)
        self._now_ms = now_ms
        self._ttl_ms = ttl_ms

    @cached_property
    def versions(self) -> tuple[FeatureBatch, ...]:
        """The versions, newest first: as many batches as the key with the most has versions, at
        least one. A key with fewer is MISSING in the later ones. Each is EXPIRED by its own event
        time.

        Raises:
            LayoutError: some value is damaged.
        """
        n = len(self.keys)
        return tuple(
            self._batch(KeptParts(self._raw, [which] * n), partial(self._rows.column, which))
            for which in range(self._most())
        )

    @property
    def newest(self) -> FeatureBatch:
        """The newest versions: what ``Client.get_many`` gives."""
        return self.versions[0]

    def pick(self, which: Sequence[int] | npt.NDArray[np.integer[Any]]) -> FeatureBatch:
        """One version of each key.

        Args:
            which: index in ``versions`` for each key [n].

        Raises:
            ValueError: an index is below 0, or there are not as many as keys.
        """
        chosen = np.asarray(which, np.intp)
        if chosen.shape != (len(self.keys),) or (chosen < 0).any():
            raise ValueError(
                f"which must have one index of 0 or more for each of {len(self.keys)} keys, not "
                f"{which!r}"
            )
        return self._batch(KeptParts(self._raw, chosen.tolist()), partial(self._rows.pick, chosen))

    def _batch(self, parts: KeptParts, decode: Callable[[], Records | None]) -> FeatureBatch:
        return FeatureBatch(self.table, self.keys, parts, self._now_ms, self._ttl_ms, decode=decode)

    def _most(self) -> int:
        """Most versions that a key has, deletes not counted; at least 1."""
        records = self._rows.records
        if records is None:
            return max(1, max(map(_count, self.keys, self._raw), default=1))
        found = records["flags"] & TOMBSTONE == 0
        return max(1, int(found.sum(axis=1).max(initial=1)))


class _Rows:
    """All versions decoded at once, when one of them is asked for.

    Apart from ``KeptVersions``, whose batches refer to it: a circle would keep what was read in
    memory until the garbage collector finds it.
    """

    def __init__(self, raw: Sequence[bytes | None]) -> None:
        self._raw = raw

    @cached_property
    def records(self) -> Records | None:
        """Records [n, versions]; None if they are to be decoded one by one."""
        return all_of(self._raw)

    def column(self, which: int) -> Records | None:
        """One version's [n]."""
        return None if self.records is None else self.records[:, which]

    def pick(self, which: npt.NDArray[np.intp]) -> Records | None:
        """One version's of each key [n]."""
        if self.records is None or (which >= self.records.shape[1]).any():
            return None
        picked: Records = self.records[np.arange(len(which)), which]
        return picked


class KeptParts(Sequence[bytes | None]):
    """One version of each stored value, cut out when it is asked for.

    Args:
        raw: what the store holds for each key [n], None if it has nothing.
        which: of each of them [n], 0 for the newest.
    """

    def __init__(self, raw: Sequence[bytes | None], which: Sequence[int]) -> None:
        self._raw = raw
        self._which = which

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> bytes | None: ...

    @overload
    def __getitem__(self, index: slice) -> KeptParts: ...

    def __getitem__(self, index: int | slice) -> bytes | KeptParts | None:
        if isinstance(index, slice):
            return KeptParts(self._raw[index], self._which[index])
        return kept_part(self._raw[index], self._which[index])

    def __iter__(self) -> Iterator[bytes | None]:
        return map(kept_part, self._raw, self._which)


def _count(key: str, data: bytes | None) -> int:
    """How many versions a stored value has, deletes not counted."""
    count = 0
    try:
        while data is not None and len(data) >= HEADER_BYTES:
            count += not HEADER.unpack_from(data)[1] & TOMBSTONE
            data = older_part(data)
    except LayoutError as e:
        raise LayoutError(f"key {key!r}: {e}") from e
    return count
