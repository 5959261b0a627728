"""Drift: a Zipf stream whose hot keys change every so many messages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skewless.compiled import compiled
from skewless.hashing import SPARK_SEED, U64, hash_long
from skewless.streams.synthetic import Synthetic, first_bits
from skewless.streams.zipf import RankSampler, draw_rank, rank_sampler

_SPARK_SEED = np.uint64(SPARK_SEED)


@compiled
def _draw(
    sampler: RankSampler, turn: int, period: int, origin: np.uint64, first: int, keys: U64
) -> None:
    size = np.int64(sampler.keys)
    for i in range(keys.size):
        message = first + i
        rank = np.int64(draw_rank(sampler, first_bits(origin, message)))
        turned = (rank - 1 + ((message // period) % size) * turn) % size + 1
        keys[i] = hash_long(np.uint64(turned), _SPARK_SEED)


def turn_of(keys: int) -> int:
    """How far the ranks turn each period: near the golden section of the keys, coprime to them."""
    turn = max(1, round(keys * (math.sqrt(5) - 1) / 2))
    while math.gcd(turn, keys) != 1:
        turn += 1
    return turn


@dataclass(frozen=True)
class Drift(Synthetic):
    """Zipf whose hot keys rotate.

    In period e = 0, 1, 2 … the key of rank r is the long (r - 1 + e·turn) mod keys + 1, where turn
    is coprime to keys and near 0.618 · keys. So the head of one period comes from the tail of the
    period before, and every key is the hottest once before any is so again.

    z, keys, messages: as for zipf.
    period: messages until the ranks turn.
    """

    z: float
    keys: int
    messages: int
    period: int

    name: ClassVar[str] = "drift"

    def __post_init__(self) -> None:
        self.check_at_least(0, "z")
        self.check_at_least(1, "keys", "messages", "period")

    def drawer(self) -> Any:
        """Turned ranks, as identities of longs."""
        sampler, turn, period = rank_sampler(self.z, self.keys), turn_of(self.keys), self.period
        return lambda origin, first, keys: _draw(sampler, turn, period, origin, first, keys)
