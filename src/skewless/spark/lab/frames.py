"""Streams as DataFrames with one column `key`, cut into as many files as there are sources.

A file's keys are the words or fields themselves, read by Spark; those of a synthetic stream are
numbers or names. Spark hashes them to the identities that the simulator routes by. Everything is
written to Parquet first, so that what is measured afterwards starts from the same cheap source for
every scheme.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark.input.checks import column_named
from skewless.streams import Stream
from skewless.streams.csv import CommaSeparated
from skewless.streams.parquet import Parquet
from skewless.streams.tsv import TabSeparated
from skewless.streams.words import Words

BLANKS = "[ \\t\\n\\x0B\\f\\r]+"
ROW_OF_FILE = ["_metadata.file_name", "_metadata.row_index"]  # tells rows of `write_keys` apart


def words_of(text: Column) -> Column:
    """A line becomes its words, one row each."""
    return F.explode(F.filter(F.split(text, BLANKS), lambda word: word != ""))


def write_keys(
    spark: SparkSession, stream: Stream, folder: Path, files: int, seed: int = 0
) -> DataFrame:
    """Write the keys of a stream into that many Parquet files; the DataFrame that reads them."""
    if isinstance(stream, Words | TabSeparated | CommaSeparated | Parquet):
        stream.check()
        rows = _rows_of_file(spark, stream)
        rows.repartition(files).write.mode("overwrite").parquet(str(folder))
    else:
        _write_drawn(stream, folder, files, seed)
    keys = spark.read.parquet(str(folder))
    if keys.isEmpty():
        stream.refuse_empty()
    return keys


def _rows_of_file(
    spark: SparkSession, stream: Words | TabSeparated | CommaSeparated | Parquet
) -> DataFrame:
    path = os.path.expanduser(stream.path)
    if isinstance(stream, Parquet):
        return spark.read.parquet(path).select(column_named(stream.column).alias("key"))
    if isinstance(stream, CommaSeparated):
        table = spark.read.csv(path, header=True, sep=stream.delimiter)
        # By its place: of two columns with one name Spark changes both names.
        return table.select(column_named(table.columns[stream.place() - 1]).alias("key"))
    text = spark.read.text(path)
    line = F.col("value")
    if isinstance(stream, Words):
        field = F.get(F.split(line, "\t"), F.lit(stream.column - 1)) if stream.column else line
        return text.select(words_of(field).alias("key"))
    return text.select(F.get(F.split(line, "\t"), F.lit(stream.column - 1)).alias("key"))


def _write_drawn(stream: Stream, folder: Path, files: int, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("key", stream.keys_of(np.empty(0, np.uint64)).type)])
    writers: list[pq.ParquetWriter] = []
    try:
        names = (f"{number:05d}.parquet" for number in range(files))
        writers.extend(_opened(folder / name, schema, files) for name in names)
        for chunk in stream.chunks(seed):
            keys = stream.keys_of(chunk.keys)
            for number, writer in enumerate(writers):
                mine = pa.array(np.arange(number, len(keys), files))
                writer.write_table(pa.table([keys.take(mine)], schema))
    finally:
        for writer in writers:
            writer.close()


def _opened(file: Path, schema: pa.Schema, files: int) -> pq.ParquetWriter:
    try:
        return pq.ParquetWriter(file, schema)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise SkewlessError(
            f"A generated stream cannot be cut into {files:,} files, as this system lets no more "
            "be open at once: give fewer micro-batches or sources, or raise the limit (ulimit -n)."
        ) from error
