"""Spike: one key takes a fixed share of the messages, a Zipf tail the rest.

The defaults stand in for the tweets of table 3 in the dynamic key grouping paper: 5 million
messages, 68 % of them on one key, and very many rare keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skewless.compiled import compiled
from skewless.errors import SkewlessError
from skewless.hashing import SPARK_SEED, U64, hash_long
from skewless.streams.synthetic import Synthetic, first_bits, next_bits, unit
from skewless.streams.zipf import RankSampler, draw_rank, rank_sampler

_SPARK_SEED = np.uint64(SPARK_SEED)


@compiled
def _draw(sampler: RankSampler, share: float, origin: np.uint64, first: int, keys: U64) -> None:
    for i in range(keys.size):
        bits = first_bits(origin, first + i)
        key = np.uint64(0) if unit(bits) <= share else draw_rank(sampler, next_bits(bits))
        keys[i] = hash_long(key, _SPARK_SEED)


@dataclass(frozen=True)
class Spike(Synthetic):
    """One very hot key (the long 0) above a Zipf tail (the longs 1 … keys).

    share: the hot key's share of the messages, 0 … 1.
    z, keys: the tail, as for zipf.
    messages: length of the stream.
    """

    share: float = 0.68
    z: float = 1.0
    keys: int = 300_000
    messages: int = 5_000_000

    name: ClassVar[str] = "spike"

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise SkewlessError(f"spike:share must be from 0 to 1, not {self.share}.")
        self.check_at_least(0, "z")
        self.check_at_least(1, "keys", "messages")

    def drawer(self) -> Any:
        """The spike or a rank, as identities of longs."""
        sampler, share = rank_sampler(self.z, self.keys), float(self.share)
        return lambda origin, first, keys: _draw(sampler, share, origin, first, keys)
