"""Which keys are queried how often: the query distributions of RALF §2.5.3."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

ZIPF_EXPONENT = 1.0


class Queries(StrEnum):
    """How queries are distributed; in the mean there is one a key and reading."""

    UNIFORM = "uniform"
    """Every key is queried once at every reading."""

    POISSON = "poisson"
    """Each key's queries are a Poisson process, all with the same rate."""

    ZIPF = "zipf"
    """The same, with rates that fall as 1 / rank; a random key is first."""


def query_rates(queries: Queries, keys: int, seed: int) -> npt.NDArray[np.float64]:
    """Mean number of queries of each key and reading [k]; the mean over keys is 1."""
    if queries is not Queries.ZIPF:
        return np.ones(keys)
    ranks = np.random.default_rng((seed, 0)).permutation(keys) + 1
    weights = 1.0 / ranks**ZIPF_EXPONENT
    rates: npt.NDArray[np.float64] = weights * keys / weights.sum()
    return rates


def query_counts(
    queries: Queries, rates: npt.NDArray[np.float64], readings: int, step: int, seed: int
) -> npt.NDArray[np.int64]:
    """Number of queries at each reading of a step [readings, k]; the same whenever it is asked.

    Args:
        queries: the distribution.
        rates: as :func:`query_rates` gives them [k].
        readings: number of readings in the step.
        step: index of the step.
        seed: of all that is random.
    """
    shape = (readings, len(rates))
    if queries is Queries.UNIFORM:
        return np.ones(shape, np.int64)
    return np.random.default_rng((seed, 1, step)).poisson(rates, shape)
