"""The k most frequent keys: of all, per tumbling or sliding window, of a batch or a stream."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from skewless import folds
from skewless.apps.counting.fold import WorkerSummaries
from skewless.apps.counting.run import MOST_COUNTERS, Counting, at_least_one, counting
from skewless.errors import SkewlessError
from skewless.schemes import Scheme
from skewless.spark.fold.group import group
from skewless.spark.input.checks import Key, column_named

MOST = 1_000_000  # keys that one answer holds: Spark makes room for all of them beforehand


def top_k(
    df: DataFrame,
    key: Key,
    k: int = 10,
    *,
    by: Key | None = None,
    counters: int | None = None,
    scheme: Scheme | str = "partial",
    workers: int | None = None,
    seed: int = 0,
    output_mode: str = "update",
) -> DataFrame:
    """The k most frequent keys, with `rank` from 1 on; of equals the lesser key, null last.

    One row per key: `rank`, its value, `count`, `error`; the true count lies in
    count − error … count, and the error is 0 where counts are exact. A window without messages has
    no row.

    k: at most 1,000,000
    by: a ranking for each value of it, such as `F.window("time", "10 minutes", "5 minutes")`
    counters: how many counters a worker keeps, at least k; the error is then at most total ÷
        counters. None counts exactly: on a stream, every key of a `by` is then kept in one state
    The other parameters are as for `heavy_hitters`.
    """
    k = at_least_one("k", k, MOST)
    if counters is not None and at_least_one("counters", counters, MOST_COUNTERS) < k:
        raise SkewlessError(f"The {k} most frequent keys need at least {k} counters: {counters}.")
    count = counting(df, key, by, scheme, workers, seed)
    if counters is None and not df.isStreaming:
        return _exact_batch(count, key, k, output_mode)
    about = count.about(counters)
    fold = WorkerSummaries(count.kind, counters, count.workers_per_key, most=k, about=about)

    def columns(row: Column) -> list[Column]:
        return [count.shown(row), row["count"], row["error"]]

    found = count.exploded(count.fold(fold, output_mode), columns)
    return found.toDF(*found.columns[:-2], "count", "error")


def _exact_batch(count: Counting, key: Key, k: int, output_mode: str) -> DataFrame:
    """Counts by key, spread over all workers, then the first k: no state holds all keys."""
    parts = [] if count.by is None else _listed(count.by)
    keys = [*parts, *_listed(key)]
    counted = group(count.df, keys, count.scheme, count.workers, seed=count.seed)
    counts = counted.fold(folds.count().alias("count"), output_mode=output_mode)
    names = [column_named(name) for name in counts.columns]
    *groups, item, number = names
    falling = number.desc(), item.asc_nulls_last()
    if not groups:
        counts = counts.orderBy(*falling).limit(k)  # else one task would rank all keys
    rank = F.row_number().over(Window.partitionBy(*groups).orderBy(*falling)).alias("rank")
    found = counts.select(*groups, rank, item, number, F.lit(0).cast("long").alias("error"))
    return found.where(F.col("rank") <= k)


def _listed(key: Key) -> list[str | Column]:
    return list(key) if isinstance(key, list | tuple) else [key]  # type: ignore[list-item]
