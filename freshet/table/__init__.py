"""Table definitions: what a feature table is computed from, how, how often and for whom."""

from freshet.table.definition import POLICIES, FeatureTable
from freshet.table.loading import load_table, table_from_mapping
from freshet.table.parts import (
    Budget,
    Duration,
    EventTimeStep,
    Points,
    Rate,
    Source,
    TimeShare,
    WindowExtent,
)

__all__ = [
    "POLICIES",
    "Budget",
    "Duration",
    "EventTimeStep",
    "FeatureTable",
    "Points",
    "Rate",
    "Source",
    "TimeShare",
    "WindowExtent",
    "load_table",
    "table_from_mapping",
]
