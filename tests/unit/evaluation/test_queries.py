"""Query distributions."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.evaluation.queries import Queries, query_counts, query_rates


@pytest.mark.parametrize("queries", list(Queries))
def test_there_is_one_query_a_key_and_reading_in_the_mean(queries: Queries) -> None:
    rates = query_rates(queries, 50, seed=3)
    counts = np.stack([query_counts(queries, rates, 12, step, seed=3) for step in range(200)])
    assert rates.mean() == pytest.approx(1)
    assert counts.mean() == pytest.approx(1, abs=0.02)


def test_a_step_has_the_same_queries_whenever_it_is_asked() -> None:
    rates = query_rates(Queries.ZIPF, 20, seed=1)
    first = query_counts(Queries.ZIPF, rates, 4, 7, seed=1)
    assert (first == query_counts(Queries.ZIPF, rates, 4, 7, seed=1)).all()
    assert (first != query_counts(Queries.ZIPF, rates, 4, 8, seed=1)).any()
    assert (first != query_counts(Queries.ZIPF, rates, 4, 7, seed=2)).any()


def test_zipf_is_skewed_and_its_first_key_is_random() -> None:
    rates = query_rates(Queries.ZIPF, 100, seed=0)
    top = np.sort(rates)[::-1]
    assert top[0] / top[9] == pytest.approx(10)
    firsts = {int(np.argmax(query_rates(Queries.ZIPF, 100, seed=seed))) for seed in range(10)}
    assert len(firsts) > 3
