"""What a user hands to Spark, checked in one place before any job starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StringType, StructField, VariantType

from skewless.errors import SkewlessError, unknown
from skewless.schemes import Scheme, scheme_of
from skewless.schemes.api import Arrays, check_workers
from skewless.spark.version import check_version

Key = str | Column | Sequence[str | Column]


def check_server(df: DataFrame) -> None:
    """Refuse a DataFrame of an old Spark: a new client may talk to an old server."""
    if not hasattr(df, "sparkSession"):
        raise SkewlessError(
            f"Routing takes a Spark DataFrame, not a {type(df).__name__}: "
            "make one with spark.createDataFrame or spark.read."
        )
    check_version(df.sparkSession.version, "The Spark server")


def field_of(df: DataFrame, column: str | Column) -> StructField:
    """The name and type of a column or expression, by analysis alone; an unknown one is refused."""
    try:
        return df.select(column).schema.fields[0]
    except AnalysisException as error:
        if isinstance(column, str):
            raise unknown("column", column, df.columns) from None
        reason = str(error).splitlines()[0]
        raise SkewlessError(
            f"The key {column} cannot be computed from the columns {', '.join(df.columns)}: "
            f"{reason}"
        ) from None


def key_columns(df: DataFrame, key: Key) -> tuple[list[Column], list[StructField]]:
    """The key's columns with their names and types."""
    parts: list[Any] = list(key) if isinstance(key, list | tuple) else [key]
    if not parts:
        raise SkewlessError("A key needs at least one column: give a name, a Column or a list.")
    for part in parts:
        if not isinstance(part, str | Column):
            raise SkewlessError(
                f"A key is a column's name, a Column or a list of them, not {part!r}."
            )
    fields = [field_of(df, part) for part in parts]
    for field in fields:
        _check_key_type(field.name, field.dataType)
    return [F.col(p) if isinstance(p, str) else p for p in parts], fields


def _check_key_type(name: str, kind: DataType) -> None:
    if isinstance(kind, MapType | VariantType):
        raise SkewlessError(
            f"Column '{name}' of type {kind.simpleString()} cannot be a key: Spark groups by no "
            "such value; take fields out of it first."
        )


def check_group_key(name: str, kind: DataType) -> None:
    """Refuse a key that a worker could not tell apart as Spark does."""
    if hasattr(kind, "fields") or hasattr(kind, "elementType"):
        raise SkewlessError(
            f"Column '{name}' of type {kind.simpleString()} cannot be grouped by as a whole: "
            "give its fields as a list of key columns."
        )
    if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
        raise SkewlessError(
            f"Column '{name}' has the collation {kind.collation}, by which different texts may be "
            "equal: cast it to a string of UTF8_BINARY, for example by lower(...), first."
        )


def check_scheme(scheme: Scheme | str) -> Scheme:
    """The scheme, if sources that do not talk to each other can follow it."""
    made = scheme_of(scheme)
    if made.learns == "stream":
        raise SkewlessError(
            f"Scheme '{made.spec}' must see every key before it routes the first: it is for "
            "simulation only; on Spark use for example 'partial' or 'key'."
        )
    if made.coordinated:
        raise SkewlessError(
            f"Scheme '{made.spec}' remembers the worker of every key across sources, which Spark's "
            "tasks cannot share: use for example 'partial' or 'key'."
        )
    return made


def make_plan(
    scheme: Scheme, workers: int, seed: int, plan: Arrays | None, learning: bool = False
) -> Arrays:
    """The given plan, or the scheme's first one if it need not learn or is about to."""
    if not isinstance(workers, int) or isinstance(workers, bool):
        raise SkewlessError(f"The number of workers is a whole number, not {workers!r}.")
    check_workers(workers)
    if plan is not None:
        return plan
    if scheme.learns == "prefix" and not learning:
        raise SkewlessError(
            f"Scheme '{scheme.spec}' learns its plan from the first messages: "
            "hand a learned plan to plan=, or group a stream with checkpoint=."
        )
    return scheme.plan(workers, seed)
