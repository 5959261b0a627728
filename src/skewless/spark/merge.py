"""Partials of the workers to one result per key: by Spark's own aggregates where it can."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.folds.worker import merge_sorted
from skewless.spark.job import BoundFolds, key_names


def merge_by_key(partials: DataFrame, bound: BoundFolds) -> DataFrame:
    """One row per key: its columns, then each fold's result; one shuffle."""
    if bound.natives is None:
        return merge_in_python(partials, bound)
    keys = key_names(bound.job.keys)
    return finish_natively(partials.groupBy(*keys).agg(*native_merges(bound)), bound)


def native_merges(bound: BoundFolds) -> list[Column]:
    """The aggregates that merge the partial columns, each under its column's own name."""
    merges = []
    for native, names in zip(bound.natives or (), bound.partial_names(), strict=True):
        for name, merge in zip(names, native.merges, strict=True):
            merges.append(F.expr(merge.format(*names)).alias(name))
    return merges


def finish_natively(merged: DataFrame, bound: BoundFolds) -> DataFrame:
    """Merged partials to results, under the names that the user knows."""
    outer = bound.result_schema.names
    inner = key_names(bound.job.keys)
    columns = [F.col(name).alias(outer[i]) for i, name in enumerate(inner)]
    finishes = zip(bound.natives or (), bound.partial_names(), bound.job.folds, strict=True)
    for native, names, fold in finishes:
        columns.append(F.expr(native.finish.format(*names)).alias(fold.name))
    return merged.select(*columns)


def merge_in_python(partials: DataFrame, bound: BoundFolds) -> DataFrame:
    """Shuffle by key, sort, and let Python merge neighbours: no memory grows with the keys."""
    job = bound.job

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return merge_sorted(job, batches)

    keys = key_names(job.keys)
    together = partials.repartition(*keys).sortWithinPartitions(*keys)
    return together.mapInArrow(merge, bound.result_schema)
