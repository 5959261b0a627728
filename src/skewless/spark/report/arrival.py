"""The number of a worker, which travels with its rows.

A task's partition is not its worker: behind a union, tasks of the second side are counted on from
those of the first. The shuffle's own partition is the worker, and Spark tells it to whatever
expression stands right behind the shuffle: so a column of it takes no room in the shuffle itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

WORKER = "skewless_worker"


def with_worker(placed: DataFrame) -> DataFrame:
    """Rows that come straight out of the shuffle to their workers, with the number last."""
    return placed.withColumn(WORKER, F.spark_partition_id())


def arrived(batches: Iterator[pa.RecordBatch]) -> tuple[int, Iterator[pa.RecordBatch]]:
    """The worker that these batches have come to, and all of them; 0 if there is no row."""
    for batch in batches:
        if batch.num_rows:
            return number_of(batch), chain([batch], batches)
    return 0, iter(())


def number_of(batch: pa.RecordBatch) -> int:
    """The worker's number, which stands in the last column of each row."""
    return int(batch.column(batch.num_columns - 1)[0].as_py())
