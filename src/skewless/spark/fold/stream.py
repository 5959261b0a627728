"""Partials of a stream's micro-batches to results: merged by key in Spark's state store.

The aggregation period is the trigger interval: a worker folds what one micro-batch brings it, and
hands one partial per key on. State, checkpoints and exactly-once stay Spark's own.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from skewless.errors import SkewlessError, unknown
from skewless.spark.fold.bind import BoundFolds
from skewless.spark.fold.merge import merge_natively
from skewless.spark.fold.state import merge_with_state
from skewless.spark.input.state_store import use_rocksdb

MODES = ("update", "append", "complete")


def check_output_mode(output_mode: str) -> None:
    """Refuse what is no output mode, of a batch too, which has none: it may be a stream one day."""
    if output_mode not in MODES:
        raise unknown("output mode", str(output_mode), MODES)


def merge_stream(partials: DataFrame, bound: BoundFolds, output_mode: str) -> DataFrame:
    """One row per key, kept up to date from batch to batch."""
    use_rocksdb(partials.sparkSession)
    if bound.natives is not None:
        return merge_natively(partials, bound)
    own = next(fold.name for fold in bound.job.folds)
    if output_mode == "complete":
        raise SkewlessError(
            f"Among the folds ('{own}', …) is one that only Python can merge, and Spark has no "
            "output mode 'complete' for it: use 'update', or 'append' with a window."
        )
    if output_mode == "append" and bound.keys.expiry() is None:
        raise SkewlessError(
            "Output mode 'append' needs a key that ends: set a watermark with "
            "df.withWatermark(…) and group by a window of that time, or use 'update'."
        )
    return merge_with_state(partials, bound, output_mode)
