"""A function's results put together into batches of a good size for Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

_ROWS, _BYTES = 4096, 4 << 20  # a batch that has so many is full
_WEIGHED = 16  # of so many results one is asked for its bytes


def joined(results: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """The results in larger batches of one schema each, and whether it is the last one.

    None of them is empty: a report rides on the very last row.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in results:
        if not batch.num_rows:
            continue
        full = rows >= _ROWS or size >= _BYTES
        if held and (full or not batch.schema.equals(held[0].schema)):
            yield _as_one(held), False
            held, rows, size = [], 0, 0
        # Asking for bytes costs more than all else here, so one stands for those after it.
        if len(held) % _WEIGHED == 0:
            size += (_WEIGHED if held else 1) * batch.nbytes
        held.append(batch)
        rows += batch.num_rows
    if held:
        yield _as_one(held), True


def _as_one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one; Arrow itself can do so only from version 19 on."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0]
