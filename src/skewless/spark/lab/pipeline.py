"""The whole pipeline: source, splitter, route, workers, merge, sink, watched by the observer.

A stream runs as Structured Streaming: its keys, or the lines of a folder's text files, come file by
file, a micro-batch each; a batch reads all at once. The sink is a Parquet folder that holds the
newest complete result, replaced whole.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from skewless import folds
from skewless.errors import SkewlessError
from skewless.folds import Fold
from skewless.folds.delay import check_delay, check_speeds
from skewless.schemes import Scheme
from skewless.spark.fold.group import group
from skewless.spark.input.checks import Key, check_scheme
from skewless.spark.lab.frames import ROW_OF_FILE, words_of, write_keys
from skewless.spark.lab.kafka import Kafka, judged, keys_of, read, with_short_errors, write
from skewless.spark.lab.kafka_bad import BadMessages
from skewless.spark.lab.kafka_errors import failure
from skewless.spark.lab.session import beside
from skewless.spark.observe.observer import Observer, Record
from skewless.spark.observe.progress import sentence_of
from skewless.spark.routing.learn import learn
from skewless.spark.routing.plan import Plan
from skewless.streams import Stream

_LAST_BATCH_S = 10.0
_DONE = "_SUCCESS"  # the file that Spark adds when a result is complete


@dataclass(frozen=True)
class Pipeline:
    """What to run.

    source: a stream, a folder of text files whose lines are split into words, or topics of Kafka
    batches: micro-batches that a stream is cut into; 0 runs it as one batch job
    delay_ms: time each message takes at its worker
    speeds: the speed of each worker, which divides the delay; 1 each if not given
    sink: folder of the Parquet result, or None to keep it in memory only; Kafka has its own
    checkpoint: folder that lets a stopped pipeline go on; else it starts from scratch
    bad: is told of messages from Kafka that cannot be read
    """

    source: Stream | Path | Kafka
    scheme: Scheme
    workers: int
    batches: int = 8
    delay_ms: float = 0.0
    sink: Path | None = None
    checkpoint: Path | None = None
    seed: int = 0
    speeds: Sequence[float] | None = None
    bad: BadMessages = field(default_factory=BadMessages, compare=False)

    def __post_init__(self) -> None:
        if self.batches < 0:
            raise SkewlessError(
                f"The number of micro-batches must be at least 0, not {self.batches}."
            )
        check_delay(self.delay_ms)
        check_scheme(self.scheme)
        self.scheme.plan(self.workers, self.seed)  # says so if there are too few workers
        if self.speeds is not None:
            self._check_speeds(self.speeds)
        if self.sink is not None:
            self._check_sink(self.sink)
        if isinstance(self.source, Kafka):
            if self.sink is not None or not self.batches:
                raise SkewlessError(
                    "With Kafka the counts go to a topic, micro-batch by micro-batch: leave --out "
                    "and --batches out."
                )
        elif isinstance(self.source, Path):
            if self.source.is_file():
                raise SkewlessError(
                    f"'{self.source}' is a file: give the folder that it is in, or a stream such "
                    f"as words:path={self.source}."
                )
            if not self.source.is_dir() or not any(self.source.iterdir()):
                raise SkewlessError(
                    f"The folder '{self.source}' holds no file: give a folder of text files."
                )
        elif self.checkpoint is not None:
            raise SkewlessError(
                "A checkpoint goes with a folder of text files or Kafka as the source: a generated "
                "stream is written again for each run, so there is nothing to go on from."
            )
        else:
            self.source.check()

    def _check_sink(self, sink: Path) -> None:
        """Only an earlier result may be replaced: what else a folder holds would be lost."""
        if sink.name in ("", ".."):
            raise SkewlessError(f"The sink '{sink}' has no name of its own: give a folder's name.")
        empty = not sink.exists() or (sink.is_dir() and not any(sink.iterdir()))
        if not empty and not (sink / _DONE).is_file():
            raise SkewlessError(
                f"'{sink}' exists and is no earlier result, and would be replaced whole: "
                "give another folder for the counts."
            )

    def _check_speeds(self, speeds: Sequence[float]) -> None:
        check_speeds(speeds)
        if len(speeds) != self.workers:
            raise SkewlessError(
                f"There are {len(speeds)} speeds for {self.workers} workers: give as many."
            )
        if not self.delay_ms:
            raise SkewlessError(
                "Speeds divide the time that a message takes, and no message takes any: "
                "give a delay above 0 ms with them."
            )


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    observer: Observer,
    on_record: Callable[[Record], None] = lambda record: None,
    top: int = 10,
) -> list[tuple[str, int]]:
    """Run to the end of the source; the most frequent keys with their counts.

    From Kafka: of the keys that came in this run, counted with all that the checkpoint knows.
    """
    with tempfile.TemporaryDirectory(prefix="skewless-run-") as folder:
        work = Path(folder)
        if not pipeline.batches:
            keys, row = _batch_keys(spark, pipeline, work)
            counts = _count(keys, pipeline, observer, salt=row).cache()
            try:
                counts.count()
                _save(counts, pipeline.sink)
                best = _top(counts, top)
            finally:
                counts.unpersist()
            for record in observer.records():
                on_record(record)
            return best
        return _stream(spark, pipeline, observer, on_record, top, work)


def _stream(
    spark: SparkSession,
    pipeline: Pipeline,
    observer: Observer,
    on_record: Callable[[Record], None],
    top: int,
    work: Path,
) -> list[tuple[str, int]]:
    keys = _stream_keys(spark, pipeline, work)
    checkpoint = pipeline.checkpoint or work / "checkpoint"
    kafka = pipeline.source if isinstance(pipeline.source, Kafka) else None
    best: list[tuple[str, int]] = []
    failed: list[Exception] = []

    def keep(counts: DataFrame, batch: int) -> None:
        held = counts.cache()
        if kafka is None:
            best[:] = _top(held, top)
            _save(held, pipeline.sink)
        else:
            # Counts only grow, so whatever is among the most frequent was so in its last batch.
            newest = dict(best) | dict(_top(held, top))
            best[:] = sorted(newest.items(), key=lambda pair: (-pair[1], pair[0]))[:top]
            write(held, batch, kafka)
        held.unpersist()

    writer = (
        _count(keys, pipeline, observer, checkpoint)
        .writeStream.outputMode("complete" if kafka is None else "update")
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(keep if kafka is None else with_short_errors(keep, failed))
    )
    if kafka is None or not kafka.endless:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    told = beside(lambda: _tell(query, observer, on_record))
    try:
        told.result()
    except KeyboardInterrupt:
        if kafka is None or not kafka.endless:
            raise
        query.stop()  # the one way in which it ends
        wait([told], 2 * _LAST_BATCH_S)
        observer.query_is(str(query.runId), "ended")
    except StreamingQueryException as error:
        if kafka is None:
            raise
        raise failure(next(iter(failed), error), kafka) from error
    return best


def _tell(query: StreamingQuery, observer: Observer, on_record: Callable[[Record], None]) -> None:
    """Pass the records of a query on until it ends."""
    told = -1
    ended = False
    while not ended:
        try:
            ended = bool(query.awaitTermination(1))
        except Exception as error:
            observer.query_is(str(query.runId), "failed", sentence_of(str(error)))
            raise
        if ended:
            _await_last_batch(query, observer)
        for record in observer.records(0):
            if record.run != str(query.runId) or record.batch is None or record.batch <= told:
                continue
            on_record(record)
            told = record.batch
    observer.query_is(str(query.runId), "ended")


def _await_last_batch(query: StreamingQuery, observer: Observer) -> None:
    """Spark tells of a batch a moment after it ended, also of the last."""
    last = query.lastProgress
    stop_s = time.monotonic() + _LAST_BATCH_S
    while last is not None and time.monotonic() < stop_s:
        if any(record.batch == last["batchId"] for record in observer.records(0)):
            return
        time.sleep(0.05)


def _count(
    keys: DataFrame,
    pipeline: Pipeline,
    observer: Observer,
    checkpoint: Path | None = None,
    salt: Key | None = None,
) -> DataFrame:
    fold: Fold = folds.count()
    if pipeline.delay_ms:
        fold = folds.sleeping(fold, pipeline.delay_ms, pipeline.speeds)
    plan: Plan | None = None
    if pipeline.scheme.learns == "prefix" and not keys.isStreaming:
        plan = learn(keys, "key", pipeline.scheme, pipeline.workers, seed=pipeline.seed)
    return group(
        keys,
        "key",
        pipeline.scheme,
        pipeline.workers,
        seed=pipeline.seed,
        plan=plan,
        salt=salt,
        checkpoint=None if checkpoint is None else str(checkpoint),
        observer=observer,
    ).fold(fold)


def _batch_keys(spark: SparkSession, pipeline: Pipeline, work: Path) -> tuple[DataFrame, Key]:
    """The keys, and what tells rows of one key apart: their number, as there is no other column."""
    assert not isinstance(pipeline.source, Kafka)  # a pipeline refuses it
    if isinstance(pipeline.source, Path):
        lines = spark.read.text(str(pipeline.source))
        numbered = lines.select("value", F.monotonically_increasing_id().alias("line"))
        return numbered.select(words_of(F.col("value")).alias("key"), "line"), "line"
    return write_keys(spark, pipeline.source, work / "keys", 8, pipeline.seed), ROW_OF_FILE


def _stream_keys(spark: SparkSession, pipeline: Pipeline, work: Path) -> DataFrame:
    if isinstance(pipeline.source, Kafka):
        messages = judged(read(spark, pipeline.source), pipeline.source.split)
        return keys_of(pipeline.bad.left_out(messages), pipeline.source.split)
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    if isinstance(pipeline.source, Path):
        lines = reader.text(str(pipeline.source))
        return lines.select(words_of(F.col("value")).alias("key"))
    written = write_keys(spark, pipeline.source, work / "keys", pipeline.batches, pipeline.seed)
    return reader.schema(written.schema).parquet(str(work / "keys"))


def _top(counts: DataFrame, top: int) -> list[tuple[str, int]]:
    key, count = counts.columns
    rows = counts.orderBy(F.desc(count), key).limit(top).collect()
    return [("null" if row[0] is None else str(row[0]), int(row[1])) for row in rows]


def _save(counts: DataFrame, sink: Path | None) -> None:
    """Put a new result in the place of the old one, whole.

    For a moment in between, a reader finds no sink; one that is still reading the old result loses
    its files. If the run is killed in that moment, the new result lies in `<sink>.new` until the
    next run puts its own into the sink.
    """
    if sink is None:
        return
    fresh, old = sink.with_name(sink.name + ".new"), sink.with_name(sink.name + ".old")
    counts.write.mode("overwrite").parquet(str(fresh))
    shutil.rmtree(old, ignore_errors=True)  # a run that was killed may have left it
    if sink.exists():
        os.replace(sink, old)
    os.replace(fresh, sink)
    shutil.rmtree(old, ignore_errors=True)
