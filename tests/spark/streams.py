"""Small streams of Parquet files, run batch by batch to their end."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skewless.spark.input.version import arrow_type_of


class Files:
    """A folder that a stream reads, one file per micro-batch."""

    def __init__(self, spark, folder: Path, ddl: str):
        self.spark, self.folder, self.ddl = spark, folder, ddl
        fields = spark.createDataFrame([], ddl).schema.fields
        self.kinds = pa.schema([(f.name, arrow_type_of(f.dataType)) for f in fields])
        self.folder.mkdir()
        self.count = 0

    def put(self, rows):
        """One more file, whole at once."""
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array(column, field.type, from_pandas=False)
            for column, field in zip(columns, self.kinds, strict=True)
        ]
        part = self.folder / f".{self.count}"
        pq.write_table(pa.Table.from_arrays(arrays, schema=self.kinds), part)
        part.rename(self.folder / f"{self.count:05}.parquet")
        self.count += 1

    def stream(self):
        reader = self.spark.readStream.schema(self.ddl).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))

    def batch(self):
        return self.spark.read.schema(self.ddl).parquet(str(self.folder))


def run_to_end(frame, checkpoint, mode):
    """Run all that is there, batch by batch; the query, and every row that came out."""
    name = f"out_{uuid.uuid4().hex}"
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
    query = writer.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return query, frame.sparkSession.table(name).collect()


def run_again(frame, checkpoint, mode="update"):
    """The same with a sink that takes a checkpoint of an earlier run; the rows of this run."""
    rows = []
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
    writer = writer.foreachBatch(lambda changed, batch: rows.extend(changed.collect()))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return rows


def eventually(condition, timeout_s=120.0):
    """Wait until the condition gives something true, and give it back."""
    ends_s = time.monotonic() + timeout_s
    while time.monotonic() < ends_s:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("this never happened")
