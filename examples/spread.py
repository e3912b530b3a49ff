"""A feature function of one's own: how far the newest prices spread, in a JSON-like value.

Submit with ``freshet submit examples/spread.py``.
"""

from dataclasses import dataclass

import numpy as np

from freshet import Duration, FeatureFunction, FeatureTable, Rate, Source, Window


@dataclass
class Spread(FeatureFunction):
    """Distance between two quantiles of the window."""

    low: float = 0.1
    high: float = 0.9

    def compute(self, window: Window) -> dict[str, float | int]:
        """The quantiles, their distance and the number of points."""
        low, high = np.quantile(window.values, [self.low, self.high])
        return {"low": low, "high": high, "spread": high - low, "points": len(window)}

    def validate(self, table: FeatureTable) -> list[str]:
        """The quantiles must be in order."""
        if 0 <= self.low < self.high <= 1:
            return []
        return [f"function: low {self.low} and high {self.high} must be ascending in [0, 1]"]


table = FeatureTable(
    name="price_spread",
    source=Source(topic="trades", key="symbol", timestamp="time", value="price", id="trade_id"),
    window=Duration("1h"),
    min_points=10,
    function=Spread(low=0.05, high=0.95),
    budget=Rate(200),
    ttl="1d",
)
