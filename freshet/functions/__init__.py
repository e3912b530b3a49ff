"""Feature functions: the interface, the shipped ones, and the isolated worker that runs them."""

from freshet.functions.aggregate import Aggregate
from freshet.functions.als import ALSUserEmbedding
from freshet.functions.base import FeatureFunction
from freshet.functions.item_factors import ItemFactors
from freshet.functions.limits import RateLimited
from freshet.functions.stl import STLDecomposition
from freshet.functions.window import Window
from freshet.values import FeatureValue

SHIPPED: dict[str, type[FeatureFunction]] = {
    "stl": STLDecomposition,
    "als": ALSUserEmbedding,
    "aggregate": Aggregate,
}
"""The shipped functions by their names in YAML."""

__all__ = [
    "SHIPPED",
    "ALSUserEmbedding",
    "Aggregate",
    "FeatureFunction",
    "FeatureValue",
    "ItemFactors",
    "RateLimited",
    "STLDecomposition",
    "Window",
]
