"""What a task learns while it runs a user's function: what the rows of each key cost.

The function gets its rows in small slices, and the time from handing a slice over until it asks for
the next is what the slice cost. Time before the first is asked for (loading a model), after the
last, and while Spark takes the results is nobody's. Slices are made of one key where they can be:
rows of an Arrow batch are ordered by cost and key, and a slice of several keys shares its time
equally. A slice takes about SLICE_S, so that handing it over costs little: a row that takes longer
is a slice by itself, and a function that takes next to no time gets whole batches, in which all
rows cost the same.

Rows that are expected to be cheap go before expensive ones: a row waits for all before it at its
worker, so that is the order in which rows wait least on average (Smith's rule), and the worker is
done no later.

Results are put together again into batches of a good size for Spark.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.errors import SkewlessError
from skewless.schemes.proactive.scheduler import ProactivePlan
from skewless.schemes.proactive.scheme import ProactiveReport
from skewless.sketch.count_min import CountMin, add_all
from skewless.spark.input.conform import Declared
from skewless.spark.report.arrival import arrived
from skewless.spark.report.source import source_report
from skewless.spark.report.task import Task, WorkerReport, report_column

MapFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
REPORT = "skewless_report"
SLICE_S = 0.001
_ROW, _IDENTITY, _KEY, _COST = range(4)  # places; the worker comes last
_GROWTH = 2  # a slice has at most that many times the rows of the one before
_FADING = 0.75  # what a slice counts for the time of a row, each time that another follows
_LEAST_S = 1e-9  # no row is free: the greedy choice would send all free rows to one worker
_OUT_ROWS, _OUT_BYTES = 4096, 4 << 20
_WEIGHED = 16  # of so many results of the function one is asked for its bytes
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
        watch = MapWatch(self)
        slices = watch.slices(batches)
        yield from watch.outgoing(watch.results(slices))


class MapWatch:
    """Cuts what goes into a function, times it, and puts together what comes out."""

    def __init__(self, job: MapJob) -> None:
        self._job = job
        self._task = Task.current()
        self._worker = 0
        self._started_s = time.time()
        self._taken = self._made = self._handed_on = 0
        self._busy_s = self._away_s = 0.0
        self._slice_rows = 1
        self._recent_s = self._recent_rows = 0.0
        self._given: tuple[pa.Array, int, int] | None = None  # keys of a batch, slice in work
        self._schema: pa.Schema | None = None  # of the results, as last seen
        self._schemas = 0  # seen so far, one after the other
        self._sketches = None if job.plan is None else (_empty(job.plan), _empty(job.plan))

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The user's columns, slice by slice."""
        self._worker, batches = arrived(batches)
        for batch in batches:
            identities = batch.column(_IDENTITY).to_numpy().view(np.uint64)
            if self._job.by_cost:
                order = np.lexsort((identities, batch.column(_COST).to_numpy()))
                batch, identities = batch.take(pa.array(order)), identities[order]
            yield from self._cut(batch, identities)

    def _cut(
        self, batch: pa.RecordBatch, identities: npt.NDArray[np.uint64]
    ) -> Iterator[pa.RecordBatch]:
        keys = batch.column(_KEY)
        packed = pa.RecordBatch.from_struct_array(batch.column(_ROW))
        rows = packed.rename_columns(list(self._job.columns))
        changes = (np.flatnonzero(identities[1:] != identities[:-1]) + 1).tolist()
        costs_s = np.empty(batch.num_rows)
        done = 0
        try:
            while done < batch.num_rows:
                end = _slice_end(done, self._slice_rows, changes, batch.num_rows)
                self._given = keys, done, end
                start_s = self._now_s()
                yield rows.slice(done, end - done)
                costs_s[done:end] = self._took(self._now_s() - start_s, end - done)
                self._given = None
                done = end
        finally:  # a function need not take all rows
            self._learn(identities[:done], costs_s[:done])

    def _now_s(self) -> float:
        """A clock that stands still while Spark takes results."""
        return time.perf_counter() - self._away_s

    def _took(self, seconds: float, rows: int) -> float:
        """Count a slice, and fit the next to what a row takes; the seconds of a row."""
        self._taken += rows
        self._busy_s += seconds
        row_s = max(seconds / rows, _LEAST_S)
        self._recent_s = _FADING * self._recent_s + row_s * rows
        self._recent_rows = _FADING * self._recent_rows + rows
        fitting = max(1, round(SLICE_S * self._recent_rows / self._recent_s))
        self._slice_rows = min(fitting, self._slice_rows * _GROWTH)
        return row_s

    def _learn(self, identities: npt.NDArray[np.uint64], costs_s: npt.NDArray[np.float64]) -> None:
        if self._sketches is not None and identities.size:
            counts, costs = self._sketches
            add_all(counts, identities, np.ones(identities.size))
            add_all(costs, identities, costs_s)

    def results(self, slices: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the function yields, checked: Spark takes columns by place, unseen."""
        for batch in self._called(slices):
            if not isinstance(batch, pa.RecordBatch):
                raise SkewlessError(_wrong_result("yielded", batch))
            schema = batch.schema
            if self._schema is None or not schema.equals(self._schema):
                self._job.declared.check(schema)
                self._schema = schema
                self._schemas += 1
            yield batch

    def _called(self, slices: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        """The function's results; its exceptions get a note of the key that it failed at."""
        try:
            results = self._job.function(slices)
            if isinstance(results, Iterator):
                yield from results
        except Exception as error:
            error.add_note(self._place())
            raise
        if not isinstance(results, Iterator):
            raise SkewlessError(_wrong_result("returned", results))
        slices.close()  # type: ignore[attr-defined]

    def _place(self) -> str:
        if self._given is None:
            return "The function of balanced_map was not at work on any row."
        given, start, end = self._given
        keys = list(dict.fromkeys(map(_as_text, given.slice(start, end - start).to_pylist())))
        if len(keys) == 1:
            return f"The function of balanced_map was at work on rows with the key {keys[0]}."
        named = ", ".join(keys[:_NAMED_KEYS])
        more = f" and {len(keys) - _NAMED_KEYS} others" if len(keys) > _NAMED_KEYS else ""
        return (
            f"The function of balanced_map was at work on rows with one of the keys {named}{more}."
        )

    def outgoing(self, results: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results in larger batches, with the report on the very last row."""
        held: list[pa.RecordBatch] = []
        rows = size = schemas = 0
        for batch in results:
            if not batch.num_rows:  # it could carry no report, if it were the last
                continue
            other = bool(held) and schemas != self._schemas
            if other or rows >= _OUT_ROWS or size >= _OUT_BYTES:
                yield from self._hand_on(held, last=False)
                held, rows, size = [], 0, 0
            # Asking for bytes costs more than all else here, so one stands for those after it.
            if len(held) % _WEIGHED == 0:
                size += (_WEIGHED if held else 1) * batch.nbytes
            schemas = self._schemas
            held.append(batch)
            rows += batch.num_rows
        if held:
            yield from self._hand_on(held, last=True)

    def _hand_on(self, held: list[pa.RecordBatch], last: bool) -> Iterator[pa.RecordBatch]:
        batch = held[0] if len(held) == 1 else _joined(held)
        self._made += batch.num_rows
        self._handed_on += 1
        columns, names = batch.columns, [f"r{i}" for i in range(batch.num_columns)]
        if self._job.reports:
            report = self._report() if last else None
            columns, names = [*columns, report_column(batch.num_rows, report)], [*names, REPORT]
        # Spark takes columns by place, but not two of one name.
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        left_s = time.perf_counter()
        yield batch
        self._away_s += time.perf_counter() - left_s

    def _report(self) -> str:
        task = self._task
        done = WorkerReport(
            self._worker,
            task.attempt,
            self._taken,
            self._made,
            self._handed_on - 1,
            self._busy_s,
            self._started_s,
            time.time(),
        )
        facts = {"source": task.partition, "attempt": task.attempt, "worker": done}
        if self._sketches is None:
            return source_report(facts, ())
        cells = np.stack([sketch.counts for sketch in self._sketches], axis=-1)
        return source_report(facts, ProactiveReport(cells))


def _empty(plan: ProactivePlan) -> CountMin:
    return CountMin(np.zeros(plan.known.shape[:2]), plan.hashes, np.zeros(1))


def _slice_end(start: int, rows: int, changes: list[int], most: int) -> int:
    """Where a slice ends: where the key changes, if that leaves it at least half as long."""
    end = min(start + rows, most)
    before = bisect_right(changes, end) - 1
    change = changes[before] if before >= 0 else 0
    return change if change - start > rows // 2 else end


def _as_text(key: dict[str, Any]) -> str:
    values: Sequence[Any] = list(key.values())
    return repr(values[0] if len(values) == 1 else tuple(values))


def _wrong_result(did: str, what: Any) -> str:
    kind = "None" if what is None else f"a {type(what).__name__}"
    return (
        f"The function of balanced_map {did} {kind}: let it yield pyarrow.RecordBatch, as for "
        "Spark's mapInArrow."
    )


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one; Arrow itself can do so only from version 19 on."""
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0] if table.num_rows else batches[0]
