"""The passes over a join's keys that tell how many rows each hot key has; nothing else is read.

The first reads a part of the rows, drawn at random, or all of a small side. What a sample cannot
tell is how few partners a hot key has, so a side with such keys is read once more, to count these
alone. A key that was seen in a sample exists.

A job takes most of its time to start, and each shuffle about as much again. So the rows of a sample
that is not large are counted on the driver.
"""

from __future__ import annotations

import math
import re
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.spark.input.version import as_arrow, valid_text
from skewless.spark.join.drawn import LARGE, Drawn, Keys
from skewless.spark.join.entries import entry_of
from skewless.spark.join.keys import JoinKeys, Side
from skewless.spark.join.kinds import Kind
from skewless.spark.join.sizes import F64, Sizes

SAMPLE = 0.01
_WANTED = 1 << 20  # bytes of keys, as Spark expects them, of a sample or of a side read whole
_ENOUGH = 50_000  # rows in a sample
_PLENTY = 4 * _ENOUGH
_SURE = 100  # rows of a key in a sample: an error of a tenth
_MOST_BYTES = 8 << 20  # of a sample that is counted on the driver, as Spark expects them
MOST_OF_A_TASK = 1 << 19  # rows that one task hands to the driver, if Spark expected too little
_MOST_ROWS = 1 << 20  # that are handed to the driver where their number is known
_ROW_IN_TASK = (1 << 33) - 1  # the bits of a `monotonically_increasing_id` that are no task's
_BYTES = re.compile(r"sizeInBytes=([\d.E+]+) ([KMGTPE]i)?B")
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


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
    """Count the rows of a join's keys; runs one to four jobs, most often two.

    sample: share of the rows to read; else a few per cent, or more of small tables
    """
    names = [f"k{i}" for i in range(len(keys.types))]
    sides = [_keys_of(left, keys.left, names), _keys_of(right, keys.right, names)]
    sizes = [estimated_bytes(side) for side in sides]
    shares = (sample, sample) if sample else _shares(*sizes)
    small = sizes[0] * shares[0] + sizes[1] * shares[1] <= _MOST_BYTES
    drawn = _read(sides, names, partitions, shares, seed, small)
    if sample is None and min(shares) < 1 and drawn.rows < _ENOUGH:
        more = _PLENTY / max(1.0, drawn.rows)
        shares = min(1.0, shares[0] * more), min(1.0, shares[1] * more)
        drawn = _read(sides, names, partitions, shares, seed, small=True)
    hot = drawn.candidates(kind, result_weight)
    n = _exact(sides[0], hot, hot.left, hot.right, shares[0])
    m = _exact(sides[1], hot, hot.right, hot.left, shares[1])
    return drawn.sizes(hot, n, m)


def estimated_bytes(df: DataFrame) -> float:
    """How large Spark takes a DataFrame to be before it runs; infinite where it does not say."""
    words = df.sparkSession.sql("explain cost select * from {df}", df=df).first()
    found = None if words is None else _BYTES.search(words[0])
    return math.inf if found is None else float(found[1]) * 1024 ** _UNITS.index(found[2] or "")


def _shares(left: float, right: float) -> tuple[float, float]:
    """What to read of sides of so many bytes."""
    share = min(1.0, max(SAMPLE, _WANTED / max(1.0, left + right)))
    return (1.0 if left <= _WANTED else share), (1.0 if right <= _WANTED else share)


def _keys_of(df: DataFrame, side: Side, names: list[str]) -> DataFrame:
    return df.select(*(v.alias(name) for v, name in zip(side.values, names, strict=True)))


def _read(
    sides: list[DataFrame],
    names: list[str],
    partitions: int,
    shares: tuple[float, float],
    seed: int,
    small: bool,
) -> Drawn:
    """Draw and count; runs a job, or two if a sample that was taken to be small is not."""
    parts = [
        # Half the time that `DataFrame.sample` takes.
        (df.where(F.rand(seed + i) < share) if share < 1 else df).select(
            *names, F.lit(1 - i).alias("left")
        )
        for i, (df, share) in enumerate(zip(sides, shares, strict=True))
    ]
    rows = parts[0].unionAll(parts[1])
    gathered = _gathered(rows, names) if small and _hands_over_arrow(rows) else None
    if gathered is not None:
        return Drawn.of_rows(gathered, partitions, shares)
    return Drawn.of_counts(as_arrow(_counted(rows, names, partitions)), partitions, shares)


def _hands_over_arrow(df: DataFrame) -> bool:
    """Whether many rows come to the driver fast; before 4.0 they come one by one."""
    return hasattr(df, "toArrow")


def _gathered(rows: DataFrame, names: list[str]) -> pa.Table | None:
    """The rows of a sample on the driver; None if they are too many for it.

    How many they are is Spark's guess before it runs, which does not know how far a file was
    compressed or what `explode` makes of a row. So each task counts what it hands over.
    """
    at = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW_IN_TASK)).alias("at")
    numbered = rows.select("left", _null(names).alias("null"), *_facts(names), at)
    found = as_arrow(
        numbered.where(F.col("at") <= MOST_OF_A_TASK).withColumn(
            "at", F.col("at") == MOST_OF_A_TASK
        )
    )
    return None if pc.any(found["at"]).as_py() else found


def _counted(rows: DataFrame, names: list[str], partitions: int) -> DataFrame:
    """The larger keys of a sample, and the sums of each partition, counted by Spark."""
    place = F.pmod(F.hash(*names, F.lit(0)), F.lit(partitions)).alias("place")
    # Rows of a place come together once, so that counting by key and then by place needs no
    # second shuffle, which takes longer than all else that is done with a sample.
    placed = rows.select(*names, "left", place).repartition("place")
    sums = F.sum("left").alias("n"), F.sum(F.lit(1) - F.col("left")).alias("m")
    counts = placed.groupBy("place", *names).agg(*sums)
    pairs = F.col("n").cast("double") * F.col("m")
    large = (F.col("n") + F.col("m") >= LARGE) | (pairs >= LARGE)
    single = F.when(large & ~_null(names), F.struct(*_facts(names)))
    each = counts.select(
        "place", "n", "m", pairs.alias("pairs"), _null(names).alias("null"), single.alias("key")
    )
    summed = each.groupBy("place", "null", "key").agg(
        *(F.sum(name).alias(name) for name in ("n", "m", "pairs"))
    )
    return summed.select("place", "null", "n", "m", "pairs", "key.*")


def _null(names: list[str]) -> Column:
    return reduce(or_, (F.col(name).isNull() for name in names))


def _facts(names: list[str]) -> tuple[Column, Column, Column]:
    """By what a key is known on the driver."""
    whole = F.col(names[0]) if len(names) == 1 else F.struct(*names)
    return (
        F.xxhash64(*names).alias("identity"),
        F.hash(*names).alias("hash"),
        valid_text(whole.cast("string")).alias("name"),
    )


def _exact(df: DataFrame, hot: Keys, drawn: F64, others: F64, share: float) -> F64:
    """The rows of the hot keys on one side.

    Keys that are hot for their rows on the other side, and had few in the sample of this one, are
    counted in a job of its own: a hot key with 2 partners must not pass for one with 20 or none.
    """
    few = np.flatnonzero((drawn < _SURE) & (others >= _SURE))
    if share == 1 or not few.size:
        return drawn / share
    asked = hot.take(few)
    entry = entry_of(tuple(F.col(name) for name in df.columns), asked.identities, asked.hashes)
    rows = df.select(entry.alias("e"), F.lit(1).alias("rows")).where("e >= 0")
    # One that was drawn so often has hardly three times as many more.
    most = (2 * drawn[few].sum() + 10 * few.size) / share
    if most > _MOST_ROWS or not _hands_over_arrow(df):
        rows = rows.groupBy("e").agg(F.sum("rows").alias("rows"))
    counts = as_arrow(rows)
    found = drawn / share
    found[few] = np.bincount(
        counts["e"].to_numpy().astype(np.int64), counts["rows"].to_numpy(), few.size
    )
    return found
