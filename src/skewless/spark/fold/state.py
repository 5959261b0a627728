"""Partials that only Python can merge, kept in Spark's state store from batch to batch.

A key's state is its merged partial as one Arrow record of bytes, with what the stream folds in
front; the same is kept once for the whole stream. Spark hands keys and states to Python by pandas,
which would change some values (whole numbers with nulls, far-off times, all times by the session's
time zone): so it sees bytes only, and the key itself travels inside them. Beside them is the time
at which the key ends, as a whole number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from skewless.folds.worker import FoldJob
from skewless.spark.fold.bind import BoundFolds
from skewless.spark.fold.key_bytes import key_bytes
from skewless.spark.fold.merge import named_results
from skewless.spark.input.keys import WATERMARK

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

_PACKED = "packed binary"
# A key of no message, under which the stream's facts are kept and compared in each batch: a change
# of the key alone would else find no state at all, and none to disagree with.
FACTS = b"skewless"


def merge_with_state(partials: DataFrame, bound: BoundFolds, output_mode: str) -> DataFrame:
    """One row per key and batch in which it changed, or one in all once its time has passed.

    output_mode: "update" or "append"; a key ends when the watermark passes its window's end
    """
    expiry = bound.keys.expiry()
    rows = _packed(partials, bound)
    timeout = "NoTimeout" if expiry is None else "EventTimeTimeout"
    merge = _merging(bound, expiry is not None, output_mode == "append")
    grouped = rows.groupBy("key")
    merged = grouped.applyInPandasWithState(merge, _PACKED, _PACKED, output_mode, timeout)
    finish = _finishing(bound.job)
    return named_results(merged.mapInArrow(finish, bound.result_schema), bound)


def _packed(partials: DataFrame, bound: BoundFolds) -> DataFrame:
    """Per partial: the key as bytes to group by, when it ends, and all of it as bytes.

    Two keys have the same bytes exactly if they are equal: floats have one NaN and one zero by now.
    It ends at `until`, by which Spark drops what is late; for Python the same time is `ends_ms`.
    """
    keys = bound.keys
    flat = zip(keys.names(), keys.flat_fields(), strict=True)
    key = F.concat(*(key_bytes(F.col(name), field.dataType) for name, field in flat))
    expiry = keys.expiry()
    until = [] if expiry is None else [F.col(expiry).alias("until")]
    carried = partials.select(key.alias("key"), *until, F.struct("*").alias("all"))
    job, bound_facts = bound.job, bound.facts
    ends_ms = [StructField("ends_ms", LongType()) for _ in until]
    out = StructType([*carried.schema.fields[:-1], *ends_ms, StructField("packed", BinaryType())])

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        said = False
        for batch in batches:
            key, *ends, whole = batch.columns
            parts = zip(whole.flatten(), job.partial_schema, strict=True)
            rows = pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in parts], schema=job.partial_schema
            )
            data = pa.array([_bytes(rows.slice(i, 1)) for i in range(rows.num_rows)], pa.binary())
            columns = [key, *ends, *map(_whole_ms, ends), data]
            found = pa.RecordBatch.from_arrays(columns, names=out.names)
            if found.num_rows and not said:
                said = True
                facts = {"key": FACTS, "packed": bound_facts.seal}
                yield pa.RecordBatch.from_pylist([facts], found.schema)
            yield found

    rows = carried.mapInArrow(pack, out)
    if expiry is None:
        return rows
    metadata = next(f.metadata for f in keys.fields if WATERMARK in f.metadata)
    ended = F.col("until").alias("until", metadata={WATERMARK: metadata[WATERMARK]})
    return rows.select("key", ended, "ends_ms", "packed")


def _whole_ms(times: pa.Array) -> pa.Array:
    """Milliseconds since 1970, rounded up: a watermark of whole ones reaches both at once."""
    micros = times.cast(pa.int64()).to_pylist()
    return pa.array([None if us is None else -(-us // 1000) for us in micros], pa.int64())


def _merging(bound: BoundFolds, ends: bool, append: bool) -> Any:
    job, facts = bound.job, bound.facts  # the DataFrame in `bound` does not pickle

    def merge(
        key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        if bytes(key[0]) == FACTS:
            if state.exists:
                facts.opened(state.get[0])
            state.update((facts.seal,))
            return
        if state.hasTimedOut:
            held = facts.opened(state.get[0])
            state.remove()
            if append:
                yield pd.DataFrame({"packed": [held]})
            return
        parts = [facts.opened(state.get[0])] if state.exists else []
        ends_ms = None
        for frame in frames:
            parts += frame["packed"].tolist()
            if ends and pd.notna(frame["ends_ms"].iloc[0]):  # without a time a key never ends
                ends_ms = int(frame["ends_ms"].iloc[0])
        merged = _bytes(job.merge([_record(part, job.partial_schema) for part in parts]))
        # Spark drops as late what ended before the last batch: a key may end in this very batch.
        ended = ends_ms is not None and ends_ms <= state.getCurrentWatermarkMs()
        if not ended:
            state.update((facts.sealed(merged),))
            if ends_ms is not None:
                # One less: Spark's own aggregate ends at the watermark, a timeout only behind it.
                state.setTimeoutTimestamp(ends_ms - 1)
        elif state.exists:
            state.remove()
        if ended or not append:
            yield pd.DataFrame({"packed": [merged]})

    return merge


def _finishing(job: FoldJob) -> Any:
    def finish(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            records = [_record(data, job.partial_schema) for data in batch[0].to_pylist()]
            if records:
                table = pa.Table.from_batches(records).combine_chunks()
                yield job.finish(table.to_batches()[0])

    return finish


def _bytes(record: pa.RecordBatch) -> bytes:
    data: bytes = record.serialize().to_pybytes()
    return data


def _record(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(data), schema)
