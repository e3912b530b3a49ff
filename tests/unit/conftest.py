"""Settings of the unit tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A shared machine may be slow at any moment; that must not fail a test of correctness.
settings.register_profile(
    "unit", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60
)
settings.load_profile("unit")
