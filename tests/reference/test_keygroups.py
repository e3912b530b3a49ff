"""The restated assignment gives what Flink 2.2.1's ``KeyGroupRangeAssignment`` gave."""

from __future__ import annotations

import pytest

from tests.reference.keygroups import java_hash, key_group, owner

# key: hashCode, group of 128, group of 7, subtask of 2 and of 3 (128 groups), of 5 (32768 groups)
FROM_FLINK = {
    "": (0, 94, 0, 1, 2, 4),
    "a": (97, 81, 2, 1, 1, 2),
    "b": (98, 22, 0, 0, 0, 4),
    "vm-17": (112267516, 81, 3, 1, 1, 3),
    "key-0": (101943362, 31, 3, 0, 0, 2),
    "key-1": (101943363, 54, 6, 0, 1, 3),
    "München": (-1652442035, 123, 4, 1, 2, 1),
    "😀 smile": (-1559691765, 54, 1, 0, 1, 2),
    "polygenelubricants": (-2147483648, 108, 3, 1, 2, 1),
    "user:42": (-147170163, 11, 1, 0, 0, 0),
    "0" * 64: (-1348943872, 10, 2, 0, 0, 3),
}

GROUPS_OF_10_THOUSAND = 8945452514215510318
"""Polynomial sum, in Java's long, of the groups of k0 to k9999 of 128."""


@pytest.mark.parametrize("key", FROM_FLINK)
def test_assignment_of_known_keys(key: str) -> None:
    groups = key_group(key, 128), key_group(key, 7)
    subtasks = (
        owner(groups[0], 128, 2),
        owner(groups[0], 128, 3),
        owner(key_group(key, 32768), 32768, 5),
    )
    assert (java_hash(key), *groups, *subtasks) == FROM_FLINK[key]


def test_assignment_of_many_keys() -> None:
    total = 0
    for i in range(10_000):
        total = (total * 31 + key_group(f"k{i}", 128)) % 2**64
    assert total == GROUPS_OF_10_THOUSAND % 2**64


def test_every_group_has_one_owner_and_ranges_are_contiguous() -> None:
    owners = [owner(group, 128, 3) for group in range(128)]
    assert owners == sorted(owners)
    assert set(owners) == {0, 1, 2}
