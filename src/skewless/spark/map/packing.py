"""The user's columns as one: what Spark does once for each column, it then does once.

Every step of a plan resolves all of its columns, and the optimiser compares columns with columns: a
few steps more take seconds for 2,000 columns, and a minute for 300 names of one. So rows are packed
before the first of our steps, and unpacked in Python, where a struct of Arrow is its columns.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.spark.input.checks import Key, column_named, hashable, key_columns
from skewless.spark.input.wire import identity_by_bytes, to_wire

ROW, IDENTITY, KEY, DRAWN = "row", "identity", "key", "drawn"
_WAVE = "skewless: first wave"


def packed(df: DataFrame, key: Key) -> DataFrame:
    """The rows as a struct, the identity of their key, the key, and a number drawn for each row.

    The struct has the columns in their order; those of one name get others, which Arrow needs.
    """
    keys, fields = key_columns(df, key)
    shown = [to_wire(column, f.dataType) for column, f in zip(keys, fields, strict=True)]
    whole_key = F.struct(*(column.alias(f"k{i}") for i, column in enumerate(shown)))
    identity = identity_by_bytes(keys, fields)
    drawn = _drawn(df, identity)
    ours = {IDENTITY: identity, KEY: whole_key, DRAWN: drawn}
    named = [column.alias(name) for name, column in ours.items()]
    count = len(df.columns)
    if len({name.lower() for name in df.columns}) == count:
        return df.select(F.struct("*").alias(ROW), *named)
    places = [f"c{i}" for i in range(count)]
    apart = df.select("*", *named).toDF(*places, *ours)
    return apart.select(F.struct(*places).alias(ROW), *ours)


def _drawn(df: DataFrame, identity: Column) -> Column:
    """A hash of the whole row, or of what has a hash and a name of its own, and of the key."""
    fields = df.schema.fields
    if all(hashable(field.dataType) for field in fields):
        return F.xxhash64(F.lit(_WAVE), F.col("*"))
    named = Counter(name.lower() for name in df.columns)
    once = [f for f in fields if named[f.name.lower()] == 1 and hashable(f.dataType)]
    return F.xxhash64(F.lit(_WAVE), *(column_named(f.name) for f in once), identity)
