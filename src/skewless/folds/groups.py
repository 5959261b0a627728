"""Rows to groups: which key each row of a batch belongs to, without a Python object per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.folds.nested import canonical, is_nested, nested_columns

I64 = npt.NDArray[np.int64]


class Groups(NamedTuple):
    """The group of every row: numbers 0 … size − 1."""

    ids: I64  # [rows]
    size: int


def encode(array: pa.Array) -> tuple[I64, pa.Array]:
    """A code per row, and the distinct values that the codes number; null is a value too.

    Floats are first made canonical, as Spark's `groupBy` does: -0.0 is 0.0 and every NaN one value.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    array = canonical(array)
    if not is_nested(array.type):
        encoded = pc.dictionary_encode(array, null_encoding="encode")
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary
    codes, _ = encode_rows(nested_columns(array, encode))
    _, firsts = np.unique(codes, return_index=True)
    return codes, array.take(pa.array(firsts))


def group_rows(columns: Sequence[pa.Array]) -> tuple[Groups, list[pa.Array]]:
    """The groups of equal rows, and the row of each group, column by column."""
    codes, rows = encode_rows(columns)
    return Groups(codes, len(rows[0])), rows


def encode_rows(columns: Sequence[pa.Array]) -> tuple[I64, list[pa.Array]]:
    """A code per row of several columns, and the distinct rows that the codes number."""
    codes, dictionary = encode(columns[0])
    rows = [dictionary]
    for column in columns[1:]:
        more, dictionary = encode(column)
        width = max(len(dictionary), 1)
        # Dense again after each column, so that the product cannot overflow.
        codes, pairs = encode(pa.array(codes * width + more))
        firsts, lasts = np.divmod(pairs.to_numpy(), width)
        rows = [row.take(pa.array(firsts)) for row in rows]
        rows.append(dictionary.take(pa.array(lasts)))
    return codes, rows


def aggregate(groups: Groups, values: pa.Array, how: str) -> pa.Array:
    """Arrow's own aggregate of the values of each group; null for a group without a row."""
    table = pa.table({"group": groups.ids, "value": values})
    found = table.group_by("group", use_threads=False).aggregate([("value", how)])
    positions = np.full(groups.size, -1, np.int64)
    positions[found["group"].to_numpy()] = np.arange(found.num_rows)
    where = pa.array(positions, mask=positions < 0)
    return _whole(found[f"value_{how}"]).take(where)


def valid_rows(values: pa.Array) -> npt.NDArray[np.bool_]:
    """True where the value is not null."""
    valid: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def bounds(groups: Groups) -> tuple[I64, I64]:
    """The row order that brings groups together, and where each starts in it ([size + 1])."""
    order = np.argsort(groups.ids, kind="stable")
    counts = np.bincount(groups.ids, minlength=groups.size)
    return order, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
