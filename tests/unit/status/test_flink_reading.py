"""Goal: metrics of a job's subtasks become figures of a table.

Method: answers as Flink's REST gives them, in which a number that is none is a text.
Fails when: a histogram without a sample hides that of another subtask, or ends the command.
"""

from __future__ import annotations

import pytest

from freshet.status.flink_reading import _SUMMED, _WORST, TableMetrics, _add


@pytest.mark.parametrize("order", [1, -1])
def test_a_histogram_without_a_sample_says_nothing(order: int) -> None:
    name = next(iter(_WORST))
    metrics: TableMetrics = {}
    for value in ("NaN", 12.5, "NaN")[::order]:
        _add(metrics, name, {"sum": value, "max": value})
    assert metrics == {name: 12.5}


def test_counters_are_added() -> None:
    name = next(iter(_SUMMED))
    metrics: TableMetrics = {}
    _add(metrics, name, {"sum": 2.0, "max": 2.0})
    _add(metrics, name, {"sum": 3.0, "max": 3.0})
    assert metrics == {name: 5.0}


def test_nothing_is_known_without_a_sample() -> None:
    metrics: TableMetrics = {}
    _add(metrics, next(iter(_WORST)), {"sum": "NaN", "max": "NaN"})
    assert metrics == {}
