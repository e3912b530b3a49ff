"""What Cloudcast's paper claims in numbers (Wooders et al., NSDI 2024), each with its place."""

from __future__ import annotations

from typing import NamedTuple


class Claim(NamedTuple):
    """The range of a figure over the configurations that it was measured on."""

    least: float
    most: float
    where: str

    def as_percent(self) -> str:
        """Such as "46 to 62.4 %"."""
        return f"{self.least * 100:g} to {self.most * 100:g} %"

    def as_factor(self) -> str:
        """Such as "2 to 2.84 ×"."""
        return f"{self.least:g} to {self.most:g} ×"


_DEPLOYED = "§5.1, Figures 9 and 10: footnotes 2 to 5 on real clouds"

SAVING_OVER_DIRECT = Claim(0.46, 0.624, _DEPLOYED)
"""Of the high-throughput plan (HT), the one with the tightest deadline."""

SPEED_UP_OVER_DIRECT = Claim(2.0, 2.84, _DEPLOYED)
SAVING_OVER_SPIDER = Claim(0.284, 0.44, _DEPLOYED)
SPEED_UP_OVER_SPIDER = Claim(1.11, 1.35, _DEPLOYED)

SAVING_OVER_S3 = 0.615
"""Footnote 6, §5.2.1 and Figure 11, on real clouds; S3's egress costs what direct's does."""

SPEED_UP_OVER_S3 = 2.3

SAVING_OVER_BITTORRENT = 0.284
"""Footnote 3, §1 and Figure 12, on real clouds."""

SPEED_UP_OVER_BITTORRENT = 7.7

APPROXIMATIONS = {
    "none": (0.0, 1.0),
    "node clustering": (0.003, 9.04),
    "hop constraining": (0.011, 5.72),
    "stripe-iterative": (0.0, 7.02),
    "all": (0.011, 30.68),
}
"""Mean error of the cost, and speed-up of the solver (geometric mean): Table 3, 100 samples."""

VM_START_S = {"aws": 35.0, "azure": 56.0, "gcp": 34.0}
"""Seconds until a VM has started (Figure 15)."""
