"""What a row costs, as the user says it: a column of numbers, checked before any job starts."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from skewless.errors import SkewlessError
from skewless.spark.input.checks import row_columns


def cost_numbers(df: DataFrame, cost: str | Column) -> Column:
    """The costs as doubles, whatever numbers they are."""
    if not isinstance(cost, str | Column):
        raise SkewlessError(
            f"The cost is a column's name or a Column, not {cost!r}: give what each row costs."
        )
    (given,), (field,) = row_columns(df, cost, "cost")
    kind = field.dataType
    if not isinstance(kind, NumericType):
        raise SkewlessError(
            f"The cost is of type {kind.simpleString()}: give a column of numbers, such as the "
            "length of a text."
        )
    return given.cast("double")


def is_usable(number: Column) -> Column:
    """Whether a cost is finite and not negative; null of a null."""
    return (number >= 0) & (number < F.lit(float("inf")))  # a NaN is above every number
