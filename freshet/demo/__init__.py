"""The demo: two policies of the real feature job on real readings, and regions to send to."""
