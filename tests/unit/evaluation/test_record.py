"""Bookkeeping of an arm."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.evaluation.workload import rounds


@given(st.lists(st.integers(0, 5), max_size=40))
def test_rounds_hold_each_query_once_in_order_of_its_key(keys: list[int]) -> None:
    array = np.array(keys, np.int64)
    parts = rounds(array)
    flat = [int(i) for part in parts for i in part]
    assert sorted(flat) == list(range(len(keys)))
    for number, part in enumerate(parts):
        assert len(set(array[part].tolist())) == len(part)
        for query in part.tolist():
            assert keys[:query].count(keys[query]) == number
