"""How many rows each hot key has on either side: passes over the keys, and nothing else.

The first reads a few per cent of the rows, drawn at random, and counts them by key: hot keys stand
out, and all others are summed by the partition that Spark's hash sends them to. What a sample
cannot tell is how few partners a hot key has, so a side with such keys is read once more, to count
these alone. Tables that Spark takes for small are read whole. A key that was seen in a sample
exists.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.spark.input.version import as_arrow, valid_text
from skewless.spark.join.keys import JoinKeys, Side
from skewless.spark.join.kinds import Kind
from skewless.spark.routing.columns import lay_out, slot_of

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

LEAST_SHARE = 0.02  # of a partition's mean load: what makes a key worth a place of its own
MOST_HOT = 2000
SAMPLE = 0.01
_ENOUGH = 100_000  # rows in a sample
_SMALL = 32 << 20  # bytes of keys that are all read: one job, and nothing to guess
_SURE = 100  # rows of a key in a sample: an error of a tenth
_SOME = 10
_BYTES = re.compile(r"sizeInBytes=([\d.E+]+) ([KMGTPE]i)?B")
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@dataclass(frozen=True)
class Sizes:
    """What a join is made of; counts of a sample are scaled up."""

    partitions: int
    left_rows: float
    right_rows: float
    left_nulls: float  # rows with a null in the key
    right_nulls: float
    identities: npt.NDArray[np.uint64]  # [k] xxhash64 of the hot keys' columns
    hashes: I64  # [k] Spark's hash of them
    names: tuple[str, ...]  # [k]
    left: F64  # [k] rows
    right: F64  # [k] rows
    cold_left: F64  # [partitions] rows of all other keys
    cold_right: F64
    cold_results: F64  # [partitions] their result rows in an inner join, estimated

    def results(self, kind: Kind) -> F64:
        """Result rows of each hot key."""
        return results_of(kind, self.left, self.right)

    def cold(self, kind: Kind, result_weight: float) -> F64:
        """The load of each partition without the hot keys."""
        results = self.cold_left if kind.filters else self.cold_results
        return self.cold_left + self.cold_right + result_weight * results


def nothing_counted(partitions: int) -> Sizes:
    """What is known of a join without a look at its keys."""
    none, each = np.empty(0), np.zeros(partitions)
    return Sizes(
        partitions=partitions,
        left_rows=0.0,
        right_rows=0.0,
        left_nulls=0.0,
        right_nulls=0.0,
        identities=np.empty(0, np.uint64),
        hashes=np.empty(0, np.int64),
        names=(),
        left=none,
        right=none,
        cold_left=each,
        cold_right=each,
        cold_results=each,
    )


def results_of(kind: Kind, left: F64, right: F64) -> F64:
    """Result rows of keys with so many rows on the two sides."""
    if kind.filters:
        return np.where((right > 0) == (kind.name == "left_semi"), left, 0.0)
    alone_left = np.where(right == 0, left, 0.0) if kind.keeps_left else 0.0
    alone_right = np.where(left == 0, right, 0.0) if kind.keeps_right else 0.0
    return left * right + alone_left + alone_right


def count(
    left: DataFrame,
    right: DataFrame,
    keys: JoinKeys,
    kind: Kind,
    partitions: int,
    result_weight: float,
    sample: float | None = None,
    seed: int = 0,
) -> Sizes:
    """Count the rows of a join's keys; runs one to three jobs.

    sample: share of the rows to read; else a few per cent, or more of small tables
    """
    names = [f"k{i}" for i in range(len(keys.types))]
    sides = [_keys_of(left, keys.left, names), _keys_of(right, keys.right, names)]
    share = sample or (1.0 if estimated_bytes(sides[0].unionAll(sides[1])) <= _SMALL else SAMPLE)
    drawn = _Drawn.read(sides, names, partitions, share, seed)
    if share < 1 and sample is None and drawn.rows < _ENOUGH:
        share = min(1.0, 2 * _ENOUGH * share / max(1, drawn.rows))
        drawn = _Drawn.read(sides, names, partitions, share, seed)
    hot = drawn.candidates(kind, result_weight)
    n = _exact(sides[0], hot, hot.left, hot.right, share)
    m = _exact(sides[1], hot, hot.right, hot.left, share)
    return drawn.sizes(hot, n, m)


def estimated_bytes(df: DataFrame) -> float:
    """How large Spark takes a DataFrame to be before it runs; infinite where it does not say."""
    words = df.sparkSession.sql("explain cost select * from {df}", df=df).first()
    found = None if words is None else _BYTES.search(words[0])
    return math.inf if found is None else float(found[1]) * 1024 ** _UNITS.index(found[2] or "")


def _keys_of(df: DataFrame, side: Side, names: list[str]) -> DataFrame:
    return df.select(*(v.alias(name) for v, name in zip(side.values, names, strict=True)))


@dataclass(frozen=True)
class _Keys:
    """Some keys with their rows in a sample, the heaviest first."""

    identities: npt.NDArray[np.uint64]
    hashes: I64
    names: tuple[str, ...]
    places: I64
    left: F64
    right: F64

    def take(self, chosen: Any) -> _Keys:
        """Those of these numbers."""
        names = tuple(self.names[i] for i in chosen)
        rest = (self.places[chosen], self.left[chosen], self.right[chosen])
        return _Keys(self.identities[chosen], self.hashes[chosen], names, *rest)


@dataclass(frozen=True)
class _Drawn:
    """A sample of both sides: its larger keys one by one, and the sums of each partition."""

    share: float
    keys: _Keys
    left: F64  # [partitions] rows of the sample
    right: F64
    pairs: F64  # [partitions] result rows of the sample
    left_nulls: float
    right_nulls: float

    @property
    def rows(self) -> float:
        """How many rows the sample has."""
        return float(self.left.sum() + self.right.sum()) + self.left_nulls + self.right_nulls

    @classmethod
    def read(
        cls, sides: list[DataFrame], names: list[str], partitions: int, share: float, seed: int
    ) -> _Drawn:
        """Draw and count; runs a job."""
        parts = [
            # Half the time that `DataFrame.sample` takes.
            (df.where(F.rand(seed + i) < share) if share < 1 else df).select(
                *names, F.lit(1 - i).alias("l")
            )
            for i, df in enumerate(sides)
        ]
        place = F.pmod(F.hash(*names, F.lit(0)), F.lit(partitions)).alias("place")
        # Rows of a place come together once, so that counting by key and then by place needs no
        # second shuffle, which takes longer than all else that is done with a sample.
        drawn = parts[0].unionAll(parts[1]).select(*names, "l", place).repartition("place")
        sums = F.sum("l").alias("n"), F.sum(F.lit(1) - F.col("l")).alias("m")
        counts = drawn.groupBy("place", *names).agg(*sums)
        nulls = reduce(or_, (F.col(name).isNull() for name in names))
        pairs = F.col("n").cast("double") * F.col("m")
        # A key that matters to no partition even if it met its partners ten times as often.
        large = (F.col("n") + F.col("m") >= 5) | (pairs >= 5)
        whole = F.col(names[0]) if len(names) == 1 else F.struct(*names)
        single = F.struct(
            F.xxhash64(*names).alias("identity"),
            F.hash(*names).alias("hash"),
            valid_text(whole.cast("string")).alias("name"),
        )
        rows = counts.select(
            "n",
            "m",
            pairs.alias("pairs"),
            "place",
            nulls.alias("null"),
            F.when(large & ~nulls, single).alias("key"),
        )
        found = as_arrow(
            rows.groupBy("place", "null", "key")
            .agg(F.sum("n").alias("n"), F.sum("m").alias("m"), F.sum("pairs").alias("pairs"))
            .select("place", "null", "n", "m", "pairs", "key.identity", "key.hash", "key.name")
        )
        return cls._of(found, partitions, share)

    @classmethod
    def _of(cls, found: Any, partitions: int, share: float) -> _Drawn:
        places = found["place"].to_numpy().astype(np.int64)
        n, m, pairs = (found[name].to_numpy().astype(np.float64) for name in ("n", "m", "pairs"))
        cold = ~found["null"].to_numpy(zero_copy_only=False)
        sums: list[F64] = [
            np.bincount(places[cold], rows[cold], partitions).astype(np.float64)
            for rows in (n, m, pairs)
        ]
        single = np.flatnonzero(found["hash"].is_valid().to_numpy())
        keys = found.take(single)
        listed = _Keys(
            keys["identity"].to_numpy().astype(np.int64).view(np.uint64),
            keys["hash"].to_numpy().astype(np.int64),
            tuple(keys["name"].to_pylist()),
            places[single],
            n[single],
            m[single],
        )
        nulls = float(n[~cold].sum()), float(m[~cold].sum())
        return cls(share, listed, sums[0], sums[1], sums[2], *nulls)

    def candidates(self, kind: Kind, result_weight: float) -> _Keys:
        """The keys that may be hot, the heaviest first."""
        n, m = self.keys.left / self.share, self.keys.right / self.share
        results = results_of(kind, n, m)
        if self.share < 1:
            # One partner in the sample may be chance: too little to call a key hot.
            results = np.where(np.minimum(self.keys.left, self.keys.right) < _SOME, 0.0, results)
        weights = n + m + result_weight * results
        total = float(self.left.sum() + self.right.sum()) / self.share
        order = np.lexsort((self.keys.identities, -weights))
        order = order[weights[order] >= LEAST_SHARE / 2 * total / self.left.size]
        # Keys that Spark hashes alike, as it may structs with nulls, are treated alike.
        _, first = np.unique(self.keys.identities[order], return_index=True)
        return self.keys.take(order[np.sort(first)][:MOST_HOT])

    def sizes(self, hot: _Keys, n: F64, m: F64) -> Sizes:
        """The hot keys with their true counts, and what is left of each partition without them."""
        share, partitions = self.share, self.left.size
        rest = [
            np.maximum(mine - np.bincount(hot.places, theirs, partitions), 0.0)
            for mine, theirs in (
                (self.left, hot.left),
                (self.right, hot.right),
                (self.pairs, hot.left * hot.right),
            )
        ]
        results = rest[2] / share**2
        if share < 1 and rest[0].sum():
            # Pairs in a sample are few: their sum is known well, how it is shared out is not.
            results = results.sum() * rest[0] / rest[0].sum()
        return Sizes(
            partitions=partitions,
            left_rows=float(rest[0].sum() + hot.left.sum() + self.left_nulls) / share,
            right_rows=float(rest[1].sum() + hot.right.sum() + self.right_nulls) / share,
            left_nulls=self.left_nulls / share,
            right_nulls=self.right_nulls / share,
            identities=hot.identities,
            hashes=hot.hashes,
            names=hot.names,
            left=n,
            right=m,
            cold_left=rest[0] / share,
            cold_right=rest[1] / share,
            cold_results=results,
        )


def _exact(df: DataFrame, hot: _Keys, drawn: F64, others: F64, share: float) -> F64:
    """The rows of the hot keys on one side.

    Keys that are hot for their rows on the other side, and had few in the sample of this one, are
    counted in a job of its own: a hot key with 2 partners must not pass for one with 20 or none.
    """
    few = np.flatnonzero((drawn < _SURE) & (others >= _SURE))
    if share == 1 or not few.size:
        return drawn / share
    asked = hot.take(few)
    entry = entry_of(tuple(F.col(name) for name in df.columns), asked.identities, asked.hashes)
    counts = as_arrow(df.select(entry.alias("e")).where("e >= 0").groupBy("e").count())
    found = drawn / share
    found[few] = np.bincount(
        counts["e"].to_numpy().astype(np.int64), counts["count"].to_numpy(), few.size
    )
    return found


def entry_of(values: tuple[Column, ...], identities: npt.NDArray[np.uint64], hashes: I64) -> Column:
    """The number of a row's key among some keys, or −1."""
    heads = lay_out(identities, np.arange(identities.size, dtype=np.int32))
    hashed = np.where(heads.values >= 0, hashes[heads.values], 0)
    identity = F.xxhash64(*values)
    slot = slot_of(identity, heads)
    # Both hashes must agree: no cold key is taken for a hot one, which might not exist elsewhere.
    found = (F.get(literal_array(heads.keys, "bigint"), slot) == identity) & (
        F.get(literal_array(hashed, "int"), slot) == F.hash(*values)
    )
    number = F.get(literal_array(heads.values, "int"), slot)
    return F.coalesce(F.when(found, number), F.lit(-1))


def literal_array(values: npt.NDArray[np.integer], kind: str) -> Column:
    """Numbers as one literal, which Spark folds before it runs; a literal each takes far longer."""
    return F.split(F.lit(",".join(map(str, values.tolist()))), ",").cast(f"array<{kind}>")
