"""Columns that several applications take, checked before any job starts."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DataType, IntegralType, StringType, StructField

from skewless.errors import SkewlessError
from skewless.spark.input.checks import check_server, field_of, quoted, unquoted
from skewless.spark.input.types import arrow_type

NAMES = StringType | IntegralType | BooleanType


def check_batch(df: DataFrame) -> None:
    """Refuse a stream where `fit` reads to the end, and what is no DataFrame."""
    check_server(df)
    if df.isStreaming:
        raise SkewlessError(
            "fit reads a batch to its end, and a stream has none: use learner(...) with "
            "writeStream.foreachBatch."
        )


def exact_field(df: DataFrame, name: str, what: str) -> StructField:
    """The column of exactly this name, dots and all: a model reads columns, not their fields.

    To predict, it knows their names alone, which do not tell a field from a column.
    """
    try:
        return field_of(df, quoted(name), what)
    except SkewlessError as error:
        if not _is_read_from_a_column(df, name, what):
            raise error from None
    raise SkewlessError(
        f"The {what} '{name}' is not a column but a part of one, and a model reads whole columns: "
        "make it a column first, with withColumn."
    )


def _is_read_from_a_column(df: DataFrame, name: str, what: str) -> bool:
    try:
        return bool(field_of(df, name, what))
    except SkewlessError:
        return False


def check_label(df: DataFrame, label: str) -> DataType:
    """The type of the classes, or one sentence why they are none."""
    kind = exact_field(df, label, "label").dataType
    if not isinstance(kind, NAMES):
        raise SkewlessError(
            f"The label '{label}' of type {kind.simpleString()} does not name classes: it takes "
            "text, whole numbers or booleans; cast it to a string first."
        )
    return kind


def label_type(df: DataFrame, label: str) -> pa.DataType:
    """The Arrow type of the classes."""
    field = exact_field(df, label, "label")
    return arrow_type(field.name, field.dataType)


def label_name(label: object) -> str:
    """The name of the column of classes, without the backticks that it may stand in."""
    if not isinstance(label, str):
        raise SkewlessError(f"label is the name of a column, not {label!r}.")
    return unquoted(label)


def feature_names(label: str, features: object) -> tuple[str, ...]:
    """The names of the features, one or more, each once, and none of them the label's."""
    given = [features] if isinstance(features, str) else features
    listed = list(given) if isinstance(given, Iterable) else []
    if not listed or not all(isinstance(name, str) for name in listed):
        raise SkewlessError("features is a list of one or more names of columns.")
    named = [unquoted(name) for name in listed]
    if len(set(named)) < len(named) or label in named:
        raise SkewlessError(
            "Each feature is named once, and the label is not one of them: "
            f"{', '.join(named)}; label {label}."
        )
    return tuple(named)
