"""The columns that folds take: names, or expressions that Spark computes in front of the folds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from skewless.errors import SkewlessError
from skewless.folds import Fold
from skewless.folds.expression import Expression
from skewless.spark.input.checks import field_of, row_columns
from skewless.spark.input.version import keeps_backticks

_WHAT = "column of a fold"
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")


@dataclass(frozen=True)
class Value:
    """One column, as it travels to the workers.

    name: as the result's name has it
    text: all of the expression, also what an alias hides; kept with the state of a stream
    """

    column: Column
    name: str
    text: str
    kind: DataType


def values_of(df: DataFrame, folds: Sequence[Fold]) -> tuple[list[Value], list[list[int]]]:
    """What must travel, each once, and the places of each fold's columns among it."""
    places: dict[str | int, int] = {}
    values: list[Value] = []
    taken: list[list[int]] = []
    for fold in folds:
        taken.append([])
        for column in fold.columns:
            # Two expressions may show one text, such as two functions without a name.
            known = id(column.column) if isinstance(column, Expression) else column
            if known not in places:
                places[known] = len(values)
                values.append(_value(df, column))
            taken[-1].append(places[known])
    return values, taken


def _value(df: DataFrame, column: str) -> Value:
    if not isinstance(column, Expression):
        if column == "*":
            raise SkewlessError(
                "A fold takes one column, not '*': name it, or count rows with folds.count()."
            )
        kind = field_of(df, column, _WHAT).dataType
        return Value(F.col(column), _shown(df, column), column, kind)
    (found,), (field,) = row_columns(df, column.column, _WHAT)
    return Value(found, field.name, text_of(df, found), field.dataType)


def _shown(df: DataFrame, name: str) -> str:
    """A column's name as Spark shows it in the names of aggregates."""

    def shown(found: re.Match[str]) -> str:
        part = found[1].replace("``", "`")
        return f"`{part}`" if keeps_backticks(df, part) else part

    return _QUOTED.sub(shown, name)


def text_of(df: DataFrame, column: Column) -> str:
    """All of an expression in words, also what an alias hides."""
    # Inside of another expression Spark shows an alias together with what it is of.
    shown = df.select(F.isnull(column)).columns[0]
    return shown.removeprefix("(").removesuffix(" IS NULL)")
