"""What a worker of a fold runs: one closure, whether or not it is observed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructType

from skewless.folds.worker import fold_batches
from skewless.spark.adapt.watch import Watch
from skewless.spark.fold.bind import BoundFolds
from skewless.spark.report.arrival import arrived, with_worker
from skewless.spark.report.task import WorkerWatch


def fold_on_workers(placed: DataFrame, bound: BoundFolds, watch: Watch | None) -> DataFrame:
    """The partials of rows that are on the partitions of their workers.

    Workers learn their numbers only where it matters: for reports, and for folds that differ by
    worker.
    """
    job, reporting = bound.job, watch is not None
    numbered = reporting or bound.tells_workers_apart

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not numbered:
            return fold_batches(job, batches)
        worker, mine = arrived(batches)
        if not reporting:
            return fold_batches(job.on_worker(worker), mine)
        meter = WorkerWatch(worker)
        return meter.outgoing(fold_batches(job.on_worker(worker), meter.incoming(mine)))

    rows = with_worker(placed) if numbered else placed
    if watch is None:
        return rows.mapInArrow(fold, bound.partial_schema)
    schema = StructType([*bound.partial_schema.fields]).add("report", StringType())
    facts = 1 if bound.natives is None else 0  # the stream's facts are a row of its state
    return watch.told(rows.mapInArrow(fold, schema), states_besides=facts)
