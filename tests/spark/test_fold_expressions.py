"""Folds of expressions: as Spark's own aggregates of the same expressions, down to their names."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.spark import group
from tests.sketches import needs_sketches
from tests.spark.own_folds import Rows
from tests.spark.streams import Files, run_again, run_to_end

DDL = "k string, x long, w string"
ROWS = [("a", 1, "Up"), ("a", None, "up"), ("b", 3, "Down"), ("a", 4, "UP"), ("b", -5, None)]


@pytest.fixture(scope="module")
def df(spark):
    return spark.createDataFrame(ROWS, DDL)


def pairs():
    """Ours and Spark's, of the same expressions."""
    twice, lower, some = F.col("x") * 2, F.lower("w"), F.when(F.col("x") > 0, F.col("x"))
    return [
        (folds.sum(twice), F.sum(twice)),
        (folds.count(some), F.count(some)),
        (folds.min(lower), F.min(lower)),
        (folds.max(F.col("x") % 3), F.max(F.col("x") % 3)),
        (folds.mean(some).alias("avg"), F.avg(some).alias("avg")),
        (folds.approx_count_distinct(lower), F.approx_count_distinct(lower)),
        (folds.sleeping(folds.sum(F.abs("x")), 0.0), F.sum(F.abs("x"))),
    ]


@needs_sketches
@pytest.mark.connect
@pytest.mark.parametrize("python", [False, True], ids=["merged by Spark", "merged by Python"])
def test_results_and_their_names_are_those_of_spark(df, python):
    own = [Rows("w")] if python else []
    ours = group(df, "k", "shuffle", 2).fold(*(fold for fold, _ in pairs()), *own)
    plain = df.groupBy("k").agg(*(aggregate for _, aggregate in pairs()))
    ours = ours.select(*(F.col(f"`{name}`") for name in plain.columns))
    assert ours.schema.simpleString() == plain.schema.simpleString()
    assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, plain.collect()))


@pytest.mark.connect
def test_top_k_of_an_expression(df):
    found = group(df, F.upper("k").alias("k"), "shuffle", 2).agg(folds.top_k(F.lower("w"), 1))
    assert found.columns == ["k", "top_1(lower(w))"]
    assert {row[0]: [item[:2] for item in row[1]] for row in found.collect()} == {
        "A": [("up", 3)],
        "B": [("down", 1)],
    }


@pytest.mark.connect
def test_expressions_that_show_one_text_are_told_apart(df):
    named = df.withColumn("up", F.lit("!"))
    column, literal = F.concat("w", "up"), F.concat("w", F.lit("up"))
    both = [folds.max(column).alias("column"), folds.max(literal).alias("literal")]
    found = group(named, "k", "key", 2).fold(*both)
    assert sorted(map(tuple, found.collect())) == [("a", "up!", "upup"), ("b", "Down!", "Downup")]
    with pytest.raises(SkewlessError, match=r"would be called 'max\(concat\(w, up\)\)'"):
        group(named, "k", "key", 2).fold(folds.max(column), folds.max(literal))


def test_an_expression_is_computed_once_for_all_folds_of_it(df):
    twice = F.col("x") * 2
    bound = group(df, "k", "key", 2).bind(folds.sum(twice), folds.mean(twice), folds.sum("x"))
    assert [value.name for value in bound.values] == ["(x * 2)", "x"]
    said = group(df, "k", "key", 2).describe(folds.sum(twice))
    assert "with k, (x * 2) only" in said
    assert "(sum((x * 2)))" in said


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: folds.sum(F.sum("x")), "is not computed from one row alone"),
        (lambda: folds.sum(F.explode(F.array("x"))), "is not computed from one row alone"),
        (lambda: folds.sum(F.col("nope") + 1), "The column of a fold .* cannot be computed"),
        (lambda: folds.sum("nope"), "There is no column 'nope'"),
        (lambda: folds.count("*"), r"count rows with folds.count\(\)"),
        (lambda: folds.sum(F.lower("w")), r"sum cannot fold column 'lower\(w\)' of type string"),
        (lambda: folds.max(F.collate("w", "UTF8_LCASE")), "has the collation UTF8_LCASE"),
    ],
)
def test_a_mistake_is_one_sentence_before_any_job(df, make, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        group(df, "k", "key", 2).fold(make())


def test_a_name_in_backticks_is_shown_as_spark_shows_it(df):
    named = df.selectExpr("k", "x as `a.b`", "x as `a``b`", "struct(x as `c d`) as s")
    names = ["`a.b`", "`a``b`", "s.`c d`", "`s`.`c d`"]
    for name in names:
        ours = group(named, "k", "key", 2).fold(folds.sum(name), folds.count(name))
        assert ours.columns == named.groupBy("k").agg(F.sum(name), F.count(name)).columns


def test_a_sample_names_its_column_as_spark_names_the_expression(df):
    fold = folds.sum(F.col("x") * 2)
    group(df, "k", "key", 2).fold(fold, sample={"(x * 2)": pa.array([1, 2, 3])})
    with pytest.raises(SkewlessError, match=r"no column of the sample called '\(x \* 2\)'"):
        group(df, "k", "key", 2).fold(fold, sample={"x": [1, 2, 3]})
    with pytest.raises(SkewlessError, match="which only Spark computes"):
        folds.check_fold(fold, {"x": [1, 2, 3]})


SAYS = r"with the folds Sum\(\(x \* 2\) AS d bigint\)"


def summing(files, factor, *own, **way):
    rows = files.stream().withColumn("d", F.col("x"))
    expression = (F.col("x") * factor).alias("d") if factor else F.col("d")
    return group(rows, "k", "shuffle", 2, **way).fold(folds.sum(expression).alias("sum"), *own)


def test_another_expression_is_refused_before_the_stream_goes_on(spark, tmp_path):
    files, checkpoint = Files(spark, tmp_path / "in", DDL), tmp_path / "checkpoint"
    summing(files, 2, checkpoint=str(checkpoint))
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").touch()  # as Spark does when the first batch begins
    summing(files, 2, checkpoint=str(checkpoint))
    for factor in (3, None):  # None: a column that is called as the expression was
        with pytest.raises(SkewlessError, match=SAYS):
            summing(files, factor, checkpoint=str(checkpoint))


def test_state_of_another_expression_is_refused(spark, tmp_path):
    files, checkpoint = Files(spark, tmp_path / "in", DDL), tmp_path / "checkpoint"
    for number, total in enumerate((2, 22)):
        files.put([("a", 10**number, "w")])
        rows = run_again(summing(files, 2, Rows("w")), checkpoint)
        assert [row["sum"] for row in rows] == [total]
    files.put([("a", 100, "w")])
    with pytest.raises(Exception, match=SAYS):
        run_again(summing(files, 3, Rows("w")), checkpoint)


def test_a_stream_folds_expressions(spark, tmp_path):
    files = Files(spark, tmp_path / "in", DDL)
    files.put(ROWS[:2])
    files.put(ROWS[2:])
    ours = group(files.stream(), "k", "key", 2).fold(*(fold for fold, _ in pairs()))
    _, rows = run_to_end(ours, tmp_path / "checkpoint", "complete")
    plain = files.batch().groupBy("k").agg(*(aggregate for _, aggregate in pairs()))
    assert ours.columns == plain.columns
    assert sorted(map(tuple, rows)) == sorted(map(tuple, plain.collect()))
