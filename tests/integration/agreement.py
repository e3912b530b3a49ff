"""Compares what the pipeline did with what the model says."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from freshet import avro
from tests.integration.job import Change, Job
from tests.integration.store import ENCODING_AVRO, ENCODING_VECTOR
from tests.reference.keygroups import key_group, owner
from tests.reference.model import Choice, ReferenceModel, Version


class Update(NamedTuple):
    """What an update is, seen from outside."""

    key: str
    version: Version
    event_time_ms: int
    regret_removed: float
    encoding: str
    payload: bytes


def packed(value: Any) -> tuple[str, bytes]:
    """A value as the store and the change events carry it."""
    if isinstance(value, list):
        return "FLOAT32_VECTOR", struct.pack(f"<{len(value)}f", *value)
    return "AVRO", avro.encode_value(value)


def predicted(choice: Choice) -> Update:
    """What a choice of the model must look like."""
    return Update(
        choice.key,
        choice.version,
        choice.event_time_ms,
        choice.regret_removed,
        *packed(choice.value),
    )


def seen(change: Change) -> Update:
    """What a change event tells."""
    return Update(
        change.key,
        change.version,
        change.event_time_ms,
        change.regret_removed,
        change.encoding,
        change.payload,
    )


def assert_same_updates(job: Job, model: ReferenceModel, changes: Iterable[Change]) -> None:
    """Each subtask made the model's updates, all of them, those of a key in order, and no other.

    The changes topic must have one partition, so that it keeps the order. Between keys it has none
    to keep: the writer holds a write back while another of its key is under way.
    """

    def subtask(key: str) -> int:
        most = job.table.max_parallelism
        return owner(key_group(key, most), most, job.parallelism)

    _assert_same_lists(model, changes, subtask)


def assert_same_updates_across_rescaling(
    job: Job, model: ReferenceModel, changes: Iterable[Change]
) -> None:
    """The same for each key group, which stays together whatever subtask owns it."""
    _assert_same_lists(model, changes, lambda key: key_group(key, job.table.max_parallelism))


def assert_same_store(job: Job, model: ReferenceModel, changes: Iterable[Change]) -> None:
    """The store holds exactly the model's last value of each key, byte for byte."""
    stored = job.store.get_many(model.stored())
    assert job.store.keys() == set(stored) == set(model.stored())
    # After a failure an update may be made twice; which of the two came first is open.
    computed_at: dict[tuple[str, Version], set[int]] = defaultdict(set)
    for change in changes:
        computed_at[change.key, change.version].add(change.computed_at_ms)
    for key, choice in model.stored().items():
        value, update = stored[key], predicted(choice)
        encoding = {"FLOAT32_VECTOR": ENCODING_VECTOR, "AVRO": ENCODING_AVRO}[update.encoding]
        assert (value.version, value.event_time_ms, value.encoding, value.payload) == (
            update.version,
            update.event_time_ms,
            encoding,
            update.payload,
        ), f"key {key!r} in the store"
        assert value.computed_at_ms in computed_at[key, value.version], key


def assert_same_failures(job: Job, model: ReferenceModel) -> None:
    """Each failed computation is one dead letter, with key, time, reason and stack."""
    expected = sorted(
        (choice.key.encode(), choice.event_time_ms)
        for choice in model.choices
        if choice.failure is not None
    )
    letters = job.dead_letters()
    assert sorted((bytes(letter["key"]), letter["event_time"]) for letter in letters) == expected
    for letter in letters:
        assert letter["stage"] == "FUNCTION"
        assert "bad reading" in letter["reason"]
        assert "ValueError" in letter["stack"]
        assert letter["topic"] is None


def _assert_same_lists(
    model: ReferenceModel, changes: Iterable[Change], part: Callable[[str], int]
) -> None:
    expected: dict[int, list[Update]] = defaultdict(list)
    for choice in model.choices:
        if choice.failure is None:
            expected[part(choice.key)].append(predicted(choice))
    actual: dict[int, list[Update]] = defaultdict(list)
    for change in changes:
        assert change.partition == 0, "the changes topic must have one partition"
        assert change.operation == "UPSERT"
        actual[part(change.key)].append(seen(change))
    for which in sorted(expected.keys() | actual.keys()):
        _assert_each_key_in_order(actual[which])
        _assert_same_list(
            f"part {which}",
            sorted(expected[which], key=_by_version),
            sorted(actual[which], key=_by_version),
        )


def _by_version(update: Update) -> tuple[Version, str]:
    return update.version, update.key


def _assert_each_key_in_order(updates: Iterable[Update]) -> None:
    newest: dict[str, Version] = {}
    for update in updates:
        before = newest.get(update.key)
        assert before is None or before < update.version, (
            f"key {update.key!r} went from {before} to {update.version}"
        )
        newest[update.key] = update.version


def _assert_same_list(who: str, expected: list[Update], actual: list[Update]) -> None:
    for i, (wanted, got) in enumerate(zip(expected, actual, strict=False)):
        assert got == wanted, (
            f"{who}, update {i} of {len(expected)}; made: {_brief(actual[i : i + 5])}; "
            f"the model: {_brief(expected[i : i + 5])}"
        )
    assert len(actual) == len(expected), f"{who} made {len(actual)} updates, not {len(expected)}"


def _brief(updates: Iterable[Update]) -> str:
    return ", ".join(
        f"{u.key!r} {u.version} as of {u.event_time_ms} for {u.regret_removed:g}" for u in updates
    )
