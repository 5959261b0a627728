"""The passes over a join's keys that tell how many rows each hot key has; nothing else is read.

They read a part of the rows, drawn at random, or all of a small side. What a sample cannot tell is
how few partners a hot key has. So the larger side is drawn first, and the pass that draws the other
one counts the partners of the first one's large keys as well: each side is read once. A side where
this leaves hot keys with few rows is read once more, to count these alone. A key that was seen in a
sample exists.

A job takes most of its time to start, and each shuffle about as much again. So the rows of a sample
that is not large are counted on the driver.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.spark.join import samples
from skewless.spark.join.drawn import Drawn, Keys, seen_often
from skewless.spark.join.expected import Expected
from skewless.spark.join.keys import JoinKeys, Side
from skewless.spark.join.kinds import Kind
from skewless.spark.join.sizes import F64, I64, Sizes

SAMPLE = 0.01
_WANTED = 1 << 20  # bytes of keys, as Spark expects them, of a sample or of a side read whole
_ENOUGH = 50_000  # rows in a sample
_PLENTY = 4 * _ENOUGH
_SURE = 100  # rows of a key in a sample: an error of a tenth
_MOST_BYTES = 8 << 20  # of a sample that is counted on the driver, as Spark expects them


class Partners(NamedTuple):
    """The true rows of some keys on one side."""

    side: int  # 0 = left
    identities: npt.NDArray[np.uint64]
    hashes: I64
    rows: F64


def count(
    left: DataFrame,
    right: DataFrame,
    keys: JoinKeys,
    kind: Kind,
    partitions: int,
    result_weight: float,
    expected: Expected,
    sample: float | None = None,
    seed: int = 0,
) -> Sizes:
    """Count the rows of a join's keys; most often runs two jobs.

    expected: of the sides' keys
    sample: share of the rows to read; else a few per cent, or more of small tables
    """
    names, sides = _names_of(keys), list(keys_of(left, right, keys))
    sizes = expected.left_bytes, expected.right_bytes
    shares = (sample, sample) if sample else _shares(*sizes)
    small = sizes[0] * shares[0] + sizes[1] * shares[1] <= _MOST_BYTES
    larger = 0 if sizes[0] >= sizes[1] else 1
    drawn, known = _read(sides, names, partitions, shares, seed, small, larger)
    if sample is None and min(shares) < 1 and drawn.rows < _ENOUGH:
        more = _PLENTY / max(1.0, drawn.rows)
        shares = min(1.0, shares[0] * more), min(1.0, shares[1] * more)
        drawn, known = _read(sides, names, partitions, shares, seed, True, larger)
    hot = drawn.candidates(kind, result_weight)
    n, m = (_exact(sides[side], side, hot, shares[side], known) for side in (0, 1))
    return drawn.sizes(hot, n, m)


def _shares(left: float, right: float) -> tuple[float, float]:
    """What to read of sides of so many bytes."""
    share = min(1.0, max(SAMPLE, _WANTED / max(1.0, left + right)))
    return (1.0 if left <= _WANTED else share), (1.0 if right <= _WANTED else share)


def keys_of(left: DataFrame, right: DataFrame, keys: JoinKeys) -> tuple[DataFrame, DataFrame]:
    """The keys of the sides and nothing else, under the same names."""
    names = _names_of(keys)
    return _values_of(left, keys.left, names), _values_of(right, keys.right, names)


def _names_of(keys: JoinKeys) -> list[str]:
    return [f"k{i}" for i in range(len(keys.types))]


def _values_of(df: DataFrame, side: Side, names: list[str]) -> DataFrame:
    return df.select(*(v.alias(name) for v, name in zip(side.values, names, strict=True)))


def _read(
    sides: list[DataFrame],
    names: list[str],
    partitions: int,
    shares: tuple[float, float],
    seed: int,
    small: bool,
    larger: int,
) -> tuple[Drawn, Partners | None]:
    """Draw and count; runs a job or two, and one more if a sample is not as small as it was taken.

    larger: the side to draw first, 0 = left
    """
    marked = [df.select(*names, F.lit(1 - i).alias("left")) for i, df in enumerate(sides)]
    found, known = None, None
    if small and samples.hands_over_arrow(marked[0]):
        if max(shares) < 1:
            found, known = _one_by_one(marked, names, shares, seed, larger)
        else:
            found = samples.gathered(_both(marked, shares, seed), names)
    if found is not None:
        return Drawn.of_rows(found, partitions, shares), known
    counts = samples.counted(_both(marked, shares, seed), names, partitions)
    return Drawn.of_counts(counts, partitions, shares), None


def _both(marked: list[DataFrame], shares: tuple[float, float], seed: int) -> DataFrame:
    """The sample of both sides."""
    left, right = (samples.drawn_of(df, shares[i], seed + i) for i, df in enumerate(marked))
    return left.unionAll(right)


def _one_by_one(
    marked: list[DataFrame],
    names: list[str],
    shares: tuple[float, float],
    seed: int,
    larger: int,
) -> tuple[pa.Table | None, Partners | None]:
    """The sample of both sides, and the true rows that large keys of the larger one have opposite.

    None for a sample that is too large for the driver, and for what was not counted.
    """
    side = 1 - larger  # where partners are counted
    (first, drawn), (second, share) = ((marked[i], shares[i]) for i in (larger, side))
    of_first = samples.gathered(samples.drawn_of(first, drawn, seed + larger), names)
    if of_first is None:
        return None, None
    identities, hashes = seen_often(of_first, _SURE)
    rows = None
    if identities.size:
        of_second, rows = samples.gathered_with_partners(
            second, names, share, seed + side, identities, hashes
        )
    else:
        of_second = samples.gathered(samples.drawn_of(second, share, seed + side), names)
    known = None if rows is None else Partners(side, identities, hashes, rows)
    return None if of_second is None else pa.concat_tables([of_first, of_second]), known


def _exact(df: DataFrame, side: int, hot: Keys, share: float, known: Partners | None) -> F64:
    """The rows of the hot keys on one side.

    Keys that are hot for their rows on the other side, and had few in the sample of this one, are
    counted in a job of its own: a hot key with 2 partners must not pass for one with 20 or none.
    """
    drawn, others = (hot.left, hot.right) if side == 0 else (hot.right, hot.left)
    found, few = drawn / share, (drawn < _SURE) & (others >= _SURE)
    if share == 1:
        return found
    if known is not None and known.side == side:
        numbers = {key: i for i, key in enumerate(zip(known.identities, known.hashes, strict=True))}
        keys = zip(hot.identities, hot.hashes, strict=True)
        at = np.array([numbers.get(key, -1) for key in keys], np.int64)
        found[at >= 0] = known.rows[at[at >= 0]]
        few &= at < 0
    if few.any():
        asked = hot.take(np.flatnonzero(few))
        # One that was drawn so often has hardly three times as many more.
        most = float((2 * drawn[few].sum() + 10 * few.sum()) / share)
        found[few] = samples.partners(df, asked.identities, asked.hashes, most)
    return found
