"""The jobs that read a join's keys: rows for the driver to count, or counts that Spark made.

What is ours is asked for as SQL: a call from Python into the JVM for each function and each literal
takes longer than Spark needs to parse them all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.spark.input.version import as_arrow, valid_text
from skewless.spark.join.drawn import LARGE
from skewless.spark.join.entries import entry_of
from skewless.spark.join.sizes import F64, I64

MOST_OF_A_TASK = 1 << 19  # rows that one task hands to the driver, if Spark expected too little
MOST_PARTNERS = 1 << 14  # after so many rows a task hands over no more that were not drawn
_MOST_ROWS = 1 << 20  # that are handed to the driver where their number is known
_ROW_IN_TASK = (1 << 33) - 1  # the bits of a `monotonically_increasing_id` that are no task's
_ROW = f"monotonically_increasing_id() & {_ROW_IN_TASK}L"
_FACTS = ("left", "null", "identity", "hash", "name")


def hands_over_arrow(df: DataFrame) -> bool:
    """Whether many rows come to the driver fast; before 4.0 they come one by one."""
    return hasattr(df, "toArrow")


def is_drawn(share: float, seed: int) -> Column:
    """Whether a row belongs to a sample."""
    return F.rand(seed) < share


def drawn_of(df: DataFrame, share: float, seed: int) -> DataFrame:
    """A share of the rows, in half the time that `DataFrame.sample` takes."""
    return df.where(is_drawn(share, seed)) if share < 1 else df


def gathered(rows: DataFrame, names: list[str]) -> pa.Table | None:
    """The rows of a sample on the driver; None if they are too many for it.

    How many they are is Spark's guess before it runs, which does not know how far a file was
    compressed or what `explode` makes of a row. So each task counts what it hands over.

    rows: names, left (1 on the left side, 0 on the right)
    """
    numbered = rows.select("left", *_facts(names), F.expr(f"{_ROW} as at"))
    kept = numbered.where(f"at <= {MOST_OF_A_TASK}")
    found = as_arrow(kept.select(*_FACTS, F.expr(f"at = {MOST_OF_A_TASK} as too_many")))
    return None if pc.any(found["too_many"]).as_py() else found.select(_FACTS)


def gathered_with_partners(
    rows: DataFrame,
    names: list[str],
    share: float,
    seed: int,
    identities: npt.NDArray[np.uint64],
    hashes: I64,
) -> tuple[pa.Table | None, F64 | None]:
    """A sample on the driver, and of some keys all rows that there are, counted.

    The sample is None if it is too large for the driver. The counts are None where these keys have
    many rows: then the sample tells how many.
    """
    entry = entry_of(tuple(map(F.col, names)), identities, hashes)
    looked_up = rows.select(*names, "left", is_drawn(share, seed).alias("drawn"), entry.alias("e"))
    wanted = looked_up.where("drawn or e >= 0")
    met = wanted.select("left", *_facts(names), "drawn", "e", F.expr(f"{_ROW} as met"))
    # Numbered once more: many rows of these keys must not use up what the sample may have.
    kept = met.where(f"drawn or met <= {MOST_PARTNERS}").select("*", F.expr(f"{_ROW} as at"))
    found = as_arrow(kept.where(f"at <= {MOST_OF_A_TASK}"))
    if found["at"].to_numpy().max(initial=0) >= MOST_OF_A_TASK:
        return None, None
    sample = found.filter(found["drawn"]).select(_FACTS)
    if found["met"].to_numpy().max(initial=0) >= MOST_PARTNERS:
        return sample, None
    entries = found["e"].to_numpy()
    return sample, np.bincount(entries[entries >= 0], minlength=hashes.size).astype(np.float64)


def counted(rows: DataFrame, names: list[str], partitions: int) -> pa.Table:
    """The larger keys of a sample, and the sums of each partition, counted by Spark."""
    place = F.pmod(F.hash(*names, F.lit(0)), F.lit(partitions)).alias("place")
    # Rows of a place come together once, so that counting by key and then by place needs no
    # second shuffle, which takes longer than all else that is done with a sample.
    placed = rows.select(*names, "left", place).repartition("place")
    sums = F.sum("left").alias("n"), F.sum(F.lit(1) - F.col("left")).alias("m")
    counts = placed.groupBy("place", *names).agg(*sums)
    pairs = F.col("n").cast("double") * F.col("m")
    large = (F.col("n") + F.col("m") >= LARGE) | (pairs >= LARGE)
    null, *facts = _facts(names)
    single = F.when(large & ~null, F.struct(*facts))
    each = counts.select("place", "n", "m", pairs.alias("pairs"), null, single.alias("key"))
    summed = each.groupBy("place", "null", "key").agg(
        *(F.sum(name).alias(name) for name in ("n", "m", "pairs"))
    )
    return as_arrow(summed.select("place", "null", "n", "m", "pairs", "key.*"))


def partners(
    df: DataFrame, identities: npt.NDArray[np.uint64], hashes: I64, expected: float
) -> F64:
    """The rows of some keys, counted in a pass over all.

    expected: at most so many, it seems
    """
    entry = entry_of(tuple(F.col(name) for name in df.columns), identities, hashes)
    rows = df.select(entry.alias("e"), F.lit(1).alias("rows")).where("e >= 0")
    if expected > _MOST_ROWS or not hands_over_arrow(df):
        rows = rows.groupBy("e").agg(F.sum("rows").alias("rows"))
    counts = as_arrow(rows)
    entries = counts["e"].to_numpy().astype(np.int64)
    return np.bincount(entries, counts["rows"].to_numpy(), hashes.size).astype(np.float64)


def _facts(names: list[str]) -> tuple[Column, Column, Column, Column]:
    """Whether a key has a null, and by what it is known on the driver."""
    columns = ", ".join(names)
    whole = names[0] if len(names) == 1 else f"struct({columns})"
    return (
        F.expr(" or ".join(f"{name} is null" for name in names)).alias("null"),
        F.expr(f"xxhash64({columns}) as identity"),
        F.expr(f"hash({columns}) as hash"),
        valid_text(F.expr(f"cast({whole} as string)")).alias("name"),
    )
