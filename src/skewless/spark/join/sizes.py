"""How many rows each hot key has on either side: two passes over the keys, and nothing else.

The first counts rows per bucket. A bucket is a part of what Spark's hash sends to one partition, so
the counts also say what all other keys weigh there; the dot product of the two sides' counts with
random signs estimates their result rows without bias. The second pass counts exactly, key by key,
but only in buckets that may hold a hot key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.spark.join.keys import JoinKeys
from skewless.spark.join.kinds import Kind

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

LEAST_SHARE = 0.02  # of a partition's mean load: what makes a key worth a place of its own
MOST_HOT = 2000
_BUCKETS = 1 << 16
_MOST_HEAVY = 1 << 12
_NULL = -1


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
    sample: float = 1.0,
    seed: int = 0,
) -> Sizes:
    """Count the rows of a join's keys; runs two jobs."""
    frames = []
    for df, side, is_left in ((left, keys.left, 1), (right, keys.right, 0)):
        names = [f"k{i}" for i in range(len(side.values))]
        values = [v.alias(name) for v, name in zip(side.values, names, strict=True)]
        rows = df.select(*values)
        rows = rows.sample(sample, seed) if sample < 1 else rows
        frames.append(rows.select(*names, F.lit(is_left).alias("l")))
    both = frames[0].unionAll(frames[1])
    width = 1 << max(6, int(_BUCKETS / partitions).bit_length() - 1)
    bucket = _bucket(names, partitions, width)
    size = partitions * width
    rows = both.select(bucket.alias("bucket"), _sign(names), "l")
    table = _Buckets.read(rows, partitions, size, sample)
    heavy, least = table.heavy(kind, result_weight)
    hot = _hot(both, bucket, names, heavy, least, size, result_weight, sample)
    return table.without(hot)


def _bucket(names: list[str], partitions: int, width: int) -> Column:
    place = F.pmod(F.hash(*names, F.lit(0)), F.lit(partitions))
    within = F.xxhash64(*names).bitwiseAND(F.lit(width - 1)).cast("int")
    nulls = reduce(or_, (F.col(name).isNull() for name in names))
    return F.when(nulls, F.lit(_NULL)).otherwise(place * F.lit(width) + within)


def _sign(names: list[str]) -> Column:
    bit = F.shiftrightunsigned(F.xxhash64(*names), 40).bitwiseAND(F.lit(1))
    return (F.lit(1) - F.lit(2) * bit).alias("sign")


@dataclass(frozen=True)
class _Hot:
    """Hot keys, counted exactly."""

    identities: npt.NDArray[np.uint64]
    hashes: I64
    names: tuple[str, ...]
    buckets: I64
    left: F64
    right: F64


@dataclass(frozen=True)
class _Buckets:
    """Rows of both sides per bucket, plain and with random signs; rows with a null key apart."""

    partitions: int
    left: F64  # [buckets]
    right: F64
    left_signed: F64
    right_signed: F64
    left_nulls: float
    right_nulls: float

    @classmethod
    def read(cls, rows: DataFrame, partitions: int, size: int, sample: float) -> _Buckets:
        """Count; runs a job."""
        left, sign = F.col("l"), F.col("sign")
        right = F.lit(1) - left
        parts = left, right, left * sign, right * sign
        sums = rows.groupBy("bucket").agg(*map(F.sum, parts))
        found = sums.toArrow()
        buckets, *counts = (found.column(i).to_numpy() for i in range(5))
        cold = buckets != _NULL
        dense: list[F64] = [np.bincount(buckets[cold], c[cold], size) / sample for c in counts]
        nulls = [float(c[~cold].sum()) / sample for c in counts[:2]]
        return cls(partitions, dense[0], dense[1], dense[2], dense[3], nulls[0], nulls[1])

    def heavy(self, kind: Kind, result_weight: float) -> tuple[I64, float]:
        """Buckets that may hold a hot key, and what the least of hot keys weighs."""
        left, right = self.left, self.right
        # What a bucket has above the usual may be one key, and its partners all that is there.
        more_left = np.maximum(left - np.median(left), 0)
        more_right = np.maximum(right - np.median(right), 0)
        if kind.filters:
            results, most_results = left, more_left
        else:
            results = np.maximum(self.left_signed * self.right_signed, 0)
            most_results = np.maximum(more_left * right, left * more_right)
        total = float((left + right + result_weight * results).sum())
        least = LEAST_SHARE * total / self.partitions
        score = more_left + more_right + result_weight * most_results
        found = np.flatnonzero((score > 0) & (score >= least))
        return found[np.argsort(-score[found], kind="stable")][:_MOST_HEAVY], least

    def without(self, hot: _Hot) -> Sizes:
        """The hot keys, and what is left of each partition without them."""
        bits = (hot.identities >> np.uint64(40)) & np.uint64(1)
        signs = 1.0 - 2.0 * bits.astype(np.float64)
        by_place = []
        for mine, theirs in (
            (self.left, hot.left),
            (self.right, hot.right),
            (self.left_signed, signs * hot.left),
            (self.right_signed, signs * hot.right),
        ):
            rest = mine - np.bincount(hot.buckets, theirs, mine.size)
            by_place.append(rest.reshape(self.partitions, -1))
        results = (by_place[2] * by_place[3]).sum(axis=1)
        return Sizes(
            partitions=self.partitions,
            left_rows=float(self.left.sum()) + self.left_nulls,
            right_rows=float(self.right.sum()) + self.right_nulls,
            left_nulls=self.left_nulls,
            right_nulls=self.right_nulls,
            identities=hot.identities,
            hashes=hot.hashes,
            names=hot.names,
            left=hot.left,
            right=hot.right,
            cold_left=by_place[0].sum(axis=1),
            cold_right=by_place[1].sum(axis=1),
            cold_results=np.maximum(results, 0.0),
        )


def _hot(
    both: DataFrame,
    bucket: Column,
    names: list[str],
    heavy: I64,
    least: float,
    buckets: int,
    result_weight: float,
    sample: float,
) -> _Hot:
    """The keys of heavy buckets that weigh enough, the heaviest of them if they are too many."""
    if not heavy.size:
        none = np.empty(0, np.int64)
        return _Hot(none.view(np.uint64), none, (), none, np.empty(0), np.empty(0))
    bits = np.zeros((buckets + 63) // 64, np.uint64)
    np.bitwise_or.at(bits, heavy // 64, np.uint64(1) << (heavy % 64).astype(np.uint64))
    word = F.get(literal_array(bits.view(np.int64), "bigint"), F.shiftright(F.col("b"), 6))
    is_heavy = F.getbit(word, F.col("b").bitwiseAND(F.lit(63))) == 1
    rows = both.withColumn("b", bucket).where((F.col("b") >= 0) & is_heavy)
    counts = rows.groupBy(*names).agg(
        F.sum("l").alias("n"), F.sum(F.lit(1) - F.col("l")).alias("m")
    )
    n, m = F.col("n").cast("double"), F.col("m").cast("double")
    weight = (n + m) / sample + n * m * (result_weight / sample**2)
    whole = F.col(names[0]) if len(names) == 1 else F.struct(*names)
    found = (
        counts.where(weight >= least)
        .select(
            F.xxhash64(*names).alias("identity"),
            F.hash(*names).alias("hash"),
            F.make_valid_utf8(whole.cast("string")).alias("name"),
            bucket.alias("bucket"),
            "n",
            "m",
        )
        .orderBy(weight.desc(), "identity")
        .limit(MOST_HOT)
        .toArrow()
    )
    columns = {name: found.column(name) for name in found.column_names}
    return _Hot(
        columns["identity"].to_numpy().astype(np.int64).view(np.uint64),
        columns["hash"].to_numpy().astype(np.int64),
        tuple(columns["name"].to_pylist()),
        columns["bucket"].to_numpy().astype(np.int64),
        columns["n"].to_numpy() / sample,
        columns["m"].to_numpy() / sample,
    )


def literal_array(values: npt.NDArray[np.integer], kind: str) -> Column:
    """Numbers as one literal, which Spark folds before it runs; a literal each takes far longer."""
    return F.split(F.lit(",".join(map(str, values.tolist()))), ",").cast(f"array<{kind}>")
