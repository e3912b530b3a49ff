"""CPU load of virtual machines: trend and daily season of the last three days.

Submit with ``freshet submit examples/cpu_stl.py``. The same as YAML: ``cpu_stl.yaml``.
"""

from freshet import FeatureTable, Points, Source, STLDecomposition, TimeShare

READINGS_PER_DAY = 288  # one every five minutes

table = FeatureTable(
    name="cpu_stl",
    source=Source(key="key", timestamp="ts", value="value"),
    window=Points(3 * READINGS_PER_DAY),
    function=STLDecomposition(period=READINGS_PER_DAY),
    policy="regret-proportional",
    budget=TimeShare(0.5),
    freshness_slo="5m",
)
