"""Names, types and values that nobody expects: taken as Spark takes them, or one sentence."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.schemes import scheme_of
from skewless.spark import balanced_map, group, learn, per_worker, repartition, route
from skewless.spark.adapt.plans import stream_folder
from tests.spark.fuzz import session
from tests.spark.own_folds import Longest, Rows
from tests.spark.processors import CountPerKey
from tests.spark.streams import Files, run_to_end


@pytest.fixture(scope="module")
def df(spark):
    return spark.range(0, 40, 1, 2).selectExpr("id", "id % 3 as k", "cast(id as string) as s")


def test_text_that_is_no_utf8_keeps_its_state(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "b binary, s string")
    for _ in range(2):
        files.put([(b"\xff", "x"), (b"\xfe", "x"), (b"a", "x")])
    stream = files.stream().withColumn("b", F.col("b").cast("string"))
    ours = group(stream, "b", "shuffle", 2).fold(Longest(), folds.count())
    _, seen = run_to_end(ours.select(F.col("b").cast("binary"), "count"), tmp_path / "c", "update")
    assert sorted((bytes(row.b), row["count"]) for row in seen) == [
        (key, n) for key in (b"a", b"\xfe", b"\xff") for n in (1, 2)
    ]


@pytest.mark.parametrize("own", [False, True])
def test_extremes_of_intervals_of_days_keep_their_type(df, own):
    spans = df.select("k", F.expr("make_dt_interval(0, int(id) - 20)").alias("x"), "s")
    spans = spans.withColumn("d", F.expr("cast(x as interval day)"))
    chosen = [folds.min("x"), folds.max("d"), *([Rows("s")] if own else [])]
    ours = group(spans, "k", "partial", 3).fold(*chosen).select("k", "min(x)", "max(d)")
    plain = spans.groupBy("k").agg(F.min("x"), F.max("d"))
    assert ours.dtypes == plain.dtypes
    assert sorted(ours.collect()) == sorted(plain.collect())


def same_rows(ours, plain):
    assert ours.columns == plain.columns
    assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, plain.collect()))


@pytest.mark.parametrize(
    "names",
    [
        ("id", "k", "k"),
        ("identity", "key", "cost"),
        ("skewless_identity", "skewless_worker", "skewless_report"),
        ("a.b", "`", "worker"),
    ],
)
def test_columns_may_have_any_name_also_twice(df, names):
    named = df.toDF(*names)
    key = f"`{names[0].replace('`', '``')}`"
    mapped = balanced_map(named, lambda b: b, named.schema, key=key, workers=2)
    assert mapped.columns == named.columns
    same_rows(mapped.toDF("a", "b", "c"), df.toDF("a", "b", "c"))
    planned = learn(named, key, "graded-planned", 2)
    placed = repartition(named, key, planned)
    same_rows(placed.toDF("a", "b", "c"), df.toDF("a", "b", "c"))
    sizes = group(named, key, "key", 2).apply(
        lambda table: pa.table({"n": [len(table.column_names)]}), "n long"
    )
    assert {row.n for row in sizes.collect()} == {3}


def test_k_and_capital_k_are_two_columns_where_the_session_says_so(spark, df):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        cased = df.withColumn("K", F.col("k") + 1)
        ours = group(cased, ["k", "K"], "partial", 3).fold(folds.count())
        same_rows(ours, cased.groupBy("k", "K").count())
        assert route(cased.withColumnRenamed("s", "Worker"), "k", "key", 2).columns[-1] == "worker"
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


class Typed(Rows):
    """Its result is of any type, the number of rows as far as that can say it."""

    def __init__(self, kind, value):
        super().__init__("s")
        self.result, self.value = kind, value

    def finish(self, state):
        return self.value


DAY = datetime.datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.timestamp("ms"), DAY, DAY),
        (pa.timestamp("ns"), DAY, DAY),
        (pa.duration("ms"), datetime.timedelta(1), datetime.timedelta(1)),
        (pa.large_string(), "x", "x"),
        (pa.dictionary(pa.int32(), pa.string()), "x", "x"),
    ],
)
def test_results_of_a_fold_are_brought_into_types_that_spark_has(df, kind, value, expected):
    ours = group(df, "k", "key", 2).fold(Typed(kind, value)).collect()
    assert {row.rows for row in ours} == {expected}


class Nameless(Rows):
    name = None


class Columnless(Rows):
    name = "columnless"

    def __init__(self):
        self.columns = ()


UNTAKEN = [pa.time64("us"), pa.uint8(), pa.uint64(), pa.date64(), pa.float16()]


def pandas_on_spark(df):
    """In ANSI mode, which is the default from Spark 4.0 on, only 4.1 and later have it."""
    with session(df.sparkSession, (("spark.sql.ansi.enabled", "false"),)):
        return df.pandas_api()


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        *(
            (lambda df, k=kind: group(df, "k", "key", 2).fold(Typed(k, None)), "Spark has no type")
            for kind in UNTAKEN
        ),
        (lambda df: group(df, "k", "key", 2).fold(Nameless("s")), "has no name: give its class"),
        (lambda df: group(df, "k", "key", 2).fold(Columnless()), "has no columns, so its `reduce`"),
        (lambda df: group(df, "k", "key", 2, seed=None), "seed is a whole number, not None"),
        (lambda df: learn(df, "k", "d-choices", 2, seed="a"), "seed is a whole number, not 'a'"),
        (lambda df: route(df, "k", 5, 2), "A scheme is one of skewless.schemes or a text"),
        (lambda df: route(df, "k", "key", 2, column=5), "text that is not empty, not 5: name it"),
        (lambda df: repartition(df, "k", "key", 2, column=""), "text that is not empty, not ''"),
        *(
            (
                lambda df, made=made: group(df, "k", "key", 2).apply(lambda t: t, made),
                "schema= is a StructType or a text such as",
            )
            for made in ("n nosuch", "n long,", 5, None)
        ),
        (
            lambda df: balanced_map(df, lambda b: b, "n nosuch", key="k"),
            r"schema= is .*, not 'n nosuch' \(",
        ),
        (lambda df: group(df, "k", "key", 2, most_keys="a"), "most_keys is a whole number"),
        (lambda df: learn(df, "k", "d-choices", 2, sample="a"), "The sample is a number, not 'a'"),
        (
            lambda df: group(df, "k", "key", 2).fold(folds.count(), sample="a"),
            "A sample is a dict of column names",
        ),
        (lambda df: folds.count().alias(None), "renamed to a text that is not empty, not to None"),
        (lambda df: group(df, "*", "key", 2), r"The key '\*' is not one column"),
        (
            lambda df: group(df.toDF("a.b", "k", "s"), "a.b", "key", 2),
            "Column 'a.b' has a dot .*: put the name in backticks, '`a.b`'",
        ),
        (
            lambda df: group(df.toDF("a`b", "k", "s"), "k", "key", 2).fold(folds.sum("a`b")),
            "Column 'a`b' has .* a backtick .*: put the name in backticks, '`a``b`'",
        ),
        (
            lambda df: group(df.toDF("a.b", "k", "s"), "`a.c`", "key", 2),
            "no column 'a.c'; did you mean 'a.b'",
        ),
        (lambda df: group(df.toDF("k", "k", "s"), "k", "key", 2), "has 2 columns called 'k'"),
        (lambda df: group(df.toPandas(), "k", "key", 2), "not a pandas DataFrame: make one"),
        (
            lambda df: group(pandas_on_spark(df), "k", "key", 2),
            "not a pandas-on-Spark DataFrame: hand",
        ),
        (
            lambda df: group(df.withColumn("y", F.expr("interval '1' year")), "y", "key", 2).apply(
                lambda t: t, "n long"
            ),
            "Column 'y' of type interval year cannot be handed to Python",
        ),
        (
            lambda df: balanced_map(df, lambda b: b, "n long", key="k", share="a"),
            "The share of the first wave is a number, not 'a'",
        ),
    ],
)
def test_mistakes_are_one_clear_sentence(df, run, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        run(df)


def test_a_processor_is_given_no_column_that_is_called_like_one_of_ours(spark, tmp_path):
    stream = Files(spark, tmp_path / "in", "w string, skewless_worker int").stream()
    with pytest.raises(SkewlessError, match="column 'skewless_worker', which per_worker uses"):
        per_worker(stream, "w", "key", 2, CountPerKey(), CountPerKey.SCHEMA)


@pytest.mark.parametrize("checkpoint", ["", " ", 5])
def test_a_checkpoint_is_a_folder(spark, tmp_path, monkeypatch, checkpoint):
    monkeypatch.chdir(tmp_path)
    stream = Files(spark, tmp_path / "in", "w string").stream()
    with pytest.raises(SkewlessError, match="A checkpoint is the path of a folder, not"):
        group(stream, "w", "graded", 2, checkpoint=checkpoint)
    assert not (tmp_path / "skewless").exists()


def test_a_processor_s_schema_is_checked(spark, tmp_path):
    stream = Files(spark, tmp_path / "in", "w string").stream()
    with pytest.raises(SkewlessError, match="schema= is a StructType or a text"):
        per_worker(stream, "w", "key", 2, CountPerKey(), "n nosuch")


def test_the_worker_column_may_have_a_dot_in_its_name(df):
    placed = repartition(df, "k", "key", 2, column="a.b")
    assert {row["a.b"] for row in placed.collect()} <= {0, 1}


def test_plans_of_an_older_stream_are_called_so(tmp_path):
    scheme = scheme_of("partial")
    folder = stream_folder(str(tmp_path), scheme, 2, 0)
    folder.claim()
    for name in ("7.npz", "8.npz"):
        (folder.root / "plans" / name).touch()
    with pytest.raises(SkewlessError, match="begin with batch 7, and this stream is at batch 0"):
        folder.settle(0)
