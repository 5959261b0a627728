"""Sums that do not fit: null, wrapped or an error as Spark's own, whatever else is folded."""

from __future__ import annotations

import decimal

import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.spark import group
from tests.spark.own_folds import Rows

WIDE = decimal.Decimal(9).scaleb(37)
ROWS = [("a", 2**63 - 1, WIDE), ("a", 1, WIDE), ("b", 5, decimal.Decimal(1)), ("b", 6, None)]


@pytest.fixture(params=["true", "false"])
def ansi(spark, request):
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param == "true"
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("how", ["sum", "mean"])
@pytest.mark.parametrize("column", ["n", "d"])
def test_another_fold_changes_no_overflow(spark, ansi, column, how, own):
    df = spark.createDataFrame(ROWS, "k string, n long, d decimal(38, 0)")
    plain = {"sum": F.sum, "mean": F.avg}[how]
    expected = df.groupBy("k").agg(plain(column).alias("x"))
    chosen = [getattr(folds, how)(column).alias("x"), *([Rows("k")] if own else [])]
    ours = group(df, "k", "shuffle", 2).fold(*chosen).select("k", "x")
    assert ours.dtypes == expected.dtypes
    overflows = ansi and not (how == "mean" and column == "n")
    if overflows:
        for frame in (expected, ours):
            with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
                frame.collect()
    else:
        assert sorted(ours.collect()) == sorted(expected.collect())
