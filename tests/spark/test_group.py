"""Grouping on Spark: exactly what a plain groupBy gives, for every scheme."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import statistics

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.spark import Observer, group
from tests.sketches import needs_sketches
from tests.spark.joins import settings
from tests.spark.own_folds import Lawless, Longest

SCHEMES = ["key", "partial", "partial:choices=3", "shuffle"]
DDL = "w string, x double, n int, l long, s string, d decimal(10, 4), t timestamp, day date"


def messages(count=600):
    random = np.random.default_rng(11)
    doubles = [1.5, -2.25, 0.0, -0.0, math.nan, math.inf, None]
    rows = []
    for i in range(count):
        rank = int(random.zipf(1.5)) % 40
        word = {3: None, 4: "", 5: "naïve-€"}.get(rank, f"w{rank}")
        day = datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=i)
        rows.append(
            (
                word,
                doubles[int(random.integers(0, 7))],
                None if rank == 6 else int(random.integers(-5, 5)),
                int(random.integers(-(2**40), 2**40)),
                None if i % 9 == 0 else "ab" * int(random.integers(0, 4)),
                None if i % 7 == 0 else decimal.Decimal(int(random.integers(0, 999))) / 100,
                day,
                day.date(),
            )
        )
    return rows


@pytest.fixture(scope="module")
def df(spark):
    return spark.createDataFrame(messages(), DDL).repartition(3).cache()


def canonical(value):
    """NaN equal to itself; lists and rows comparable."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def as_set(frame):
    rows = [tuple(map(canonical, row)) for row in frame.collect()]
    assert len(set(rows)) == len(rows), "a key came out twice"
    return set(rows)


BUILT_IN = [
    folds.count(),
    folds.count("n"),
    folds.sum("n"),
    folds.sum("l"),
    folds.mean("n"),
    folds.sum("d"),
    folds.mean("d"),
    folds.min("x"),
    folds.max("x"),
    folds.min("s"),
    folds.max("t"),
    folds.min("day"),
]


def plain(df, *keys):
    return df.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("count"),
        F.count("n").alias("count(n)"),
        F.sum("n").alias("sum(n)"),
        F.sum("l").alias("sum(l)"),
        F.avg("n").alias("mean(n)"),
        F.sum("d").alias("sum(d)"),
        F.avg("d").alias("mean(d)"),
        F.min("x").alias("min(x)"),
        F.max("x").alias("max(x)"),
        F.min("s").alias("min(s)"),
        F.max("t").alias("max(t)"),
        F.min("day").alias("min(day)"),
    )


def types(frame):
    return [(f.name, f.dataType) for f in frame.schema]


@pytest.mark.connect
@pytest.mark.parametrize(
    ("scheme", "workers"), [*((scheme, 3) for scheme in SCHEMES), ("partial", 60)]
)
def test_the_built_in_folds_equal_a_plain_group_by(df, scheme, workers):
    ours = group(df, "w", scheme, workers, seed=4).fold(*BUILT_IN)
    assert types(ours) == types(plain(df, "w"))
    assert as_set(ours) == as_set(plain(df, "w"))


def test_one_worker_gives_the_same(df):
    assert as_set(group(df, "w", "partial", 1).fold(*BUILT_IN)) == as_set(plain(df, "w"))


@pytest.mark.connect
def test_a_fold_of_ones_own_turns_the_merge_to_python_and_stays_exact(df):
    ours = group(df, "w", "partial", 5).fold(*BUILT_IN, Longest())
    expected = plain(df, "w").join(
        df.groupBy(F.col("w").alias("v")).agg(F.max(F.length("s")).cast("long").alias("longest")),
        F.col("w").eqNullSafe(F.col("v")),
    )
    assert types(ours)[:-1] == types(plain(df, "w"))
    assert as_set(ours) == as_set(expected.drop("v"))


@pytest.mark.parametrize("scheme", ["key", "shuffle"])
@pytest.mark.parametrize(
    "keys",
    [["x"], ["w", "x", "n"], ["d", "day"], ["t"], ["b"], ["f", "w"]],
    ids=lambda keys: "+".join(keys),
)
def test_keys_of_every_kind_make_the_groups_that_spark_makes(df, scheme, keys):
    wide = df.withColumn("b", F.col("s").cast("binary")).withColumn("f", F.col("x").cast("float"))
    native = group(wide, keys, scheme, 4).fold(folds.count())
    in_python = group(wide, keys, scheme, 4).fold(folds.count(), Longest())
    expected = as_set(wide.groupBy(*keys).count())
    assert as_set(native) == expected
    assert as_set(in_python.drop("longest")) == expected


@pytest.mark.connect
def test_a_key_expression_is_named_as_spark_names_it(df):
    key = (F.col("n") % 3).alias("rest")
    assert as_set(group(df, key, "partial", 4).fold(folds.count())) == as_set(
        df.groupBy(key).count()
    )


def test_a_flush_of_a_full_worker_changes_nothing(spark, df):
    expected = as_set(df.groupBy("l").agg(F.count(F.lit(1)), F.sum("n")))
    for most in ({"most_keys": 2}, {"most_bytes": 100}):
        observer = Observer()
        grouping = group(df, "l", "partial", 3, observer=observer, **most)
        ours = grouping.fold(folds.count(), folds.sum("n"))
        # Between batches a worker sees that it is full: each shall get several.
        with settings(spark, spark_sql_execution_arrow_maxRecordsPerBatch=20):
            assert as_set(ours) == expected
        assert observer.records()[0].flushes > 0


def test_no_rows_give_no_groups(df):
    none = df.where("w = 'absent'")
    assert group(none, "w", "partial", 4).fold(folds.count()).collect() == []
    assert group(none, "w", "partial", 4).fold(Longest()).collect() == []


@needs_sketches
def test_sketches_merge_natively_and_stay_close(spark):
    rows = spark.range(0, 40_000, 1, 3).selectExpr("id % 2 as k", "id % 14000 as v")
    fold = folds.approx_count_distinct("v", lg_registers=13)
    grouping = group(rows, "k", "shuffle", 4)
    assert "Spark's own aggregates" in grouping.describe(fold)
    found = grouping.fold(fold).collect()
    assert [r[1] for r in found] == pytest.approx([7000, 7000], rel=0.05)


def test_top_k_gives_the_most_frequent_values_of_each_key(df):
    ours = group(df, "w", "shuffle", 4).fold(folds.top_k("n", 2))
    counts = df.where("n is not null").groupBy("w", "n").count().collect()
    for row in ours.collect():
        mine = sorted((-c["count"], c.n) for c in counts if c.w == row.w)[:2]
        assert [(-e["count"], e["item"]) for e in row[1]] == mine


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_sum_that_overflows_does_as_the_ansi_setting_says(spark, ansi):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        df = spark.createDataFrame([("a", 2**63 - 1), ("a", 1), ("b", 5)], "k string, v long")
        ours = group(df, "k", "shuffle", 2).fold(folds.sum("v"))
        if ansi == "false":
            assert as_set(ours) == {("a", -(2**63)), ("b", 5)}
        else:
            with pytest.raises(Exception, match=r"ARITHMETIC_OVERFLOW|overflow"):
                ours.collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def executed_plan(frame, capsys):
    frame.explain("formatted")
    return capsys.readouterr().out


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("scheme", ["key", "partial"])
def test_there_is_one_routing_shuffle_and_one_merge_shuffle(spark, capsys, scheme, own):
    source = spark.range(0, 10).selectExpr("cast(id as string) as w", "cast(id as string) as s")
    chosen = [folds.count(), Longest()] if own else [folds.count()]
    plan = executed_plan(group(source, "w", scheme, 4).fold(*chosen), capsys)
    tree = plan.split("\n\n")[0]
    assert len(re.findall(r"Exchange", tree)) == 2
    assert "shufflepartitionidpassthrough" in plan
    assert "RoundRobin" not in plan


def test_only_the_columns_that_are_needed_travel(spark, capsys, tmp_path):
    spark.range(5).selectExpr("id as k", "id as used", "id as unused").write.parquet(
        str(tmp_path / "t")
    )
    source = spark.read.parquet(str(tmp_path / "t"))
    plan = executed_plan(group(source, "k", "key", 2).fold(folds.sum("used")), capsys)
    assert re.search(r"ReadSchema: struct<k:bigint,used:bigint>", plan)


def median(table: pa.Table) -> pa.Table:
    """The middle of l, with the word it belongs to."""
    middle = statistics.median(table["l"].to_pylist())
    return pa.table({"w": table["w"].slice(0, 1), "m": [float(middle)]})


@pytest.mark.connect
def test_a_function_of_whole_groups_runs_where_a_key_has_one_worker(df):
    ours = group(df, "w", "key", 4).apply(median, "w string, m double")
    assert as_set(ours) == as_set(df.groupBy("w").agg(F.median("l")))
    with pytest.raises(SkewlessError, match="'partial' spreads a key over several workers"):
        group(df, "w", "partial", 4).apply(median, "w string, m double")


def test_explain_says_in_words_what_will_run(df, capsys):
    group(df, "w", "partial", 4).explain(folds.count(), folds.mean("n"))
    words = capsys.readouterr().out
    assert "scheme partial gives each row one of 4 workers" in words
    assert "compiled kernel" in words
    assert "with w, n only" in words
    assert "Spark's own aggregates merge" in words
    assert "Python merges them" in group(df, "w", "key", 4).describe(Longest())
    assert "Column expression" in group(df, "w", "key", 4).describe(Longest())


@pytest.mark.connect
@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (lambda df: group(df, "ww", "key", 2), "no column 'ww'; did you mean 'w'"),
        (lambda df: group(df, "w", "key", -1), "at least 1, not -1"),
        (lambda df: group(df, "w", "on-greedy", 2), "remembers the worker"),
        (lambda df: group(df, "w", "key", 2, most_keys=0), "at least 1 key"),
        (lambda df: group(df, "w", "key", 2).fold(), "at least one fold"),
        (lambda df: group(df, "w", "key", 2).fold(len), "is not a fold"),
        (lambda df: group(df, "w", "key", 2).fold(folds.sum("nn")), "did you mean 'n'"),
        (lambda df: group(df, "w", "key", 2).fold(folds.sum("s")), "cannot fold column 's'"),
        (
            lambda df: group(df, "w", "key", 2).fold(folds.count(), output_mode="apend"),
            "There is no output mode 'apend'; did you mean 'append'",
        ),
        (
            lambda df: group(df, "w", "key", 2).fold(folds.count(), folds.count()),
            "Two columns of the result would be called 'count'",
        ),
        (
            lambda df: group(df, ["w", F.col("W")], "key", 2).fold(folds.count()),
            "The key has two columns called 'w': name it once",
        ),
        (
            lambda df: group(df, "w", "key", 2).fold(Lawless(), sample={"s": ["a", "bb", "ccc"]}),
            "'lawless' breaks identity",
        ),
        (
            lambda df: group(df, F.parse_json(F.lit("1")).alias("v"), "key", 2),
            "Spark groups by no such value",
        ),
        (
            lambda df: group(df, "w", "key", 2).apply("middle", "w string"),
            "apply takes a function from a pyarrow.Table to another, not 'middle'",
        ),
        (lambda df: group(df, "w", "key", 2, observer="log"), "takes a skewless.spark.Observer"),
        (lambda df: group(df, "w", "key", 2, observer=Observer), "takes a skewless.spark.Observer"),
        (
            lambda df: group(df, F.collate("w", "UTF8_LCASE").alias("c"), "key", 2),
            "has the collation UTF8_LCASE",
        ),
        (
            lambda df: group(
                df.select("w", F.collate("w", "UTF8_LCASE").alias("c")), "w", "key", 2
            ).fold(folds.min("c")),
            "has the collation UTF8_LCASE",
        ),
    ],
)
def test_mistakes_are_one_clear_sentence_before_any_job(df, run, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        run(df)


@pytest.mark.connect
def test_a_function_that_returns_no_table_is_one_sentence(df):
    applied = group(df, "w", "key", 2).apply(lambda table: None, "w string")
    with pytest.raises(Exception, match=r"returned None: let it return a pyarrow\.Table"):
        applied.collect()


def test_agg_is_fold_as_spark_calls_it_and_a_grouping_says_what_it_is(spark):
    rows = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "k string, x long")
    grouped = group(rows, "k", "partial", 2)
    assert repr(grouped) == "Grouping(table by k string: partial, 2 workers)"
    found = {tuple(row) for row in grouped.agg(folds.count(), folds.sum("x")).collect()}
    assert found == {("a", 2, 4), ("b", 1, 2)}


def test_a_time_without_a_zone_stays_one_beside_a_fold_of_ones_own(spark):
    df = spark.sql("select 'a' as w, 'b' as s, timestamp_ntz '2024-03-31 02:30:00' as t")
    result = group(df, "w", "partial", 2).fold(Longest(), folds.min("t"), folds.max("t"))
    assert [kind for _, kind in result.dtypes] == ["string", "bigint"] + 2 * ["timestamp_ntz"]
    assert result.first()[2:] == 2 * (datetime.datetime(2024, 3, 31, 2, 30),)
