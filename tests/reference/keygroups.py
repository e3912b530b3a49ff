"""Which subtask owns a key: Flink's assignment, restated from its definition.

A key's group is the murmur3 hash of its Java hash code, modulo the maximum parallelism; groups are
dealt to subtasks in contiguous ranges. ``test_keygroups.py`` pins values that Flink itself gave.
"""

from __future__ import annotations

from functools import cache

_MASK = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, a signed 32-bit integer."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8) + low) & _MASK
    return _signed(code)


@cache
def key_group(key: str, max_parallelism: int) -> int:
    """The key's group, 0 to ``max_parallelism - 1``."""
    return _murmur(java_hash(key)) % max_parallelism


def owner(group: int, max_parallelism: int, parallelism: int) -> int:
    """Index of the subtask that owns a key group."""
    return group * parallelism // max_parallelism


def _murmur(code: int) -> int:
    """Murmur3 of one 32-bit word, made non-negative as Flink does it."""
    word = (code & _MASK) * 0xCC9E2D51 & _MASK
    word = _rotate(word, 15) * 0x1B873593 & _MASK
    word = (_rotate(word, 13) * 5 + 0xE6546B64) & _MASK
    word ^= 4  # length in bytes
    word = (word ^ word >> 16) * 0x85EBCA6B & _MASK
    word = (word ^ word >> 13) * 0xC2B2AE35 & _MASK
    signed = _signed(word ^ word >> 16)
    return 0 if signed == -(2**31) else abs(signed)


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK


def _signed(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word
