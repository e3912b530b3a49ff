"""The lots that the policy ``random`` draws, restated from their description."""

from __future__ import annotations

_MASK = (1 << 64) - 1


def lot(seed: int, key: str, step_end_ms: int) -> float:
    """A key's lot in a step, in [0, 1): FNV-1a over UTF-8, mixed with the seed, then the step."""
    hashed = 0xCBF29CE484222325
    for unit in key.encode():
        hashed = ((hashed ^ unit) * 0x100000001B3) & _MASK
    return (_mix(_mix(hashed + seed) + step_end_ms) >> 11) / (1 << 53)


def _mix(bits: int) -> int:
    """The finalizer of splitmix64."""
    mixed = bits & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
