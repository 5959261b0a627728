"""A function's results put together into batches of a good size for Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

_ROWS, _BYTES = 4096, 4 << 20  # a batch that has so many is full
_FEW = 8  # results are all asked for their bytes,
_WEIGHED = 16  # of so many after them one


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
            yield from ((part, False) for part in _together(held))
            held, rows, size = [], 0, 0
        # Asking for bytes costs more than all else here, so of many one stands for those after it.
        if len(held) < _FEW:
            size += batch.nbytes
        elif len(held) % _WEIGHED == 0:
            size += _WEIGHED * batch.nbytes
        held.append(batch)
        rows += batch.num_rows
    if held:
        *parts, last = _together(held)
        yield from ((part, False) for part in parts)
        yield last, True


def _together(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """Batches of one schema as one; as several where a column of text has more than 2 GiB."""
    if len(batches) == 1:
        return batches
    return pa.Table.from_batches(batches).combine_chunks().to_batches()
