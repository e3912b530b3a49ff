"""Goal: trees are the lightest there are, and bounds hold. Method: compare with brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.planner.problem import Floats
from freshet.planner.spanning import lightest_spanning_tree
from freshet.planner.steiner import lightest_tree
from freshet.planner.steiner_bound import bounded_trees
from freshet.planner.trees import Tree


def random_weights(seed: int, n: int, missing: float) -> Floats:
    """Weights of edges [n, n], some infinite, some zero, some equal."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 20, (n, n)).astype(float)
    weights[rng.random((n, n)) < missing] = np.inf
    np.fill_diagonal(weights, np.inf)
    return weights


def weight_of(weights: Floats, tree: Tree) -> float:
    return float(sum(weights[edge] for edge in tree))


def lightest_by_trial(weights: Floats, root: int, nodes: list[int]) -> float:
    """Weight of the lightest spanning tree: every choice of parents is tried."""
    others = [v for v in nodes if v != root]
    best = np.inf
    for parents in itertools.product(nodes, repeat=len(others)):
        parent = dict(zip(others, parents, strict=True))
        if all(_leads_to(root, v, parent) for v in others):
            best = min(best, sum(weights[u, v] for v, u in parent.items()))
    return float(best)


def _leads_to(root: int, node: int, parent: dict[int, int]) -> bool:
    for _ in range(len(parent) + 1):
        if node == root:
            return True
        node = parent[node]
    return False


@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.0, 0.4]))
@settings(max_examples=40)
def test_spanning_tree(seed: int, n: int, missing: float) -> None:
    weights = random_weights(seed, n, missing)
    tree = lightest_spanning_tree(weights, 0, range(n))
    best = lightest_by_trial(weights, 0, list(range(n)))
    assert (np.inf if tree is None else weight_of(weights, tree)) == best


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0.0, 0.4]))
@settings(max_examples=40)
def test_steiner_tree(seed: int, terminals: int, missing: float) -> None:
    n = terminals + 3
    weights = random_weights(seed, n, missing)
    wanted = list(range(1, terminals + 1))
    best = min(
        lightest_by_trial(weights, 0, [0, *wanted, *extra])
        for size in range(n - terminals)
        for extra in itertools.combinations(range(terminals + 1, n), size)
    )
    tree, weight = lightest_tree(weights, 0, wanted)
    assert weight == best
    if np.isfinite(best):
        assert weight_of(weights, tree) == best


@given(st.integers(0, 10_000), st.integers(2, 7))
@settings(max_examples=40)
def test_bound_for_many_terminals(seed: int, terminals: int) -> None:
    weights = random_weights(seed, 12, 0.3)
    wanted = list(range(1, terminals + 1))
    _, best = lightest_tree(weights, 0, wanted)
    trees, bound = bounded_trees(weights, 0, wanted)
    assert bound <= best + 1e-9
    if trees:
        assert weight_of(weights, trees[0]) >= best - 1e-9
        assert weight_of(weights, trees[0]) <= 1.5 * best + 1e-9
    else:
        assert best == np.inf


def test_unreachable_terminal() -> None:
    weights = np.full((3, 3), np.inf)
    weights[0, 1] = 1.0
    assert lightest_tree(weights, 0, [1, 2]) == ((), np.inf)
    assert bounded_trees(weights, 0, [1, 2]) == ([], np.inf)
    assert lightest_spanning_tree(weights, 0, [1, 2]) is None


@pytest.mark.parametrize("terminals", [11, 20])
def test_many_terminals_over_a_large_graph(terminals: int) -> None:
    weights = random_weights(7, 71, 0.0) + 1.0
    trees, bound = bounded_trees(weights, 0, list(range(1, terminals + 1)))
    assert bound <= weight_of(weights, trees[0]) <= 1.5 * bound
