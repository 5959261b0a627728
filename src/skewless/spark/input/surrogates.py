"""Numbers that Spark's own hash sends to a wanted partition.

Spark places rows by `pmod(murmur3(key, 42), P)`. Where it takes no other word for it (state, and
shuffles before 4.1) a row is sent to partition i by the int whose hash is i, whatever P is.
"""

from __future__ import annotations

_SPARK_SEED = 42


def surrogate(worker: int) -> int:
    """The int whose Spark `hash` is the worker's number: murmur3 of an int, undone step by step."""
    h = worker ^ worker >> 16
    h = _undone(h, 0xC2B2AE35)
    h ^= h >> 13 ^ h >> 26
    h = _undone(h, 0x85EBCA6B)
    h ^= h >> 16
    h = _rotated_back(_undone((h ^ 4) - 0xE6546B64, 5), 13)
    k = _rotated_back(_undone(h ^ _SPARK_SEED, 0x1B873593), 15)
    value = _undone(k, 0xCC9E2D51)
    return value - (1 << 32) if value >> 31 else value


def _undone(product: int, factor: int) -> int:
    """What 32-bit multiplication by an odd factor made this of."""
    return product * pow(factor, -1, 1 << 32) & 0xFFFFFFFF


def _rotated_back(value: int, bits: int) -> int:
    return (value >> bits | value << (32 - bits)) & 0xFFFFFFFF
