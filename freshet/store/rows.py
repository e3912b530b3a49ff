"""Takes many stored values apart in one pass, where they are vectors of one length.

Values of one size are the rows of an array as they lie in memory. Where a table keeps several
versions, sizes differ with how many a key has, and whether the last one is a delete. What ends a
value, the lengths of its parts, is put aside then, and what a key does not have is blank::

    [header][vector][header][vector][header][vector][lengths]      three versions
    [header][vector][header][vector][blank         ]               two
    [header][vector][header][0     ][blank         ]               one, and a delete before it
    [header][0     ][blank         ][blank         ]               a delete

A blank is a tombstone: something that is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from freshet.store.layout import (
    HEADER_BYTES,
    HEADER_DTYPE,
    KEEPS_OLDER,
    KEPT_VERSIONS_MAX,
    LENGTH,
    LENGTH_BYTES,
    TOMBSTONE,
    LayoutError,
    newest_bytes,
    pack_tombstone,
)
from freshet.values import VECTOR_DTYPE
from freshet.version import NO_VERSION

Raw = Sequence[bytes | None]
"""What the store holds for many keys, None where it has nothing."""

Records = npt.NDArray[Any]
"""Headers and vectors: the fields of ``HEADER_DTYPE``, and ``value`` [d]; a tombstone where there
is nothing."""

BLANK_HEADER = pack_tombstone(NO_VERSION, event_time=0, computed_at=0)

_HEADER_FIELDS = [(name, HEADER_DTYPE[name]) for name in HEADER_DTYPE.names or ()]


def newest_of(raw: Raw) -> Records | None:
    """The newest versions of stored values.

    Returns:
        Records [n]; None if the vectors don't have one length, or some are no vectors at all.
    """
    sizes = _sizes(raw)
    one = _bytes_of_one(raw, sizes)
    if one is None or sizes <= {one, HEADER_BYTES}:
        return _single(raw, sizes, one)
    larger = sizes - {one, HEADER_BYTES}
    if min(larger) < one + HEADER_BYTES + LENGTH_BYTES:
        return None
    # What ends a value whose newest version has the usual size: the length of all that is behind.
    ends = {size: LENGTH.pack(size - one - LENGTH_BYTES) for size in larger}
    blank = BLANK_HEADER.ljust(one, b"\0")
    whole = [
        blank
        if data is None
        else data.ljust(one, b"\0")
        if len(data) <= one
        else data[:one]
        if data.endswith(ends[len(data)])
        else b""
        for data in raw
    ]
    joined = b"".join(whole)
    if len(joined) != len(raw) * one:
        return None  # some newest version has another size
    records = np.frombuffer(joined, _record(one))
    sized = _lengths(raw)
    keeps = records["flags"] & KEEPS_OLDER != 0
    if (keeps != (sized > one)).any() or not _are_deletes(raw, sizes, records):
        return None
    return records


def all_of(raw: Raw) -> Records | None:
    """All versions of stored values.

    Returns:
        Records [n, versions], newest first, with at least one column; None if the vectors don't
        have one length, or some are no vectors at all.
    """
    sizes = _sizes(raw)
    one = _bytes_of_one(raw, sizes)
    if one is None or sizes <= {one, HEADER_BYTES}:
        alone = _single(raw, sizes, one)
        return None if alone is None else alone[:, None]
    forms = _forms(one)
    if not sizes <= forms.keys():
        return None
    most = max(forms[size].versions for size in sizes)
    width = most * one
    size_of_most = width + (most - 1) * LENGTH_BYTES
    blank = BLANK_HEADER.ljust(one, b"\0")
    blanks = (blank * most).ljust(size_of_most, b"\0")
    endings = {}
    for size in sizes:
        form = forms[size]
        absent = b"\0" * form.bytes_short + blank * (most - form.versions)
        endings[size] = form.tail, absent.ljust(size_of_most + len(form.tail) - size, b"\0")
    whole = [
        blanks
        if data is None
        else data
        if len(data) == size_of_most
        else data.removesuffix((ending := endings[len(data)])[0]) + ending[1]
        for data in raw
    ]
    joined = b"".join(whole)
    if len(joined) != len(raw) * size_of_most:
        return None  # the lengths at the end of some value are not those of equal parts
    rows = np.frombuffer(joined, np.uint8).reshape(len(raw), size_of_most)
    sized = _lengths(raw)
    tail = np.frombuffer(_forms(one)[size_of_most].tail, np.uint8)
    if (rows[sized == size_of_most, width:] != tail).any():
        return None
    records: Records = np.ndarray(
        (len(raw), most), _record(one), joined, strides=(size_of_most, one)
    )
    flags = records["flags"]
    ours = all(_is_form(flags[sized == size], forms[size]) for size in sizes)
    return records if ours else None


def _sizes(raw: Raw) -> set[int]:
    return {len(data) for data in raw if data is not None}


def _bytes_of_one(raw: Raw, sizes: set[int]) -> int | None:
    """How many bytes a version has, judging by the first value that is more than a header; None
    if that is no header and vector."""
    if min(sizes, default=HEADER_BYTES) < HEADER_BYTES:
        return None
    first = next((data for data in raw if data and len(data) > HEADER_BYTES), BLANK_HEADER)
    try:
        one = newest_bytes(first)
    except LayoutError:
        return None
    return None if (one - HEADER_BYTES) % VECTOR_DTYPE.itemsize else one


def _single(raw: Raw, sizes: set[int], one: int | None) -> Records | None:
    """Records [n] of values of one version and this size; None if some keep several versions."""
    if one is None:
        return None
    blank = BLANK_HEADER.ljust(one, b"\0")
    whole = [
        blank if data is None else data if len(data) == one else data.ljust(one, b"\0")
        for data in raw
    ]
    records = np.frombuffer(b"".join(whole), _record(one))
    if (records["flags"] & KEEPS_OLDER).any():
        return None
    return records if _are_deletes(raw, sizes, records) else None


def _are_deletes(raw: Raw, sizes: set[int], records: Records) -> bool:
    """Whether bare headers are deletes, not vectors of no numbers that were padded."""
    if HEADER_BYTES not in sizes or records.dtype.itemsize == HEADER_BYTES:
        return True
    at = [i for i, data in enumerate(raw) if data is not None and len(data) == HEADER_BYTES]
    return bool((records["flags"][at] & TOMBSTONE != 0).all())


def _lengths(raw: Raw) -> npt.NDArray[np.intp]:
    return np.array([0 if data is None else len(data) for data in raw], np.intp)


class _Form(NamedTuple):
    """What a value of some size is, if each of its vectors has the usual length."""

    versions: int
    bytes_short: int
    """How many bytes it has less because it ends with a delete, which has no vector."""
    tail: bytes
    """What ends the value: the lengths of its parts."""


def _is_form(flags: npt.NDArray[np.uint8], form: _Form) -> bool:
    """Whether flags [n, versions] say what the size seemed to say: a long vector may be as long as
    two shorter ones."""
    last = form.versions - 1
    keeps = flags & KEEPS_OLDER != 0
    if not keeps[:, :last].all() or keeps[:, last:].any():
        return False
    return not form.bytes_short or bool((flags[:, last] & TOMBSTONE != 0).all())


@lru_cache(maxsize=64)
def _forms(one: int) -> dict[int, _Form]:
    """Every size that a value may have whose versions have this size each, and what it means."""
    forms = {}
    for last in (HEADER_BYTES, one):
        size, tail = last, b""
        for versions in range(1, KEPT_VERSIONS_MAX + 1):
            forms[size] = _Form(versions, one - last, tail)
            tail += LENGTH.pack(size)
            size += one + LENGTH_BYTES
    return forms


@lru_cache(maxsize=64)
def _record(size: int) -> np.dtype[Any]:
    """Header and vector of one version."""
    count = (size - HEADER_BYTES) // VECTOR_DTYPE.itemsize
    return np.dtype([*_HEADER_FIELDS, ("value", VECTOR_DTYPE, (count,))])
