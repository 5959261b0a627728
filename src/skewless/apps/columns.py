"""Columns that several applications take, checked before any job starts."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DataType, IntegralType, StringType

from skewless.errors import SkewlessError
from skewless.spark.input.checks import field_of
from skewless.spark.input.types import arrow_type

NAMES = StringType | IntegralType | BooleanType


def check_batch(df: DataFrame) -> None:
    """Refuse a stream where `fit` reads to the end."""
    if df.isStreaming:
        raise SkewlessError(
            "fit reads a batch to its end, and a stream has none: use learner(...) with "
            "writeStream.foreachBatch."
        )


def check_label(df: DataFrame, label: str) -> DataType:
    """The type of the classes, or one sentence why they are none."""
    kind = field_of(df, label, "label").dataType
    if not isinstance(kind, NAMES):
        raise SkewlessError(
            f"The label '{label}' of type {kind.simpleString()} does not name classes: it takes "
            "text, whole numbers or booleans; cast it to a string first."
        )
    return kind


def label_type(df: DataFrame, label: str) -> pa.DataType:
    """The Arrow type of the classes."""
    field = field_of(df, label, "label")
    return arrow_type(field.name, field.dataType)


def feature_names(label: str, features: object) -> tuple[str, ...]:
    """The names of the features, one or more, each once, and none of them the label's."""
    named = [features] if isinstance(features, str) else list(features)  # type: ignore[call-overload]
    if not named or not all(isinstance(name, str) for name in named):
        raise SkewlessError("features is a list of one or more names of columns.")
    if len(set(named)) < len(named) or label in named:
        raise SkewlessError(
            "Each feature is named once, and the label is not one of them: "
            f"{', '.join(named)}; label {label}."
        )
    return tuple(named)
