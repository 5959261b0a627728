"""What a task knows of itself, and the reports that tasks send to the driver.

A report rides on a task's last row and reaches the driver by Spark's `observe`, which exists on
Spark Connect too. When a stage runs again after an executor was lost, Spark 4.3 observes the last
attempt of each partition only: counts come out right, as tests/faults holds fast. An earlier Spark
may add up all attempts. So a report says which partition it is of and which attempt wrote it, and
only the last one counts, which is the one whose rows Spark kept. Reports are text: Spark Connect
hands on the progress of a stream as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skewless.folds.hottest import HottestKeys


class Task(NamedTuple):
    """The running task: its partition, its attempt (greater = later) and its micro-batch."""

    partition: int
    attempt: int
    batch: int | None

    @classmethod
    def current(cls) -> Task:
        """The task in which this is called; all zero outside of any."""
        from pyspark import TaskContext  # only where tasks run: a thin Connect client may lack it

        context: Any = TaskContext.get()
        if context is None:
            return cls(0, 0, None)
        batch = context.getLocalProperty("streaming.sql.batchId")
        return cls(
            int(context.partitionId()),
            int(context.taskAttemptId()),
            None if batch is None else int(batch),
        )


class WorkerReport(NamedTuple):
    """What one worker did in one run or micro-batch.

    busy_s is the time in which it folded, without waiting for messages; flushes are the times it
    flushed its partials early. Times are seconds since 1970. hot are its hottest keys by name
    with the messages of each, where somebody asked for them.
    """

    worker: int
    attempt: int
    messages: int
    partials: int
    flushes: int
    busy_s: float
    started_s: float
    ended_s: float
    hot: Sequence[tuple[str | None, int]] | None = None


class WorkerWatch:
    """Counts what goes into and comes out of a worker's fold.

    hottest: what counts its keys by name, if anybody wants to see them
    """

    def __init__(self, worker: int, hottest: HottestKeys | None = None) -> None:
        self.worker, self.hottest = worker, hottest
        self.attempt = Task.current().attempt
        self.started_s = time.time()
        self.messages = self.partials = self.flushes = 0
        self.busy_s = 0.0

    def incoming(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, counted; the time until the next is asked for is work."""
        for batch in batches:
            self.messages += batch.num_rows
            start_s = time.perf_counter()
            yield batch
            self.busy_s += time.perf_counter() - start_s

    def outgoing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with a column for the report, which stands on the very last row."""
        held: pa.RecordBatch | None = None
        for batch in batches:
            self.partials += batch.num_rows
            if held is not None:
                self.flushes += 1
                yield with_report(held, None)
            held = batch
        if held is not None:
            yield with_report(held, self._report())

    def _report(self) -> str:
        done = WorkerReport(
            self.worker,
            self.attempt,
            self.messages,
            self.partials,
            self.flushes,
            self.busy_s,
            self.started_s,
            time.time(),
            None if self.hottest is None else self.hottest.best(),
        )
        return json.dumps(done)


def with_report(batch: pa.RecordBatch, report: str | None) -> pa.RecordBatch:
    """The batch with a last column that is null but for the report on the last row."""
    column = report_column(batch.num_rows, report)
    schema = batch.schema.append(pa.field("report", pa.string()))
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)


def report_column(rows: int, report: str | None) -> pa.Array:
    """Nulls, but for the report on the last row."""
    if report is None:
        return pa.nulls(rows, pa.string())
    return pa.concat_arrays([pa.nulls(rows - 1, pa.string()), pa.array([report], pa.string())])


def worker_reports(observed: Iterable[str]) -> list[WorkerReport]:
    """One report per worker, of its last attempt."""
    return last_attempts(WorkerReport(*json.loads(text)) for text in observed)


def last_attempts(reports: Iterable[WorkerReport]) -> list[WorkerReport]:
    """The last report of each worker, in the order of workers."""
    last: dict[int, WorkerReport] = {}
    for report in reports:
        if report.worker not in last or last[report.worker].attempt < report.attempt:
            last[report.worker] = report
    return [last[worker] for worker in sorted(last)]


def per_worker(reports: Sequence[WorkerReport], what: str, workers: int) -> np.ndarray[Any, Any]:
    """One field of the reports as an array over the workers."""
    values = np.zeros(workers)
    for report in reports:
        values[report.worker] = getattr(report, what)
    return values
