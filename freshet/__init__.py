"""Freshet: fresh features, in every region, for the least compute and egress."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# What users import from here, by the module that has it. Loaded on first use: the worker of a
# feature function needs neither the Kafka nor the Redis client.
_EXPORTS = {
    "ALSUserEmbedding": "freshet.functions",
    "Aggregate": "freshet.functions",
    "Client": "freshet.client",
    "Config": "freshet.config",
    "ConfigError": "freshet.errors",
    "Duration": "freshet.table",
    "EventTimeStep": "freshet.table",
    "Feature": "freshet.client",
    "FeatureFunction": "freshet.functions",
    "FeatureStatus": "freshet.client",
    "FeatureTable": "freshet.table",
    "FreshetError": "freshet.errors",
    "KeptVersions": "freshet.client",
    "ItemFactors": "freshet.functions",
    "OnDemand": "freshet.table",
    "Points": "freshet.table",
    "Rate": "freshet.table",
    "RateLimited": "freshet.functions",
    "STLDecomposition": "freshet.functions",
    "Source": "freshet.table",
    "TimeShare": "freshet.table",
    "Version": "freshet.version",
    "VersionChooser": "freshet.choosing",
    "Window": "freshet.functions",
    "load_table": "freshet.table",
}

if TYPE_CHECKING:
    from freshet.choosing import VersionChooser
    from freshet.client import Client, Feature, FeatureStatus, KeptVersions
    from freshet.config import Config
    from freshet.errors import ConfigError, FreshetError
    from freshet.functions import (
        Aggregate,
        ALSUserEmbedding,
        FeatureFunction,
        ItemFactors,
        RateLimited,
        STLDecomposition,
        Window,
    )
    from freshet.table import (
        Duration,
        EventTimeStep,
        FeatureTable,
        OnDemand,
        Points,
        Rate,
        Source,
        TimeShare,
        load_table,
    )
    from freshet.version import Version

__all__ = [
    "ALSUserEmbedding",
    "Aggregate",
    "Client",
    "Config",
    "ConfigError",
    "Duration",
    "EventTimeStep",
    "Feature",
    "FeatureFunction",
    "FeatureStatus",
    "FeatureTable",
    "FreshetError",
    "ItemFactors",
    "KeptVersions",
    "OnDemand",
    "Points",
    "Rate",
    "RateLimited",
    "STLDecomposition",
    "Source",
    "TimeShare",
    "Version",
    "VersionChooser",
    "Window",
    "load_table",
]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'freshet' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
