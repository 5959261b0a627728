"""What `on` may be, which names come out, and keys of every type."""

from __future__ import annotations

import datetime as dt
import decimal
import logging
import math

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark import join, learn_join
from skewless.spark.join.kinds import kind_of
from tests.spark.joins import TYPES, assert_same, rows_of, settings, skewed, two_tables

COLD = list("efg")


@pytest.fixture(autouse=True)
def no_broadcast(spark):
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        yield


@pytest.fixture(scope="module")
def plan(spark):
    """A plan for names `k`, so that a test need not count again."""
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        return learn_join(*two_tables(spark, ["a", "b"], ["a", "c"], COLD), "k")


@pytest.fixture(scope="module")
def tables(spark):
    return two_tables(spark, ["a", "b"], ["a", "c"], COLD)


@pytest.mark.connect
@pytest.mark.parametrize("how", ["left_outer", "RIGHT", "fullouter", "leftanti", "cross"])
def test_columns_of_both_sides_still_resolve_after_the_join(spark, tables, plan, how):
    left, right = tables
    if how == "fullouter":  # by a plan it splits no key, but spreads null keys
        left, right = two_tables(spark, [None], [None], COLD)
        plan = learn_join(left, right, "k")
    assert plan.for_join(kind_of(how), distinct=True).spreads
    found, expected = join(left, right, "k", how, plan=plan), left.join(right, "k", how)
    if how == "leftanti":
        assert_same(found.select(left["x"]), expected.select(left["x"]))
        return
    chosen = [left["x"], right["y"], left["k"], right["k"]]
    assert_same(found.select(*chosen), expected.select(*chosen))


@pytest.mark.connect
def test_aliases_of_the_sides_still_resolve_after_the_join(tables, plan):
    left, right = tables[0].alias("l"), tables[1].alias("r")
    expected = left.join(right, F.col("l.k") == F.col("r.k"))
    found = join(left, right, [("k", "k")], plan=plan)
    assert_same(found.select("l.k", "r.k", "x"), expected.select("l.k", "r.k", "x"))


@pytest.mark.connect
def test_a_table_joins_itself(spark):
    rows = spark.createDataFrame(skewed(200, ["a", "b"], COLD, 1), "k string, x int")
    rows = rows.withColumn("other", F.lower("k"))
    assert_same(join(rows, rows, "k", "left"), rows.join(rows, "k", "left"))
    one, two = rows.alias("one"), rows.alias("two")
    expected = one.join(two, F.col("one.k") == F.col("two.other"), "full")
    for pair in (("k", "other"), (rows.k, rows.other), (F.col("k"), F.lower("k"))):
        assert_same(join(rows, rows, [pair], "full"), expected)


@pytest.mark.connect
def test_odd_names_and_names_of_ours_stay_as_they_are(spark):
    schema = "`a.b` string, `slot` int, `__skewless_slot` int, `sp ace` int"
    rows = [(k, i, i + 1, i + 2) for k, i in skewed(200, ["a", "b"], COLD, 1)]
    left = spark.createDataFrame(rows, schema)
    right = spark.createDataFrame(rows[:120], schema)
    assert_same(join(left, right, "a.b", "full"), left.join(right, "a.b", "full"))
    expected = left.join(right, left["`a.b`"] == right["`a.b`"])
    assert_same(join(left, right, [("a.b", "a.b")]), expected)
    ticks = left.withColumnRenamed("a.b", "t`k"), right.withColumnRenamed("a.b", "t`k")
    assert_same(join(*ticks, "t`k", "left"), ticks[0].join(ticks[1], "t`k", "left"))


def test_several_columns_of_one_name_and_other_cases_of_it(spark, plan, tables):
    left, right = tables
    twice = left.select("k", "x", F.col("x").alias("x"))
    assert_same(join(twice, right, "k"), twice.join(right, "k"))
    assert_same(join(left, right, "K"), left.join(right, "K"))
    with settings(spark, spark_sql_caseSensitive="true"):
        both = left.withColumn("K", F.col("x"))
        assert_same(join(both, right, "k", plan=plan), both.join(right, "k"))
        with pytest.raises(SkewlessError, match="no column of the right side 'K'"):
            join(both, right, "K")


def test_fields_and_expressions_may_be_keys_of_pairs(spark, tables):
    left, right = tables
    nested = left.select(F.struct(F.upper("k").alias("k")).alias("s"), "x")
    expected = nested.join(right, nested["s.k"] == F.upper(right.k), "left")
    assert_same(join(nested, right, [("s.k", F.upper("k"))], "left"), expected)


DAY = dt.date(2024, 2, 29)
TIME = dt.datetime(2024, 2, 29, 12)
KEYS = {
    "int": [1, 2, None, 4],
    "tinyint": [1, 2, None, 4],
    "boolean": [True, None, True, False],
    "double": [0.0, -0.0, math.nan, None],
    "float": [0.0, -0.0, math.nan, 1.5],
    "decimal(20,3)": [decimal.Decimal("1.500"), decimal.Decimal(2), None, decimal.Decimal(7)],
    "date": [DAY, DAY.replace(day=1), None, DAY.replace(day=2)],
    "timestamp": [TIME, TIME.replace(day=1), None, TIME.replace(day=2)],
    "timestamp_ntz": [TIME, TIME.replace(day=1), None, TIME.replace(day=2)],
    "binary": [b"\xff\x00", b"", None, b"abc"],
    "struct<a: int, b: double>": [(1, -0.0), (1, 0.0), (None, math.nan), None],
    "array<string>": [["a", None], [None, "a"], None, ["b"]],
    "string collate utf8_lcase": ["a", "A", None, "b"],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_meet_as_in_sparks_own_join(spark, kind):
    values = KEYS[kind]
    left, right = two_tables(spark, values[:3], values[:2], values, kind, (120, 80))
    # Of nested keys the hash does not tell all apart: there a full join splits nothing.
    how = "inner" if kind.startswith(("array", "struct")) else "full"
    found = join(left, right, "k", how)
    assert_same(found, left.join(right, "k", how))
    assert_same(join(left, right, "k", "full"), left.join(right, "k", "full"))
    words = found._jdf.queryExecution().toString()
    assert ("__skewless" in words) == ("collate" not in kind)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int", "bigint"),
        ("bigint", "double"),
        ("float", "double"),
        ("decimal(5,1)", "decimal(20,3)"),
        ("int", "decimal(12,2)"),
        ("date", "timestamp"),
        ("string", "int"),
    ],
)
def test_keys_of_two_types_meet_as_in_sparks_own_join(spark, one, other):
    if one == "date":
        values = ["2024-01-02", "2024-01-01", None, "2024-01-03"]
    else:
        values = ["1", "2", None, "3"]
    left, right = two_tables(spark, values[:3], values[:2], values, "string", (120, 80))
    left = left.withColumn("k", F.col("k").cast(one))
    right = right.withColumn("k", F.col("k").cast(other))
    assert_same(join(left, right, "k", "full"), left.join(right, "k", "full"))
    assert_same(join(right, left, "k", "left"), right.join(left, "k", "left"))


@pytest.fixture
def chars(spark, tmp_path):
    """Makes a table of texts of a declared type, in files as they are or as Spark writes them."""
    names = []

    def table(kind, number, value, as_is=False):
        name, folder = f"chars_{len(names)}", tmp_path / f"chars_{len(names)}"
        names.append(name)
        rows = spark.range(60).selectExpr(
            f"if(id % 5 > 0, {value}, if(id % 3 = 0, null, 'c' || id % 4)) as k", "cast(id as int)"
        )
        if as_is:
            rows.toDF("k", number).write.parquet(str(folder))
        spark.sql(f"create table {name} (k {kind}, {number} int) using parquet location '{folder}'")
        if not as_is:
            rows.write.insertInto(name)
        return spark.table(name)

    yield table
    for name in names:
        spark.sql(f"drop table {name}")


@pytest.mark.parametrize(
    ("one", "other", "spreads"),
    [
        ("char(5)", "char(3)", False),
        ("char(5)", "char(5)", True),
        ("char(5)", "varchar(5)", True),
        ("varchar(5)", "varchar(3)", True),
    ],
)
def test_texts_of_fixed_length_meet_as_in_sparks_own_join(chars, one, other, spreads):
    left, right = chars(one, "x", "'ab'"), chars(other, "y", "'ab'")
    found = join(left, right, "k", "full")
    assert_same(found, left.join(right, "k", "full"))
    assert ("__skewless" in found._jdf.queryExecution().toString()) == spreads
    pairs = join(left, right, [("k", "k")], "left_semi")
    assert_same(pairs, left.join(right, left.k == right.k, "left_semi"))
    if not spreads:
        said = learn_join(left, right, "k").describe()
        assert "of type char(5) and 'k' of type char(3) are filled up with blanks" in said


def test_texts_of_fixed_length_that_spark_fills_up_late_meet_as_in_its_own_join(spark, chars):
    with settings(spark, spark_sql_readSideCharPadding="false"):
        left = chars("char(5)", "x", "'ab'", as_is=True)
        right = chars("char(5)", "y", "'ab '", as_is=True)
        assert_same(join(left, right, "k", "full"), left.join(right, "k", "full"))


@pytest.mark.parametrize("on", ["k", [("k", "k")]])
@pytest.mark.parametrize("how", TYPES)
def test_whole_numbers_rounded_to_floats_meet_as_in_sparks_own_join(spark, tmp_path, on, how):
    # From a file: Spark simplifies casts of rows that it does not know.
    odd = F.when(F.col("id") % 2 == 0, 16_777_217).otherwise(F.col("id")).cast("int")
    spark.range(200).select(odd.alias("k"), "id").write.parquet(str(tmp_path / "rows"))
    left = spark.read.parquet(str(tmp_path / "rows"))
    right = left.select(F.col("k").cast("float"), F.col("id").alias("y"))
    expected = left.join(right, "k" if on == "k" else left.k == right.k, how)
    assert_same(join(left, right, on, how), expected)


@pytest.mark.parametrize(
    "setting", ["analyzer_failAmbiguousSelfJoin", "selfJoinAutoResolveAmbiguity"]
)
@pytest.mark.parametrize("pair", [("a", "b"), ("a", "a")])
def test_a_pair_means_left_and_right_where_spark_does_not_mind_self_joins(spark, setting, pair):
    rows = spark.range(60).selectExpr("id % 10 as a", "id % 3 as b", "id")
    other = rows.toDF("a2", "b2", "id2")
    expected = rows.join(other, rows[pair[0]] == other[f"{pair[1]}2"]).toDF(*"abcdef")
    for value in ("true", "false"):
        with settings(spark, **{f"spark_sql_{setting}": value}):
            assert_same(join(rows, rows, [pair]).toDF(*"abcdef"), expected)


def test_keys_that_only_spark_can_compare_are_not_counted(spark):
    texts = spark.sql("select * from values ('1', 1), ('a', 2) as t(k, x)")
    numbers = spark.sql("select * from values (1, 1), (2, 2) as t(k, y)")
    nothing = texts.withColumn("k", F.lit(None))
    for ansi in ("false", "true"):
        with settings(spark, spark_sql_ansi_enabled=ansi):
            plan = learn_join(numbers, texts, "k")
            assert "compared by a rule of Spark's own" in plan.describe()
            assert_same(join(nothing, numbers, "k", "left"), nothing.join(numbers, "k", "left"))
    with settings(spark, spark_sql_ansi_enabled="false"):
        assert_same(join(numbers, texts, "k", "full"), numbers.join(texts, "k", "full"))


class Heard(logging.Handler):
    """What a logger says."""

    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


@pytest.fixture
def pyspark_says():
    logger = pytest.importorskip("pyspark.logger").PySparkLogger.getLogger
    heard, loggers = (
        Heard(),
        [logger("DataFrameQueryContextLogger"), logger("SQLQueryContextLogger")],
    )
    for each in loggers:
        each.addHandler(heard)
    yield heard.said
    for each in loggers:
        each.removeHandler(heard)


@pytest.mark.connect
def test_what_spark_is_asked_in_vain_is_not_logged_as_an_error(spark, tables, plan, pyspark_says):
    left, right = tables
    for salt in ("x", F.col("y")):
        assert join(left, right, "k", plan=plan, salt=salt).columns == ["k", "x", "y"]
    inner = left.select(F.struct("k").alias("s"), "x")
    assert join(inner, right, [("s.k", "k")]).columns == ["s", "x", "k", "y"]
    joined = join(left, left, [("k", "k")], plan=plan)
    assert joined.columns == ["k", "x", "k", "x"]
    for on in (
        "nope",
        [("k", "nope")],
        [(F.sum("x"), "y")],
        [(F.rand(), "y")],
        [("k", "k"), F.col("z")],
    ):
        with pytest.raises(SkewlessError):
            join(left, right, on)
    assert pyspark_says == []
    with pytest.raises(AnalysisException):
        _ = left.select(F.col("nope")).schema
    assert len(pyspark_says) == 1


@pytest.mark.parametrize(
    ("salt", "says"),
    [
        ("k", "the salt 'k' is the key"),
        ("nope", "no column to be a salt 'nope'"),
        (F.rand, "not the same when a task is run again"),
        (F.monotonically_increasing_id, "not the same when a task is run again"),
        ("m", "cannot be a salt"),
        (3, "A salt is a column's name"),
    ],
)
def test_a_salt_that_is_none_is_refused(tables, salt, says):
    left, right = tables
    right = right.withColumn("m", F.create_map("k", "y"))
    with pytest.raises(SkewlessError, match=f"(?i){says}"):
        join(left, right, "k", salt=salt() if callable(salt) else salt)


def test_a_salt_is_taken_by_the_side_that_has_it(tables, plan):
    left, right = tables
    for salt in ("x", ["x", "y"], F.col("y") % 7):
        assert rows_of(join(left, right, "k", plan=plan, salt=salt)) == rows_of(
            left.join(right, "k")
        )
    numbered = left.withColumnRenamed("x", "id")
    assert join(numbered, right, "k", plan=plan, salt=F.col("id")).columns == ["k", "id", "y"]
    one = join(
        left.withColumn("c", F.lit(1)), right.withColumn("c", F.lit(1)), "k", "inner", salt="c"
    )
    assert one.count() == left.join(right, "k").count()


@pytest.fixture(scope="module")
def hot_on_the_left(spark):
    """Tables of which only the left has many rows of a key, and a plan that splits them there."""
    left, right = two_tables(spark, ["a"], ["c"], ["a", "b", "c", *COLD])
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        plan = learn_join(left, right, "k")
    i = plan.sizes.names.index("a")
    assert (plan.stripes_left[i] > 1, plan.stripes_right[i]) == (True, 1)
    return left, right, plan


def places(joined):
    """On how many partitions the rows of the hot key are."""
    return joined.where("k = 'a'").select(F.spark_partition_id()).distinct().count()


def test_a_salt_that_is_the_same_in_all_rows_keeps_a_key_together(hot_on_the_left):
    left, right, plan = hot_on_the_left
    left = left.withColumn("c", F.lit(1))
    for salt, split in (("c", False), (F.col("c") + 1, False), ("x", True), (["c", "x"], True)):
        joined = join(left, right, "k", plan=plan, salt=salt)
        assert (places(joined) > 1) == split
        assert rows_of(joined) == rows_of(left.join(right, "k"))


@pytest.mark.parametrize("how", TYPES)
def test_empty_sides_are_joined_too(tables, how):
    left, right = tables
    none = right.where("k = 'nobody'")
    assert_same(join(left, none, "k", how), left.join(none, "k", how))


def test_where_case_counts_a_salt_may_differ_from_the_key_by_case_alone(spark, hot_on_the_left):
    left, right, plan = hot_on_the_left
    with settings(spark, spark_sql_caseSensitive="true"):
        for other, split in ((F.lit(1), False), (F.col("x"), True)):
            both = left.withColumn("K", other)
            joined = join(both, right, "k", plan=plan, salt="K")
            assert (places(joined) > 1) == split
            assert rows_of(joined) == rows_of(both.join(right, "k"))
