"""What tells rows of one key apart, so that each takes a stripe of its key's grid.

The stripe must be a function of the row alone: a task that is run again must send every row where
it went before, since some of its copies may have been read already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.errors import SkewlessError, unknown
from skewless.hashing import SALT
from skewless.spark.input.checks import column_named, hashable, name_rule
from skewless.spark.input.version import unlogged
from skewless.spark.join.keys import JoinKeys, Side, refused_condition

SaltColumns = str | Column | Sequence[str | Column]


def salts(
    left: DataFrame, right: DataFrame, keys: JoinKeys, salt: SaltColumns | None
) -> tuple[Column | None, Column | None]:
    """The hash that picks a row's stripe, for either side; None where all rows of a key are alike.

    salt: each side takes those of these columns that it has; a side that has none of them, or all
        if none are named, takes every column besides the key that can be hashed
    """
    sides = ((left, keys.left), (right, keys.right))
    named: list[list[Column]] = [[], []]
    given: list[Any] = (
        list(salt) if isinstance(salt, list | tuple) else [] if salt is None else [salt]
    )
    for part in given:
        found = [_computed(df, side, part) for df, side in sides]
        if all(column is None for column in found):
            if isinstance(part, str):
                raise unknown("column to be a salt", part, {*left.columns, *right.columns})
            raise SkewlessError(f"Neither side has the columns of the salt {part}.")
        for columns, column in zip(named, found, strict=True):
            columns.extend([] if column is None else [column])
    hashed = []
    for (df, side), columns in zip(sides, named, strict=True):
        used = columns or _others(df, side)
        hashed.append(F.xxhash64(F.lit(SALT), *used) if used else None)
    return hashed[0], hashed[1]


def _computed(df: DataFrame, side: Side, part: str | Column) -> Column | None:
    """The column on this side, if it has it; a salt that cannot be one is refused."""
    if not isinstance(part, str | Column):
        raise SkewlessError(f"A salt is a column's name, a Column or a list of them, not {part!r}.")
    column = column_named(part) if isinstance(part, str) else part
    try:
        with unlogged():
            field = df.select(column).schema.fields[0]
    except AnalysisException:
        return None
    same = name_rule(df)
    if isinstance(part, str) and same(part) in (same(name) for name in side.names if name):
        raise SkewlessError(
            f"The salt '{part}' is the key, which is the same in all rows that a salt shall tell "
            "apart: name other columns."
        )
    if not hashable(field.dataType):
        raise SkewlessError(
            f"Column '{field.name}' of type {field.dataType.simpleString()} cannot be a salt: "
            "Spark hashes no such value; take fields out of it first."
        )
    if isinstance(part, Column) and refused_condition(df, column):
        raise SkewlessError(
            f"The salt {part} is not the same when a task is run again: give an expression of the "
            "row's own columns."
        )
    return column


def _others(df: DataFrame, side: Side) -> list[Column]:
    same = name_rule(df)
    keys = {same(name) for name in side.names if name}
    names = [f.name for f in df.schema.fields if hashable(f.dataType)]
    once = {name for name in names if sum(same(n) == same(name) for n in df.columns) == 1}
    return [column_named(n) for n in names if n in once and same(n) not in keys]
