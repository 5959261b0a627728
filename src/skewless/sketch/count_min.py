"""Count-Min: over-estimates of every key's weight in rows × columns counters.

Cormode, Muthukrishnan (2005): each row hashes a key to one of its counters; the least of a key's
counters is its estimate. With ⌈e/ε⌉ columns and ⌈ln(1/δ)⌉ rows it exceeds the truth by more than
ε · total with probability at most δ. That needs only a 2-universal family; ours is Carter and
Wegman's over the field of p = 2^61 − 1: the two 32-bit halves of an identity are a vector,
h(x) = a · high + b · low + c mod p with a, b, c drawn at random. (Reducing the 64 bits mod p first
would let keys that differ by p collide always.) 31 of its bits are scaled to the columns.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.compiled import allocating, compiled, inlined
from skewless.errors import SkewlessError

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]

PRIME = (1 << 61) - 1
_P = np.uint64(PRIME)
_LOW_32 = np.uint64(0xFFFFFFFF)
_LOW_29 = np.uint64((1 << 29) - 1)


class CountMin(NamedTuple):
    """Counters and the hash functions of the rows."""

    counts: F64  # [rows, columns]
    hashes: U64  # [rows, 3] a, b, c
    total: F64  # [1]


def draw_hashes(rows: int, seed: int) -> U64:
    """That many functions of the family, drawn by the seed: u64[rows, 3]."""
    return np.random.default_rng(seed).integers(0, PRIME, (rows, 3), dtype=np.uint64)


def count_min(epsilon: float, delta: float, seed: int = 0) -> CountMin:
    """An empty sketch whose estimates exceed the truth by ε · total with probability ≤ δ."""
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise SkewlessError(
            f"Count-Min takes epsilon and delta between 0 and 1, not {epsilon} and {delta}."
        )
    rows, columns = math.ceil(math.log(1 / delta)), math.ceil(math.e / epsilon)
    return CountMin(np.zeros((rows, columns)), draw_hashes(rows, seed), np.zeros(1))


@inlined
def _times(a: np.uint64, x: np.uint64) -> np.uint64:
    """a · x mod p, not fully reduced (< 2^62 + 2^33), for a < 2^61 and x < 2^32."""
    high = (a >> np.uint64(32)) * x
    low = (a & _LOW_32) * x
    # 2^61 ≡ 1: what a factor of 2^32 carries beyond bit 61 comes back at the bottom.
    carried = (high >> np.uint64(29)) + ((high & _LOW_29) << np.uint64(32))
    return carried + (low & _P) + (low >> np.uint64(61))


@inlined
def universal_hash(key: np.uint64, a: np.uint64, b: np.uint64, c: np.uint64) -> np.uint64:
    """a · high + b · low + c mod p."""
    one = _times(a, key >> np.uint64(32))
    two = _times(b, key & _LOW_32)
    total = (one & _P) + (one >> np.uint64(61)) + (two & _P) + (two >> np.uint64(61)) + c
    total = (total & _P) + (total >> np.uint64(61))
    return total - _P if total >= _P else total


@inlined
def universal_choice(
    key: np.uint64, a: np.uint64, b: np.uint64, c: np.uint64, size: int
) -> np.int64:
    """The hash scaled to 0 … size − 1."""
    bits = universal_hash(key, a, b, c) >> np.uint64(30)
    return np.int64((bits * np.uint64(size)) >> np.uint64(31))


@inlined
def add(sketch: Any, key: np.uint64, weight: float) -> None:
    """Count a message of that weight."""
    counts, hashes = sketch.counts, sketch.hashes
    for row in range(counts.shape[0]):
        column = universal_choice(
            key, hashes[row, 0], hashes[row, 1], hashes[row, 2], counts.shape[1]
        )
        counts[row, column] += weight
    sketch.total[0] += weight


@compiled
def add_all(sketch: Any, keys: U64, weights: F64) -> None:
    """Count many messages."""
    for i in range(keys.size):
        add(sketch, keys[i], weights[i])


@inlined
def estimate(sketch: Any, key: np.uint64) -> float:
    """At most how much weight the key had."""
    counts, hashes = sketch.counts, sketch.hashes
    least = np.inf
    for row in range(counts.shape[0]):
        column = universal_choice(
            key, hashes[row, 0], hashes[row, 1], hashes[row, 2], counts.shape[1]
        )
        least = min(least, counts[row, column])
    return least


@allocating
def estimates(sketch: Any, keys: U64) -> F64:
    """The estimate of each key."""
    out = np.empty(keys.size)
    for i in range(keys.size):
        out[i] = estimate(sketch, keys[i])
    return out


def merge(a: CountMin, b: CountMin) -> CountMin:
    """The sketch of both streams; exact, if both use the same functions."""
    if not np.array_equal(a.hashes, b.hashes) or a.counts.shape != b.counts.shape:
        raise SkewlessError(
            "Count-Min sketches merge only when built with the same epsilon, delta and seed."
        )
    return CountMin(a.counts + b.counts, a.hashes, a.total + b.total)
