"""A weight that no Steiner tree in time is below, for any number of terminals.

Wong's dual ascent, as in ``steiner_bound``, where paths must be in time: of each terminal, the
edges that have paid all of their weight lead to it from some nodes with some least delay. Every
path in time has a last edge that has not paid, and comes to such a node by it early enough. All
edges that might be this one pay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshet.planner.problem import Floats
from freshet.planner.steiner_in_time import ROUNDING


def ascend_in_time(
    weights: Floats,
    delays: Floats,
    early: Floats,
    limit: float,
    root: int,
    terminals: Sequence[int],
) -> tuple[float, np.ndarray]:
    """The dual ascent.

    Args:
        weights: of edges [n, n], not negative; infinite where there is none.
        delays: of edges [n, n], more than 0; infinite where there is none.
        early: least delay from the root [n].
        limit: delay of a path.
        root: where trees begin.
        terminals: that they reach.

    Returns:
        The bound, and which edges have paid all of their weight [n, n]; they hold paths in time.
        Infinite if a terminal has none.
    """
    left, latest, bound = weights.copy(), limit * (1 + ROUNDING), 0.0
    np.fill_diagonal(left, np.inf)
    left[~np.isfinite(delays)] = np.inf
    until = early[:, None] + delays
    toward = {t: _start(len(weights), t) for t in terminals}
    sizes = dict.fromkeys(terminals, 1)
    while toward:
        terminal = min(toward, key=lambda t: (sizes[t], t))
        reach = toward[terminal] = _grown(toward[terminal], left, delays)
        if reach[root] <= latest:
            del toward[terminal]
            continue
        pays = (until + reach[None, :] <= latest) & (left > 0)
        if not pays.any():
            return np.inf, left <= 0
        step = float(left[pays].min())
        if not np.isfinite(step):
            return np.inf, left <= 0
        bound += step
        left[pays] -= step
        sizes[terminal] = int(pays.sum())
    return bound, left <= 0.0


def _start(n: int, terminal: int) -> Floats:
    reach = np.full(n, np.inf)
    reach[terminal] = 0.0
    return reach


def _grown(reach: Floats, left: Floats, delays: Floats) -> Floats:
    """Least delays to the terminal over edges that have paid."""
    first, last = np.nonzero(left <= 0.0)
    if not len(first):
        return reach
    steps = delays[first, last]
    while True:
        longer = reach.copy()
        np.minimum.at(longer, first, steps + reach[last])
        if not (longer < reach).any():
            return reach
        reach = longer
