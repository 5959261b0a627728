"""What a worker of a fold runs: one closure, whether or not it is observed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructType

from skewless.folds.hottest import HottestKeys
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
    named = watch is not None and watch.names_keys

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not numbered:
            return fold_batches(job, batches)
        worker, mine = arrived(batches)
        if not reporting:
            return fold_batches(job.on_worker(worker), mine)
        hottest = HottestKeys() if named else None
        meter = WorkerWatch(worker, hottest)
        mine_alone = replace(job.on_worker(worker), hottest=hottest)
        return meter.outgoing(fold_batches(mine_alone, meter.incoming(mine)))

    rows = with_worker(placed) if numbered else placed
    if watch is None:
        return rows.mapInArrow(fold, bound.partial_schema)
    schema = StructType([*bound.partial_schema.fields]).add("report", StringType())
    facts = 1 if bound.natives is None else 0  # the stream's facts are a row of its state
    return watch.told(rows.mapInArrow(fold, schema), states_besides=facts)
