"""Table definitions: what a feature table is computed from, how, how often and for whom."""

from freshet.table.definition import FeatureTable
from freshet.table.loading import load_table, table_from_mapping
from freshet.table.parts import (
    Budget,
    Duration,
    EventTimeStep,
    OnDemand,
    Points,
    Rate,
    Source,
    TimeShare,
    WindowExtent,
)
from freshet.table.policies import POLICIES, POLICY_NEEDS, Need

__all__ = [
    "POLICIES",
    "POLICY_NEEDS",
    "Budget",
    "Duration",
    "EventTimeStep",
    "FeatureTable",
    "Need",
    "OnDemand",
    "Points",
    "Rate",
    "Source",
    "TimeShare",
    "WindowExtent",
    "load_table",
    "table_from_mapping",
]
