"""xxh64 as compiled functions: what Spark's `xxhash64` computes of one value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skewless.compiled import allocating, compiled, inlined

U64 = npt.NDArray[np.uint64]

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)


@inlined
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@inlined
def _avalanche(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> np.uint64(33))) * P2
    h = (h ^ (h >> np.uint64(29))) * P3
    return h ^ (h >> np.uint64(32))


@inlined
def hash_long(x: np.uint64, seed: np.uint64) -> np.uint64:
    """xxh64 of the 8 bytes of x: Spark's xxhash64 of a long."""
    h = seed + P5 + np.uint64(8)
    h ^= _rotate(x * P2, 31) * P1
    return _avalanche(_rotate(h, 27) * P1 + P4)


@inlined
def hash_int(x: np.uint64, seed: np.uint64) -> np.uint64:
    """xxh64 of the low 4 bytes of x: Spark's xxhash64 of an int."""
    h = seed + P5 + np.uint64(4)
    h ^= (x & np.uint64(0xFFFFFFFF)) * P1
    return _avalanche(_rotate(h, 23) * P2 + P3)


@inlined
def _word(data: npt.NDArray[np.uint8], at: int) -> np.uint64:
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value


@inlined
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * P2, 31) * P1


@compiled
def hash_bytes(data: npt.NDArray[np.uint8], start: int, stop: int, seed: np.uint64) -> np.uint64:
    """xxh64 of data[start:stop]: Spark's xxhash64 of a string or a binary value."""
    at = start
    if stop - start >= 32:
        a, b, c, d = seed + P1 + P2, seed + P2, seed, seed - P1
        while at + 32 <= stop:
            a = _round(a, _word(data, at))
            b = _round(b, _word(data, at + 8))
            c = _round(c, _word(data, at + 16))
            d = _round(d, _word(data, at + 24))
            at += 32
        h = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * P1 + P4
    else:
        h = seed + P5
    h += np.uint64(stop - start)
    while at + 8 <= stop:
        h = _rotate(h ^ _round(np.uint64(0), _word(data, at)), 27) * P1 + P4
        at += 8
    if at + 4 <= stop:
        half = np.uint64(0)
        for i in range(4):
            half |= np.uint64(data[at + i]) << np.uint64(8 * i)
        h = _rotate(h ^ (half * P1), 23) * P2 + P3
        at += 4
    while at < stop:
        h = _rotate(h ^ (np.uint64(data[at]) * P5), 11) * P1
        at += 1
    return _avalanche(h)


@allocating
def hash_longs(values: U64, seeds: U64) -> U64:
    """Many longs, each with a seed of its own."""
    out = np.empty(values.size, np.uint64)
    for i in range(values.size):
        out[i] = hash_long(values[i], seeds[i])
    return out


@allocating
def hash_ints(values: U64, seeds: U64) -> U64:
    """Many ints, each with a seed of its own."""
    out = np.empty(values.size, np.uint64)
    for i in range(values.size):
        out[i] = hash_int(values[i], seeds[i])
    return out


@allocating
def hash_slices(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], seeds: U64) -> U64:
    """Many texts, which lie in `data` between the offsets, each with a seed of its own."""
    out = np.empty(offsets.size - 1, np.uint64)
    for i in range(out.size):
        out[i] = hash_bytes(data, offsets[i], offsets[i + 1], seeds[i])
    return out
