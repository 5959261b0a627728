"""What a worker runs over its Arrow batches: fold messages into partials, merge, finish.

A batch of messages has the key columns first, then the value columns; a batch of partials has the
key columns first, then the partial columns of each fold in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from skewless.folds.api import Fold
from skewless.folds.groups import group_rows
from skewless.folds.hottest import HottestKeys

SPAN_ROWS = 1 << 16


@dataclass(frozen=True)
class FoldJob:
    """Folds bound to the columns of a batch.

    inputs: per fold, the positions of its columns in a batch of messages
    most_keys, most_bytes: when a worker holds more partials than this, it flushes them
    hottest: is told how many messages each key of a batch has
    """

    keys: int
    folds: tuple[Fold, ...]
    inputs: tuple[tuple[int, ...], ...]
    partial_schema: pa.Schema
    partial_counts: tuple[int, ...]
    result_schema: pa.Schema
    most_keys: int = 1_000_000
    most_bytes: int = 256 << 20
    hottest: HottestKeys | None = None

    def on_worker(self, worker: int) -> FoldJob:
        """The job as this worker runs it."""
        return replace(self, folds=tuple(fold.on_worker(worker) for fold in self.folds))

    def reduce(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Messages to partials, one per key."""
        columns = batch.columns
        groups, keys = group_rows(columns[: self.keys])
        if self.hottest is not None:
            self.hottest.add(keys, np.bincount(groups.ids, minlength=groups.size))
        partials: list[pa.Array] = []
        for fold, positions in zip(self.folds, self.inputs, strict=True):
            partials += fold.reduce_groups(groups, [columns[i] for i in positions])
        return _conform(keys + partials, self.partial_schema)

    def merge(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Partials to one per key."""
        table = pa.Table.from_batches(batches, self.partial_schema).combine_chunks()
        columns = [_whole(column) for column in table.columns]
        groups, keys = group_rows(columns[: self.keys])
        merged: list[pa.Array] = []
        for fold, partials in self._per_fold(columns):
            merged += fold.merge_groups(groups, partials)
        return _conform(keys + merged, self.partial_schema)

    def finish(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Partials to results."""
        columns = batch.columns
        results = [fold.finish_groups(partials) for fold, partials in self._per_fold(columns)]
        return _conform(columns[: self.keys] + results, self.result_schema)

    def _per_fold(self, columns: Sequence[pa.Array]) -> Iterator[tuple[Fold, list[pa.Array]]]:
        at = self.keys
        for fold, count in zip(self.folds, self.partial_counts, strict=True):
            yield fold, list(columns[at : at + count])
            at += count


def fold_batches(job: FoldJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold a worker's messages; its partials come at the end, or earlier if they grow too many.

    A key whose partials were handed on may come again: partials are merged by key afterwards.
    """
    held: list[pa.RecordBatch] = []
    rows = merged_rows = held_bytes = merged_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        partial = job.reduce(batch)
        held.append(partial)
        rows += partial.num_rows
        held_bytes += partial.nbytes
        # Merging when the partials have doubled keeps the cost per message constant.
        if rows <= min(max(2 * merged_rows, SPAN_ROWS), job.most_keys) and (
            held_bytes <= job.most_bytes
        ):
            continue
        held = [job.merge(held)]
        rows = merged_rows = held[0].num_rows
        held_bytes = merged_bytes = held[0].nbytes
        if 2 * merged_rows > job.most_keys or 2 * merged_bytes > job.most_bytes:
            yield held.pop()
            rows = merged_rows = held_bytes = merged_bytes = 0
    if held:
        yield held[0] if len(held) == 1 else job.merge(held)


def merge_sorted(job: FoldJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge and finish partials that come sorted by key: equal keys are next to each other.

    Only the last key of a batch can continue in the next, so one batch is held at a time.
    """
    carried: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        merged = job.merge([*carried, _conform(batch.columns, job.partial_schema)])
        last = merged.num_rows - 1
        carried = [merged.slice(last)]
        if last:
            yield job.finish(merged.slice(0, last))
    if carried:
        yield job.finish(carried[0])


def split_sorted(
    keys: int, batches: Iterable[pa.RecordBatch], function: Callable[[pa.Table], pa.Table]
) -> Iterator[pa.RecordBatch]:
    """Call a function with all rows of each key, of rows that come sorted by their first columns.

    The function gets the rows without these columns.
    """
    held: list[pa.RecordBatch] = []
    last: list[pa.Array] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        columns, rows = batch.columns[:keys], batch.select(range(keys, batch.num_columns))
        before = last or [column.slice(0, 1) for column in columns]
        pairs = zip(before, columns, strict=True)
        groups, _ = group_rows([pa.concat_arrays(pair) for pair in pairs])
        at = 0
        for start in np.flatnonzero(np.diff(groups.ids)).tolist():
            held.append(rows.slice(at, start - at))
            yield from function(pa.Table.from_batches(held)).to_batches()
            held, at = [], start
        held.append(rows.slice(at))
        last = [column.slice(len(column) - 1) for column in columns]
    if held:
        yield from function(pa.Table.from_batches(held)).to_batches()


def _conform(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
