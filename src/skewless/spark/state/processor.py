"""A user's stateful processor as a worker runs it, and the report that it may send of each batch.

A report comes in a row of its own, which the driver observes and takes out again: a processor need
not give any row that could carry it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StringType, StructField, StructType

from skewless.errors import SkewlessError
from skewless.spark.input.version import StatefulProcessor
from skewless.spark.report.task import Task, WorkerReport

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

WORKER, SURROGATE, REPORT = "skewless_worker", "skewless_surrogate", "skewless_report"


def reporting_schema(given: StructType) -> StructType:
    """The schema with a column for reports; whatever stands beside a report is null."""
    if REPORT in (name.lower() for name in given.names):
        raise SkewlessError(
            f"The schema has a column '{REPORT}', which per_worker uses itself: rename it."
        )
    fields = [StructField(name, given[name].dataType) for name in given.names]
    return StructType([*fields, StructField(REPORT, StringType())])


class WorkerProcessor(StatefulProcessor or object):  # type: ignore[misc]
    """The user's processor, told the worker's number in place of the surrogate."""

    def __init__(self, processor: StatefulProcessor, workers: dict[int, int]) -> None:
        self._processor, self._workers = processor, workers

    def init(self, handle: Any) -> None:
        """The processor's own."""
        self._processor.init(handle)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """The processor's own, on rows without the columns that placed them."""
        hidden = [SURROGATE, WORKER]
        frames = (frame.drop(columns=hidden, errors="ignore") for frame in rows)
        return iter(self._processor.handleInputRows(self._own(key), frames, timerValues))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """The processor's own."""
        handle = self._processor.handleExpiredTimer
        return iter(handle(self._own(key), timerValues, expiredTimerInfo))

    def close(self) -> None:
        """The processor's own."""
        self._processor.close()

    def _own(self, key: Any) -> tuple[int]:
        return (self._workers[int(key[0])],)


class ReportingProcessor(WorkerProcessor):
    """The same, which adds a row with its report after what a batch gave."""

    def __init__(
        self, processor: StatefulProcessor, workers: dict[int, int], columns: list[str]
    ) -> None:
        super().__init__(processor, workers)
        self._columns = columns

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """The processor's rows, then the report."""
        import pandas as pd

        watch = _ProcessorWatch(self._own(key)[0])
        handle = super().handleInputRows
        for frame in watch.outgoing(lambda: handle(key, watch.incoming(rows), timerValues)):
            if len(frame):  # without rows it need not have columns either
                yield self._without_report(frame)
        beside = [None] * (len(self._columns) - 1)
        yield pd.DataFrame([[*beside, watch.report()]], columns=self._columns, dtype=object)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """The processor's rows; timers are no messages, and not reported."""
        for frame in super().handleExpiredTimer(key, timerValues, expiredTimerInfo):
            if len(frame):
                yield self._without_report(frame)

    def _without_report(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The processor's rows; as Spark has it, columns without names are taken by place."""
        named = any(isinstance(name, str) for name in frame.columns)
        if not named and len(frame.columns) == len(self._columns) - 1:
            frame = frame.set_axis(self._columns[:-1], axis="columns")
        return frame.assign(**{REPORT: None})


class _ProcessorWatch:
    """Counts what a worker's processor takes and gives, and the time in which it works.

    That is the time inside the processor, without what it waits there for its next messages.
    """

    def __init__(self, worker: int) -> None:
        self._worker, self._attempt = worker, Task.current().attempt
        self._started_s = time.time()
        self._messages = self._rows = 0
        self._busy_s = 0.0

    def incoming(self, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The frames, counted."""
        while True:
            with self._timed(-1):
                frame = next(frames, None)
            if frame is None:
                return
            self._messages += len(frame)
            yield frame

    def outgoing(self, start: Callable[[], Iterator[pd.DataFrame]]) -> Iterator[pd.DataFrame]:
        """The frames that the processor gives, counted."""
        with self._timed(1):
            frames = start()
        while True:
            with self._timed(1):
                frame = next(frames, None)
            if frame is None:
                return
            self._rows += len(frame)
            yield frame

    def report(self) -> str:
        """What was counted, as a worker's report."""
        counted = (self._messages, self._rows, 0, self._busy_s)
        done = WorkerReport(self._worker, self._attempt, *counted, self._started_s, time.time())
        return json.dumps(done)

    @contextmanager
    def _timed(self, sign: int) -> Iterator[None]:
        start_s = time.perf_counter()
        yield
        self._busy_s += sign * (time.perf_counter() - start_s)
