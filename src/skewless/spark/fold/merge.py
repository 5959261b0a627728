"""Partials of the workers to one result per key: by Spark's own aggregates where it can."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.folds.worker import merge_sorted
from skewless.spark.fold.bind import BoundFolds


def merge_by_key(partials: DataFrame, bound: BoundFolds) -> DataFrame:
    """One row per key: its columns, then each fold's result; one shuffle."""
    if bound.natives is None:
        return merge_in_python(partials, bound)
    return merge_natively(partials, bound)


def merge_natively(partials: DataFrame, bound: BoundFolds) -> DataFrame:
    """By Spark's own aggregates; on a stream they keep what they merged in the state store."""
    grouped = partials.select(
        *bound.keys.together(), *(n for f in bound.partial_names() for n in f)
    )
    merged = grouped.groupBy(*bound.keys.group_names()).agg(*_native_merges(bound))
    columns = bound.keys.outer()
    finishes = zip(bound.natives or (), bound.partial_names(), bound.job.folds, strict=True)
    for native, names, fold in finishes:
        columns.append(F.expr(native.finish.format(*names)).alias(fold.name))
    return merged.select(*columns)


def _native_merges(bound: BoundFolds) -> list[Column]:
    """The aggregates that merge the partial columns, each under its column's own name."""
    merges = []
    for native, names in zip(bound.natives or (), bound.partial_names(), strict=True):
        for name, merge in zip(names, native.merges, strict=True):
            merges.append(F.expr(merge.format(*names)).alias(name))
    return merges


def merge_in_python(partials: DataFrame, bound: BoundFolds) -> DataFrame:
    """Shuffle by key, sort, and let Python merge neighbours: no memory grows with the keys."""
    job = bound.job

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return merge_sorted(job, batches)

    keys = bound.keys.names()
    together = partials.repartition(*keys).sortWithinPartitions(*keys)
    return named_results(together.mapInArrow(merge, bound.result_schema), bound)


def named_results(results: DataFrame, bound: BoundFolds) -> DataFrame:
    """Results that Python finished, under the names that the user knows."""
    folded = [F.col(f"r{i}").alias(fold.name) for i, fold in enumerate(bound.job.folds)]
    internal = [f"r{i}" for i in range(len(folded))]
    return results.select(*bound.keys.together(), *internal).select(*bound.keys.outer(), *folded)
