"""What a task of balanced_map runs: the user's function, and what Spark gets of it.

Rows go in through `timing`, which cuts and times them; results come out through `joining`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skewless.errors import SkewlessError
from skewless.schemes.proactive.scheduler import ProactivePlan
from skewless.spark.input.conform import Declared
from skewless.spark.map.joining import joined
from skewless.spark.map.timing import KeyCosts, Watch, slices
from skewless.spark.report.source import source_report
from skewless.spark.report.task import Task, WorkerReport, report_column

MapFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
REPORT = "skewless_report"
_NAMED_KEYS = 5


@dataclass(frozen=True)
class MapJob:
    """What a task runs on batches of the user's rows, packed in one column, and columns of ours.

    Ours are the key's identity, the key, what the row is expected to cost, and the worker.
    """

    function: MapFunction
    columns: tuple[str, ...]
    declared: Declared  # the columns of the results
    by_cost: bool  # whether rows go by what they are expected to cost, the cheapest first
    plan: ProactivePlan | None  # whose matrices the costs go into; None learns nothing
    reports: bool  # whether a last column carries the task's report

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function's results."""
        task, started_s, watch = Task.current(), time.time(), Watch()
        learned = None if self.plan is None else KeyCosts.none(self.plan)
        given = slices(batches, self.columns, self.by_cost, watch, learned)
        made = 0
        for flushes, (batch, last) in enumerate(joined(self._results(given, watch))):
            made += batch.num_rows
            report = None
            if self.reports and last:
                seen = WorkerReport(
                    worker=watch.worker,
                    attempt=task.attempt,
                    messages=watch.rows_done,
                    partials=made,
                    flushes=flushes,
                    busy_s=watch.busy_s,
                    started_s=started_s,
                    ended_s=time.time(),
                )
                facts = {"source": task.partition, "attempt": task.attempt, "worker": seen}
                report = source_report(facts, () if learned is None else learned.report())
            outgoing = self._outgoing(batch, report)
            with watch.stopped():
                yield outgoing

    def _results(
        self, given: Generator[pa.RecordBatch, None, None], watch: Watch
    ) -> Iterator[pa.RecordBatch]:
        """What the function yields, checked: Spark takes columns by place, unseen."""
        checked: pa.Schema | None = None
        for batch in self._called(given, watch):
            if not isinstance(batch, pa.RecordBatch):
                raise SkewlessError(_wrong_result("yielded", batch))
            if checked is None or not batch.schema.equals(checked):
                self.declared.check(batch.schema)
                checked = batch.schema
            yield batch

    def _called(self, given: Generator[pa.RecordBatch, None, None], watch: Watch) -> Iterator[Any]:
        """The function's results; its exceptions get a note of the key that it failed at."""
        try:
            results = self.function(given)
            if isinstance(results, Iterator):
                yield from results
        except Exception as error:
            error.add_note(_place(watch.keys))
            raise
        if not isinstance(results, Iterator):
            raise SkewlessError(_wrong_result("returned", results))
        given.close()

    def _outgoing(self, batch: pa.RecordBatch, report: str | None) -> pa.RecordBatch:
        """The batch as Spark gets it: it takes columns by place, but not two of one name."""
        columns, names = batch.columns, [f"r{i}" for i in range(batch.num_columns)]
        if self.reports:
            columns, names = [*columns, report_column(batch.num_rows, report)], [*names, REPORT]
        return pa.RecordBatch.from_arrays(columns, names=names)


def _place(in_hand: pa.Array | None) -> str:
    """Where the function was, by the keys of the slice that it had in hand."""
    if in_hand is None:
        return "The function of balanced_map was not at work on any row."
    keys = list(dict.fromkeys(map(_as_text, in_hand.to_pylist())))
    if len(keys) == 1:
        return f"The function of balanced_map was at work on rows with the key {keys[0]}."
    named = ", ".join(keys[:_NAMED_KEYS])
    more = f" and {len(keys) - _NAMED_KEYS} others" if len(keys) > _NAMED_KEYS else ""
    return f"The function of balanced_map was at work on rows with one of the keys {named}{more}."


def _as_text(key: dict[str, Any]) -> str:
    values: Sequence[Any] = list(key.values())
    return repr(values[0] if len(values) == 1 else tuple(values))


def _wrong_result(did: str, what: Any) -> str:
    kind = "None" if what is None else f"a {type(what).__name__}"
    return (
        f"The function of balanced_map {did} {kind}: let it yield pyarrow.RecordBatch, as for "
        "Spark's mapInArrow."
    )
