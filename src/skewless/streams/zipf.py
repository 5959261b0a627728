"""Zipf: the key of rank r has a probability proportional to 1 / r^z.

Sampled by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates
from monotone discrete distributions", 1996): no table, so memory and the cost of a message do not
depend on the number of keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.hashing import SPARK_SEED, U64, hash_long
from skewless.streams.synthetic import Synthetic, first_bits, next_bits, unit

_SPARK_SEED = np.uint64(SPARK_SEED)


class RankSampler(NamedTuple):
    """What rejection-inversion precomputes; H is the integral of the hat x^-z from 1."""

    z: float
    keys: float
    lowest: float  # H(1.5) - 1: the first rank takes exactly its own mass
    highest: float  # H(keys + 0.5)
    sure: float  # a rank this little above the inverted point is accepted without computing H


@inlined
def _area(x: float, z: float) -> float:
    """H(x) = (x^(1-z) - 1) / (1-z), and its limit log x at z = 1."""
    log_x = math.log(x)
    t = (1.0 - z) * log_x
    if abs(t) < 1e-8:
        return log_x * (1.0 + 0.5 * t)
    return math.expm1(t) / (1.0 - z)


@inlined
def _inverse_area(area: float, z: float) -> float:
    """The x with H(x) = area."""
    t = (1.0 - z) * area
    if abs(t) < 1e-8:
        return math.exp(area * (1.0 - 0.5 * t))
    if t <= -1.0:
        return math.inf
    return math.exp(math.log1p(t) / (1.0 - z))


def rank_sampler(z: float, keys: int) -> RankSampler:
    """The sampler of ranks 1 … keys with exponent z ≥ 0."""
    z = float(z)
    area, inverse_area = _area.py_func, _inverse_area.py_func  # for three numbers, not compiled
    sure = 2.0 - inverse_area(area(2.5, z) - 2.0**-z, z)
    return RankSampler(z, float(keys), area(1.5, z) - 1.0, area(keys + 0.5, z), sure)


@inlined
def draw_rank(sampler: RankSampler, bits: np.uint64) -> np.uint64:
    """A rank from a message's random bits; takes more bits after each rejection."""
    z, keys, lowest, highest, sure = sampler
    while True:
        area = highest + unit(bits) * (lowest - highest)
        x = min(_inverse_area(area, z), keys)
        rank = max(1.0, math.floor(x + 0.5))
        if rank - x <= sure or area >= _area(rank + 0.5, z) - math.exp(-z * math.log(rank)):
            return np.uint64(rank)
        bits = next_bits(bits)


@compiled
def _draw(sampler: RankSampler, origin: np.uint64, first: int, keys: U64) -> None:
    for i in range(keys.size):
        keys[i] = hash_long(draw_rank(sampler, first_bits(origin, first + i)), _SPARK_SEED)


@dataclass(frozen=True)
class Zipf(Synthetic):
    """Zipf over a fixed number of keys; the key of rank r is the long r, and 1 is the hottest.

    z: exponent ≥ 0; 0 is uniform, and more is more skewed.
    keys: ranks 1 … keys.
    messages: length of the stream.
    """

    z: float
    keys: int
    messages: int

    name: ClassVar[str] = "zipf"

    def __post_init__(self) -> None:
        self.check_at_least(0, "z")
        self.check_at_least(1, "keys", "messages")

    def drawer(self) -> Any:
        """Ranks, as identities of longs."""
        sampler = rank_sampler(self.z, self.keys)
        return lambda origin, first, keys: _draw(sampler, origin, first, keys)
