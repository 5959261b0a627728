"""State per worker, across micro-batches: one worker's state on exactly one state partition.

Spark places the state of a stateful processor by the hash of its grouping key, and offers no other
way: partition = murmur3(key, 42) mod P. So each worker gets a surrogate key, an int chosen so that
its hash lands on the worker's own partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from skewless.errors import SkewlessError
from skewless.schemes import Scheme
from skewless.spark.inputs import Key, check_scheme, check_server, key_columns, make_plan
from skewless.spark.plans import stream_folder
from skewless.spark.route import worker_column
from skewless.spark.stream import use_rocksdb

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

_PARTITIONS = "spark.sql.shuffle.partitions"
_SPARK_SEED = 42


def per_worker(
    df: DataFrame,
    key: Key,
    scheme: Scheme | str,
    workers: int,
    processor: StatefulProcessor,
    schema: StructType | str,
    *,
    output_mode: str = "update",
    time_mode: str = "none",
    seed: int = 0,
    checkpoint: str | None = None,
) -> DataFrame:
    """Run a stateful processor once per worker, on the rows that a scheme gives the worker.

    The processor is as for Spark's `transformWithStateInPandas`; its key is `(worker,)`, and its
    state is the worker's own: a key that has several workers has a part of its state on each, and
    the processor's output must be merged by key if one result per key is wanted. The stream needs
    at least as many shuffle partitions as workers; the rows keep their columns.

    checkpoint: the folder of the stream's checkpoint, if a restart with another scheme, number of
        workers, seed or number of partitions shall be refused; it would find other state
    """
    check_server(df)
    made = check_scheme(scheme)
    plan = make_plan(made, workers, seed, None)
    if not df.isStreaming:
        raise SkewlessError(
            "State from batch to batch belongs to a stream, and this DataFrame is none: read it "
            "with spark.readStream, or use group."
        )
    keys, _ = key_columns(df, key)
    partitions = int(df.sparkSession.conf.get(_PARTITIONS) or 0)
    if partitions < workers:
        raise SkewlessError(
            f"{workers} workers need a state partition each, and {_PARTITIONS} is {partitions}: "
            f"set it to {workers} or more before the stream first starts."
        )
    if checkpoint is not None:
        stream_folder(checkpoint, made, workers, seed).claim(partitions=partitions)
    use_rocksdb(df.sparkSession)
    chosen = surrogates(workers, partitions)
    worker = worker_column(F.xxhash64(*keys), made, plan)
    placed = df.withColumn("surrogate", F.get(F.lit(chosen), worker))
    mine = _WorkerProcessor(processor, {s: w for w, s in enumerate(chosen)})
    return placed.groupBy("surrogate").transformWithStateInPandas(
        mine, schema, output_mode.capitalize(), time_mode
    )


def surrogates(workers: int, partitions: int) -> list[int]:
    """An int per worker whose hash lands on the partition of the worker's number."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < workers:
        at = murmur3_int(candidate) % partitions
        if at < workers:
            found.setdefault(at, candidate)
        candidate += 1
    return [found[worker] for worker in range(workers)]


def murmur3_int(value: int, seed: int = _SPARK_SEED) -> int:
    """Spark's `hash` of an int, signed as Spark's: murmur3 of its four bytes."""
    k = _rotated(value * 0xCC9E2D51, 15) * 0x1B873593
    h = _rotated(seed ^ (k & 0xFFFFFFFF), 13) * 5 + 0xE6546B64
    h = (h & 0xFFFFFFFF) ^ 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


class _WorkerProcessor(StatefulProcessor):
    """The user's processor, told the worker's number in place of the surrogate."""

    def __init__(self, processor: StatefulProcessor, workers: dict[int, int]) -> None:
        self._processor, self._workers = processor, workers

    def init(self, handle: Any) -> None:
        self._processor.init(handle)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        frames = (frame.drop(columns="surrogate", errors="ignore") for frame in rows)
        return self._each(self._processor.handleInputRows, key, frames, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        return self._each(self._processor.handleExpiredTimer, key, timerValues, expiredTimerInfo)

    def close(self) -> None:
        self._processor.close()

    def _each(self, call: Callable[..., Any], key: Any, *more: Any) -> Iterator[pd.DataFrame]:
        return iter(call((self._workers[int(key[0])],), *more))
