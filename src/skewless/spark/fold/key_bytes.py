"""A key as bytes by which Spark can group, whatever its type: equal bytes, equal keys.

Each value is written with its length in front, so that no two run into each other. Text goes as the
bytes it is, since not all text that Spark holds is valid UTF-8; inside of structs and arrays, which
Spark can join only as text, it goes in hexadecimal digits.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    StringType,
    StructType,
    TimestampType,
)


def key_bytes(column: Column, kind: DataType) -> Column:
    """The value, as bytes, with its length in front."""
    whole = column if isinstance(kind, StringType | BinaryType) else _text(column, kind)
    data = whole.cast("binary")
    length = F.concat(F.octet_length(data).cast("string"), F.lit(":")).cast("binary")
    return F.coalesce(F.concat(length, data), F.lit(b"null"))


def _text(column: Column, kind: DataType) -> Column:
    """The value as text; null stays null."""
    if isinstance(kind, TimestampType):
        return F.unix_micros(column).cast("string")  # local time repeats an hour every autumn
    if isinstance(kind, StringType | BinaryType):
        return F.hex(column.cast("binary"))
    if isinstance(kind, ArrayType):
        return F.array_join(F.transform(column, lambda x: _part(x, kind.elementType)), "")
    if isinstance(kind, StructType):
        parts = [_part(column.getField(field.name), field.dataType) for field in kind.fields]
        return F.when(column.isNotNull(), F.concat(F.lit(""), *parts))
    return column.cast("string")


def _part(column: Column, kind: DataType) -> Column:
    """The text of a part, with its length in front."""
    text = _text(column, kind)
    return F.coalesce(F.concat(F.length(text).cast("string"), F.lit(":"), text), F.lit("null"))
