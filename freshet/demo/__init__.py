"""The demo: two policies of the real feature job, side by side, on real readings."""
