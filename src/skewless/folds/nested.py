"""Structs and lists as keys: columns without inner structure that tell the same rows apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Encode = Callable[[pa.Array], tuple[Any, pa.Array]]


def is_nested(kind: pa.DataType) -> bool:
    """Is it a struct or a list?"""
    return bool(pa.types.is_struct(kind) or pa.types.is_list(kind))


def canonical(array: pa.Array) -> pa.Array:
    """The values with one zero and one NaN wherever there are floats, as Spark groups them."""
    kind = array.type
    if pa.types.is_floating(kind):
        zero, nan = pa.scalar(0, kind), pa.scalar(float("nan"), kind)
        return pc.if_else(pc.is_nan(array), nan, pc.add(array, zero))
    if not _holds_floats(kind):
        return array
    if pa.types.is_struct(kind):
        parts = [canonical(part) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    elements = canonical(array.flatten())
    offsets = pa.array(_offsets(array).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=array.is_null())


def nested_columns(array: pa.Array, encode: Encode) -> list[pa.Array]:
    """Columns, not all of them flat yet, that are equal exactly where structs or lists are equal.

    A struct is whether it is null, and its fields. A list is whether it is null, and the codes of
    its elements, one behind the other as bytes.
    """
    if pa.types.is_struct(array.type):
        return [array.is_valid(), *array.flatten()]
    codes, _ = encode(array.flatten())
    ends = _offsets(array) * codes.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(codes)]
    return [array.is_valid(), pa.Array.from_buffers(pa.large_binary(), len(array), buffers)]


def _offsets(lists: pa.Array) -> Any:
    """Where each list begins in `flatten()`, and where the last ends; null lists have no length."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _holds_floats(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_floats(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _holds_floats(kind.value_type)
    return bool(pa.types.is_floating(kind))
