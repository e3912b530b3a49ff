"""Tests of the emulated WAN."""
