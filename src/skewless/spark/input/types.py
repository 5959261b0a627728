"""Spark's types and Arrow's: what Spark hands to Python, and what it takes back."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import DataType

from skewless.errors import SkewlessError
from skewless.spark.input.version import arrow_type_of, spark_type_of


def arrow_type(name: str, kind: DataType) -> pa.DataType:
    """The Arrow type in which Spark hands a column to Python."""
    try:
        return arrow_type_of(kind)
    except (PySparkException, NotImplementedError):
        raise SkewlessError(
            f"Column '{name}' of type {kind.simpleString()} cannot be handed to Python: "
            "cast it to a simpler type first."
        ) from None


def taken_type(name: str, kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark takes results of this type; what it cannot take is refused."""
    try:
        taken = arrow_type_of(spark_type_of(kind))
    except (PySparkException, TypeError, NotImplementedError):
        taken = None
    if taken is None or _holds_times(taken):
        raise SkewlessError(
            f"Fold '{name}' gives results of type {kind}, for which Spark has no type: let it give "
            "numbers, text, bytes, dates or timestamps, or lists and structs of these."
        )
    return taken


def _holds_times(kind: pa.DataType) -> bool:
    """Is it a time of day, or does it hold one? Spark's type for it is not for every session."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return bool(pa.types.is_time(kind)) or any(map(_holds_times, inner))
