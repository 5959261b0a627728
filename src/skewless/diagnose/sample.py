"""A sample of messages that is fair, in order and bounded, from one pass of unknown length.

Message i draws random bits from (seed, i); it is in the sample at level L if the first L bits are
zero. When the sample outgrows its limit the level goes up by one, which leaves a fair half of what
was kept. So every message has the same chance, wherever in the stream it is: a prefix would know
nothing of a stream whose hot keys change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

LIMIT = 1 << 22  # messages kept of a stream
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]

_STEP, _MIX_1, _MIX_2 = (
    np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True)
class Sample:
    """Messages of a stream or a table, in order within each source."""

    keys: U64  # [n] identities, as Spark routes by them
    sources: I32  # [n] the source (task) that each comes from
    costs: F64 | None  # [n] what each costs; None: all the same
    messages: int  # of the whole
    distinct: int  # keys of the whole, nulls counted as one key
    nulls: int = 0
    distinct_is_exact: bool = True

    @property
    def rate(self) -> float:
        """The share of the messages that is in the sample."""
        return self.keys.size / self.messages if self.messages else 1.0


class Thinner:
    """Keeps a fair sample of at most `limit` rows of what it is handed, and counts them all."""

    def __init__(self, limit: int = LIMIT, seed: int = 0) -> None:
        self.limit, self.seen, self.level = limit, 0, 0
        self._seed = np.uint64((seed * 0x632BE59BD9B4E019 + 1) & ((1 << 64) - 1))
        self._bits: list[U64] = []
        self._columns: list[tuple[Any, ...]] = []
        self._kept = 0

    def add(self, *columns: Any) -> None:
        """Rows as arrays of one length: NumPy or Arrow, each thing that `take` can pick from."""
        count = len(columns[0])
        bits = _random_bits(self._seed, self.seen, count)
        self.seen += count
        self._keep(bits, columns)
        while self._kept > self.limit:
            self.thin(self.level + 1)

    def thin(self, level: int) -> None:
        """Go up to that level, which keeps 2^−level of all rows."""
        self.level = level
        held = list(zip(self._bits, self._columns, strict=True))
        self._bits, self._columns, self._kept = [], [], 0
        for bits, columns in held:
            self._keep(bits, columns)

    def _keep(self, bits: U64, columns: tuple[Any, ...]) -> None:
        if self.level:
            where = np.flatnonzero(bits >> np.uint64(64 - self.level) == 0)
            bits, columns = bits[where], tuple(column.take(where) for column in columns)
        self._bits.append(bits)
        self._columns.append(columns)
        self._kept += bits.size

    def kept(self) -> Iterator[tuple[Any, ...]]:
        """What is in the sample, piece by piece in order."""
        yield from self._columns

    def bits(self) -> U64:
        """The random bits of the rows kept."""
        return np.concatenate([np.empty(0, np.uint64), *self._bits])


def _random_bits(seed: np.uint64, first: int, count: int) -> U64:
    """The random bits of `count` messages from number `first` on (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = (np.arange(first + 1, first + count + 1, dtype=np.uint64) * _STEP) ^ seed
        x = (x ^ (x >> np.uint64(30))) * _MIX_1
        x = (x ^ (x >> np.uint64(27))) * _MIX_2
        return np.asarray(x ^ (x >> np.uint64(31)))
