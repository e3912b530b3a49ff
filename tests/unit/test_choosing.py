"""Goal: of the kept versions the one that predicted best of late is served, and memory is bounded.

Method: random sequences of reads, refreshes and labels, beside a model that keeps one list of
numbers for each key.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet import VersionChooser
from freshet.choosing import best_versions, updated_tallies
from freshet.store.kept import KeptVersions
from freshet.store.layout import pack, pack_tombstone, pack_value, unpack
from freshet.version import Version

NOW_MS = 1_000
NAN = float("nan")


def held(*timestamps: int, event_time: int = NOW_MS) -> bytes | None:
    """What a key holds that has versions of these timestamps, newest first."""
    values = [pack_value([float(t)], Version(t, 1), event_time, NOW_MS) for t in timestamps]
    return pack(*map(unpack, values)) if values else None


def read(raw: dict[str, bytes | None], table: str = "t", ttl_ms: int | None = None) -> KeptVersions:
    return KeptVersions(table, list(raw), list(raw.values()), NOW_MS, ttl_ms)


def test_the_smallest_tally_is_served_and_of_equals_the_newest() -> None:
    chooser = VersionChooser()
    kept = read({"a": held(3, 2, 1), "b": held(3, 2, 1), "c": held(3, 2, 1), "d": None})
    assert chooser.choose(kept).versions == [Version(3, 1)] * 3 + [None]
    chooser.observe(
        kept,
        [
            [3.0, 1.0, 2.0, NAN],
            [1.0, 1.0, 2.0, NAN],
            [2.0, 1.0, 1.0, NAN],
        ],
    )
    served = chooser.choose(kept)
    assert served.versions == [Version(2, 1), Version(3, 1), Version(1, 1), None]
    assert served.values[:3, 0].tolist() == [2.0, 3.0, 1.0]
    assert chooser.choose_indexes(kept).tolist() == [1, 0, 2, 0]


def test_what_is_long_ago_counts_less() -> None:
    chooser = VersionChooser(decay=0.5)
    kept = read({"k": held(2, 1)})
    chooser.observe(kept, [[8.0], [0.0]])
    assert chooser.choose_indexes(kept) == [1]
    chooser.observe(kept, [[0.0], [3.0]])
    chooser.observe(kept, [[0.0], [1.0]])
    assert chooser.choose_indexes(kept) == [0], "8 / 4 < 3 / 2 + 1"


def test_a_new_version_starts_anew_for_all() -> None:
    chooser = VersionChooser()
    before, after = read({"k": held(2, 1)}), read({"k": held(3, 2)})
    chooser.observe(before, [[5.0], [1.0]])
    assert chooser.choose_indexes(after) == [0], "nobody has scored the newest version yet"
    chooser.observe(after, [[1.0], [2.0]])
    assert chooser.choose_indexes(after) == [0]
    chooser.observe(before, [[0.0], [9.0]])
    assert chooser.choose_indexes(after) == [0], "a late label of an earlier read"
    chooser.observe(after, [[4.0], [0.0]])
    assert chooser.choose_indexes(after) == [1]


def test_a_late_version_between_others_starts_anew() -> None:
    chooser = VersionChooser()
    before, after = read({"k": held(3, 1)}), read({"k": held(3, 2, 1)})
    chooser.observe(before, [[5.0], [1.0]])
    assert chooser.choose_indexes(before) == [1]
    assert chooser.choose_indexes(after) == [0], "what was second is third now"


def test_what_has_no_error_or_no_value_never_wins() -> None:
    chooser = VersionChooser()
    kept = read({"a": held(3, 2, 1), "b": held(3)})
    chooser.observe(kept, [[5.0, 5.0], [NAN, NAN], [4.0, NAN]])
    assert chooser.choose_indexes(kept).tolist() == [2, 0]
    chooser.observe(kept, [[5.0, 5.0], [0.0, 0.0], [4.0, 0.0]])
    assert chooser.choose_indexes(kept).tolist() == [2, 0]
    only_older = read({"a": held(9, 8)})
    chooser.observe(only_older, [[NAN], [7.0]])
    assert chooser.choose_indexes(only_older) == [1]


def test_a_deleted_or_expired_version_is_not_served() -> None:
    old = pack_value([1.0], Version(1, 1), 0, 0)
    expired = pack(unpack(pack_value([2.0], Version(2, 1), NOW_MS, NOW_MS)), unpack(old))
    grave = pack_tombstone(Version(1, 1), NOW_MS, NOW_MS)
    deleted = pack(unpack(pack_value([2.0], Version(2, 1), NOW_MS, NOW_MS)), unpack(grave))
    kept = read(
        {"expired": expired, "deleted": deleted, "both": held(2, 1, event_time=0)}, ttl_ms=1
    )
    chooser = VersionChooser()
    chooser.observe(kept, [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    assert chooser.choose_indexes(kept).tolist() == [0, 0, 0]
    assert chooser.choose(kept).statuses == ["PRESENT", "PRESENT", "EXPIRED"]


def test_tables_are_apart() -> None:
    chooser = VersionChooser()
    kept, other = read({"k": held(2, 1)}), read({"k": held(2, 1)}, "other")
    chooser.observe(kept, [[1.0], [0.0]])
    assert chooser.choose_indexes(kept) == [1]
    assert chooser.choose_indexes(other) == [0]


def test_nothing_is_nothing() -> None:
    chooser = VersionChooser()
    kept = read({})
    chooser.observe(kept, np.zeros((1, 0)))
    assert len(chooser.choose(kept)) == 0


@dataclass
class Tallies:
    """The model of one key."""

    versions: list[int] = field(default_factory=list)
    tallies: list[float] = field(default_factory=list)

    def observe(self, versions: list[int], errors: list[float], decay: float) -> None:
        if (
            not versions
            or all(np.isnan(errors))
            or (self.versions and versions[0] < self.versions[0])
        ):
            return
        if versions != self.versions:
            self.versions, self.tallies = versions, [0.0] * len(versions)
        new = [float("inf") if np.isnan(e) else e for e in errors]
        self.tallies = [decay * t + e for t, e in zip(self.tallies, new, strict=True)]

    def best(self, versions: list[int]) -> int:
        if not versions or versions != self.versions:
            return 0
        return self.tallies.index(min(self.tallies))


ERRORS = st.sampled_from([0.0, 0.25, 1.0, 1.0, 3.0, NAN])


@given(st.data())
def test_it_does_what_the_model_does(data: st.DataObject) -> None:
    chooser, decay = VersionChooser(decay=0.7, max_keys=10), 0.7
    keys = ["a", "b", "c"]
    chains: dict[str, list[int]] = {key: [] for key in keys}
    model = {key: Tallies() for key in keys}
    reads: list[tuple[list[str], dict[str, list[int]]]] = []
    for now in range(1, data.draw(st.integers(1, 12))):
        for key in data.draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)):
            chains[key] = [now, *chains[key]][:3]
        asked = data.draw(st.lists(st.sampled_from(keys), max_size=5))
        reads.append((asked, {key: list(chain) for key, chain in chains.items()}))
        asked, seen = data.draw(st.sampled_from(reads))
        kept = KeptVersions("t", asked, [held(*seen[key]) for key in asked], NOW_MS, None)
        errors = [
            data.draw(st.lists(ERRORS, min_size=len(seen[key]), max_size=len(seen[key])))
            for key in asked
        ]
        matrix = np.full((len(kept.versions), len(asked)), np.nan)
        for i, (key, of_key) in enumerate(zip(asked, errors, strict=True)):
            matrix[: len(of_key), i] = of_key
            model[key].observe(seen[key], of_key, decay)
        chooser.observe(kept, matrix)
        current = KeptVersions("t", keys, [held(*chains[key]) for key in keys], NOW_MS, None)
        expected = [model[key].best(chains[key]) for key in keys]
        assert chooser.choose_indexes(current).tolist() == expected


def test_keys_that_were_not_seen_for_longest_are_forgotten() -> None:
    chooser = VersionChooser(max_keys=80)

    def of(first: int, count: int) -> KeptVersions:
        return read({f"k{i}": held(2, 1) for i in range(first, first + count)})

    errors = np.array([[1.0], [0.0]])
    chooser.observe(of(0, 80), np.repeat(errors, 80, axis=1))
    assert chooser.choose_indexes(of(0, 40)).all(), "these are seen later than the others"
    chooser.observe(of(100, 30), np.repeat(errors, 30, axis=1))
    assert chooser.choose_indexes(of(0, 40)).all()
    assert chooser.choose_indexes(of(100, 30)).all()
    assert chooser.choose_indexes(of(40, 40)).sum() == 10
    chooser.observe(of(200, 500), np.repeat(errors, 500, axis=1))
    assert chooser.choose_indexes(of(200, 500)).sum() == 80


def test_threads_share_a_chooser() -> None:
    chooser = VersionChooser(decay=1.0, max_keys=50)
    kept = read({f"k{i}": held(2, 1) for i in range(50)})
    errors = np.repeat([[1.0], [2.0]], 50, axis=1)
    problems: list[BaseException] = []

    def work(flip: bool) -> None:
        try:
            for _ in range(200):
                chooser.observe(kept, errors[::-1] if flip else errors)
                chooser.choose(kept)
        except BaseException as e:
            problems.append(e)

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    # Both versions have the same sum of errors now, unless an update was lost.
    assert not chooser.choose_indexes(kept).any()
    chooser.observe(kept, np.repeat([[1e-6], [0.0]], 50, axis=1))
    assert chooser.choose_indexes(kept).all()


def test_the_rule() -> None:
    tallies = updated_tallies(np.array([[2.0, 0.0]]), np.array([[1.0, NAN]]), 0.5)
    assert tallies.tolist() == [[2.0, float("inf")]]
    usable = np.array([[False, True, False], [True, True, False]])
    assert best_versions(np.array([[0.0, 1.0, 5.0], [1.0, 1.0, 1.0]]), usable).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("errors", "problem"),
    [
        ([[1.0]], r"must have the shape \[versions, keys\], \(2, 1\), not \(1, 1\)"),
        ([1.0, 1.0], "must have the shape"),
        ([[1.0], [-1.0]], "must be 0 or more, not -1.0"),
    ],
)
def test_wrong_errors_are_refused(errors: list[list[float]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        VersionChooser().observe(read({"k": held(2, 1)}), errors)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"decay": 1.1}, "decay must be 0 to 1"), ({"max_keys": 0}, "max_keys")],
)
def test_wrong_settings_are_refused(arguments: dict[str, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        VersionChooser(**arguments)  # type: ignore[arg-type]
