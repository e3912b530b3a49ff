"""Column generation: the best mix of all trees, of which only those are made that help.

Each round solves the master program over the known trees, takes its dual values as prices of
capacity, and adds the tree that is lightest under them: a directed Steiner tree. The same prices
give a lower bound over all trees (Lagrange), so that the search can end as soon as it is close.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from freshet.planner.optimal.master import Duals, Master, Solution, UnsolvedError
from freshet.planner.problem import Floats
from freshet.planner.trees import Tree

Pricing = Callable[[Floats], tuple[list[Tree], float]]
"""Weights of links [n, n] to light trees, and a weight that no tree is below."""

TOLERANCE = 1e-5
"""Relative gap at which a program counts as solved."""

_MAX_ROUNDS = 400
_STALL_ROUNDS = 100
"""So many rounds without progress end the search, which a bound that is not exact may need."""

_INERTIA = 0.5
"""Prices stay so far with the best ones known: they swing less, and fewer rounds are needed."""


@dataclass(frozen=True)
class Relaxed:
    """An optimum over all trees, up to its gap."""

    solution: Solution
    bound: float
    duals: Duals
    """The prices that gave the bound."""


def generate_columns(
    master: Master,
    pricing: Pricing,
    on_tree: Callable[[Tree], None],
    *,
    cutoff: float = float("inf"),
    tolerance: float = TOLERANCE,
) -> Relaxed:
    """Adds trees until the master program is solved over all of them.

    Args:
        master: the program, with trees that it may begin with.
        pricing: finds light trees.
        on_tree: told of each tree that is added.
        cutoff: a bound of so much ends the search: nothing better is wanted.
        tolerance: relative gap that ends it.
    """
    bound, best = -float("inf"), None
    objectives = list[float]()
    solution = master.unsolved()
    for _ in range(_MAX_ROUNDS):
        try:
            solution = master.solve()
        except UnsolvedError:
            break  # what is known so far holds
        objectives.append(solution.objective)
        duals = solution.duals if best is None else solution.duals.mixed_with(best, _INERTIA)
        for prices in (duals, solution.duals):
            trees, lightest = pricing(master.weights(prices))
            value = master.bound(prices, lightest)
            if value > bound:
                bound, best = value, prices
            new = master.add(trees)
            for tree in trees:
                on_tree(tree)
            if new or best is None:
                break
        gap = solution.objective - bound
        if bound >= cutoff or _stalled(objectives):
            break
        solved = not new or gap <= tolerance * abs(solution.objective)
        if solved and (solution.complete or not master.raise_price_of_absence()):
            break
        if solved:
            objectives.clear()
    return Relaxed(solution, bound, best or solution.duals)


def _stalled(objectives: list[float]) -> bool:
    if len(objectives) <= _STALL_ROUNDS:
        return False
    return objectives[-_STALL_ROUNDS] - objectives[-1] <= TOLERANCE * abs(objectives[-1])
