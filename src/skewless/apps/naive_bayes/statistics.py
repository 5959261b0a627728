"""Rows to the sums that make a model, one per (feature, value, class), on Spark.

A row becomes one message per feature, and one without a feature that counts its class. Messages are
routed by (feature, value, class); hot ones are split, and merged after.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    NumericType,
    StringType,
)

from skewless import folds
from skewless.apps.columns import NAMES, check_label, exact_field
from skewless.apps.naive_bayes.moments import PARTS, Moments
from skewless.errors import SkewlessError
from skewless.schemes import Scheme
from skewless.spark.fold.group import group
from skewless.spark.input.checks import check_server, column_named
from skewless.spark.input.version import as_arrow

CATEGORICAL, MULTINOMIAL, WORDS, GAUSSIAN = "categorical", "multinomial", "words", "gaussian"
KEY = ("feature", "value", "label")
AMOUNT = "amount"


def statistics(
    df: DataFrame,
    label: str,
    features: list[str],
    kind: str,
    scheme: Scheme | str,
    workers: int | None,
    seed: int,
) -> pa.Table:
    """feature, value, label, n, mean, m2; the feature is null where n counts a class."""
    check_server(df)
    check_label(df, label)
    grouped = group(_messages(df, label, features, kind), list(KEY), scheme, workers, seed=seed)
    if kind == GAUSSIAN:
        found = grouped.fold(Moments(AMOUNT).alias("moments"))
        return as_arrow(found.select(*KEY, *(F.col(f"moments.{p}").alias(p) for p in PARTS)))
    if kind != MULTINOMIAL:
        return as_arrow(_with_zeros(grouped.fold(folds.count().alias("n"))))
    summed = grouped.fold(folds.sum(AMOUNT).alias("n"), folds.min(AMOUNT).alias("least"))
    table = as_arrow(_with_zeros(summed))
    below = table.filter(pc.less(table["least"], 0))
    if below.num_rows:
        raise SkewlessError(
            f"Feature '{below['feature'][0]}' has counts below 0: multinomial naive Bayes takes "
            "counts of 0 or more; use kind='gaussian'."
        )
    return table.drop_columns("least")


def _with_zeros(counts: DataFrame) -> DataFrame:
    """Counts as moments, of which only n says something."""
    n = F.col("n").cast("double").alias("n")
    parts = [n, F.lit(0.0).alias("mean"), F.lit(0.0).alias("m2")]
    return counts.select(*KEY, *parts, *(c for c in counts.columns if c == "least"))


def prepared(features: list[str], kind: str) -> Column:
    """The features of a row as one array, in the form in which a model reads them."""
    if kind == WORDS:
        return column_named(features[0])
    as_type = "string" if kind == CATEGORICAL else "double"
    return F.array(*(column_named(name).cast(as_type) for name in features))


def _messages(df: DataFrame, label: str, features: list[str], kind: str) -> DataFrame:
    kinds = [exact_field(df, name, "feature").dataType for name in features]
    if kind == WORDS:
        _check_words(features, kinds)
        every = F.transform(
            F.coalesce(column_named(features[0]), F.array().cast("array<string>")),
            lambda word: _message(word, F.lit(None), F.lit(1.0)),
        )
        every = F.filter(every, lambda message: message["feature"].isNotNull())
    else:
        for name, found in zip(features, kinds, strict=True):
            _check_feature(name, found, kind)
        every = F.array(*(_feature(name, kind) for name in features))
        usable = "value" if kind == CATEGORICAL else AMOUNT
        every = F.filter(every, lambda message: message[usable].isNotNull())
    of_class = F.array(_message(F.lit(None), F.lit(None), F.lit(1.0)))
    rows = df.where(column_named(label).isNotNull()).select(
        column_named(label).alias("label"), F.explode(F.concat(of_class, every)).alias("message")
    )
    return rows.select("message.feature", "message.value", "label", f"message.{AMOUNT}")


def _feature(name: str, kind: str) -> Column:
    column = column_named(name)
    if kind == CATEGORICAL:
        return _message(F.lit(name), column, F.lit(1.0))
    number = column.cast("double")
    finite = F.abs(number) < float("inf")  # a NaN is above every number
    return _message(F.lit(name), F.lit(None), F.when(finite, number))


def _message(feature: Column, value: Column, amount: Column) -> Column:
    return F.struct(
        feature.cast("string").alias("feature"),
        value.cast("string").alias("value"),
        amount.cast("double").alias(AMOUNT),
    )


def _check_words(features: list[str], kinds: list[DataType]) -> None:
    first = kinds[0]
    text = isinstance(first, ArrayType) and isinstance(first.elementType, StringType)
    if len(features) != 1 or not text:
        given = ", ".join(f"{n} {k.simpleString()}" for n, k in zip(features, kinds, strict=True))
        raise SkewlessError(
            f"Naive Bayes of words takes one column of arrays of text, not {given}: make one, for "
            "example with F.split."
        )


def _check_feature(name: str, found: DataType, kind: str) -> None:
    if kind == CATEGORICAL:
        right, takes = (
            isinstance(found, NAMES | DateType),
            "text, whole numbers, booleans or dates",
        )
    else:
        right, takes = isinstance(found, NumericType), "numbers"
    if not right:
        raise SkewlessError(
            f"Feature '{name}' of type {found.simpleString()} does not suit {kind} naive Bayes, "
            f"which takes {takes}: cast it first, or choose another kind."
        )
