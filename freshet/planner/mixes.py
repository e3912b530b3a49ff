"""Stripes by the names of regions, as trees by their indexes."""

from __future__ import annotations

from collections.abc import Iterable

from freshet.errors import ConfigError
from freshet.planner.plan import Stripe
from freshet.planner.problem import Network
from freshet.planner.trees import Tree
from freshet.table.checks import suggestion


def trees_of(stripes: Iterable[Stripe], network: Network) -> list[tuple[Tree, float]]:
    """Tree and fraction of each stripe.

    Raises:
        ConfigError: the network lacks a region of a stripe.
    """
    stripes = list(stripes)
    used = sorted({region for stripe in stripes for edge in stripe.edges for region in edge})
    unknown = [region for region in used if region not in network.index]
    if unknown:
        known = list(network.regions)
        raise ConfigError(
            [f"region {r!r} is unknown{suggestion(r, known)}" for r in unknown], "plan"
        )
    index = network.index
    return [
        (tuple(sorted((index[u], index[v]) for u, v in stripe.edges)), stripe.fraction)
        for stripe in stripes
    ]


def mix_of(stripes: Iterable[Stripe], network: Network) -> dict[Tree, float]:
    """Trees with the fraction that takes each; equal trees are one.

    Raises:
        ConfigError: the network lacks a region of a stripe.
    """
    mix: dict[Tree, float] = {}
    for tree, fraction in trees_of(stripes, network):
        mix[tree] = mix.get(tree, 0.0) + fraction
    return mix
