"""A join with hot keys in cells is Spark's own join, row by row, and its work is even."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import Window
from pyspark.sql import functions as F

from skewless.spark import JoinPlan, join, learn_join
from skewless.spark.join.kinds import kind_of
from tests.spark.joins import TYPES, assert_same, rows_of, settings, two_tables

COLD = list("efghij")


@pytest.fixture(autouse=True)
def no_broadcast(spark):
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        yield


@pytest.fixture(scope="module")
def tables(spark):
    """Keys hot on the left, on both sides, on the right, on one side only, and null."""
    left, right = two_tables(spark, ["a", "b", None, "left"], ["b", "c", None, "right"], COLD)
    return left.cache(), right.cache()


@pytest.mark.connect
@pytest.mark.parametrize("how", TYPES)
def test_every_type_is_exact_with_names_and_with_pairs(tables, how):
    left, right = tables
    assert_same(join(left, right, "k", how), left.join(right, "k", how))
    pairs = join(left, right, [("k", "k")], how)
    assert_same(pairs, left.join(right, [left.k == right.k], how))


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_it_is_exact_and_even_with_and_without_adaptive_execution(spark, tables, adaptive):
    left, right = tables
    with settings(spark, spark_sql_adaptive_enabled=adaptive):
        expected = rows_of(left.join(right, "k", "full"))
        assert rows_of(join(left, right, "k", "full", workers=5)) == expected
        assert unevenness(left.join(right, "k", "full"), 3) > 2
        assert unevenness(join(left, right, "k", "full", workers=5), 5) < 1.5


def unevenness(df, partitions):
    counts = [row["count"] for row in df.groupBy(F.spark_partition_id()).count().collect()]
    return max(counts) * partitions / sum(counts)


@pytest.mark.connect
@pytest.mark.parametrize("how", TYPES)
def test_a_plan_of_other_rows_is_exact_too(spark, tables, how):
    if how == "full":  # by a plan it splits no key, but spreads null keys
        tables = two_tables(spark, [None], [None], COLD)
    plan = learn_join(*tables, "k", how, workers=4)
    assert plan.for_join(kind_of(how), distinct=True).spreads
    # Of the hot keys of the plan, one side has none, and nulls and cold keys have become hot.
    left, right = two_tables(spark, ["a", None, "e"], ["right", "e", "c"], ["left", "x"])
    found = join(left, right, "k", how, plan=JoinPlan.from_json(plan.to_json()))
    assert_same(found, left.join(right, "k", how))
    nothing = right.where("k = 'c' or k is null")
    assert_same(join(left, nothing, "k", how, plan=plan), left.join(nothing, "k", how))


@pytest.mark.parametrize("how", TYPES)
def test_further_conditions_hold_between_partners(spark, tables, how):
    # With a condition a full join splits no key either.
    left, right = two_tables(spark, [None], [None], COLD) if how == "full" else tables
    near = F.abs(F.col("x") - F.col("y")) < 20
    found = join(left, right, [("k", "k"), near], how)
    assert "__skewless" in found._jdf.queryExecution().toString()
    assert_same(found, left.join(right, [left.k == right.k, near], how))


keys = st.lists(st.sampled_from(["a", "a", "a", "b", None, "c"]), max_size=30)


@hypothesis_settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(keys, keys, st.sampled_from(TYPES))
def test_small_and_empty_tables_are_joined_exactly(spark, left_keys, right_keys, how):
    left = spark.createDataFrame([(k, i % 5) for i, k in enumerate(left_keys)], "k string, x int")
    right = spark.createDataFrame([(k, i % 4) for i, k in enumerate(right_keys)], "k string, y int")
    assert_same(join(left, right, "k", how, workers=3), left.join(right, "k", how))


def test_composite_keys_with_partial_nulls_are_exact(spark):
    left, right = two_tables(spark, ["a", None], ["a", None], ["e"])
    left = left.withColumn("d", F.when(F.col("x") % 3 > 0, F.col("x") % 2))
    right = right.withColumn("d", F.when(F.col("y") % 4 > 0, F.lit(1)))
    found = join(left, right, ["d", "k"], "full")
    assert_same(found, left.join(right, ["d", "k"], "full"))
    assert unevenness(found, 3) < 1.6


def test_one_partition_and_one_row_are_left_to_spark(spark, tables):
    left, right = tables
    assert_same(join(left, right, "k", workers=1), left.join(right, "k"))
    one = left.where("k = 'b'").limit(1)
    assert_same(join(one, right, "k", "right"), one.join(right, "k", "right"))


def test_rows_that_cannot_be_told_apart_are_joined_exactly(spark, tables):
    left, right = (df.select("k") for df in tables)
    assert_same(join(left, right, "k", "full"), left.join(right, "k", "full"))
    plan = learn_join(left, tables[1], "k")
    assert plan.spreads
    assert (plan.stripes_left == 1).all()
    assert "tells rows of the left apart" in plan.describe()
    assert_same(join(left, tables[1], "k"), left.join(tables[1], "k"))


def test_cells_stand_where_the_plan_wants_them(spark, tables):
    left, right = tables
    plan = learn_join(left, right, "k", workers=6)
    i = plan.sizes.names.index("b")
    assert plan.stripes_left[i] * plan.stripes_right[i] >= 6
    spread = join(left, right, "k", plan=plan).where("k = 'b'")
    at = {row.p for row in spread.select(F.spark_partition_id().alias("p")).distinct().collect()}
    assert at == set(range(6))


def test_nothing_is_shuffled_twice_and_adaptive_execution_changes_no_place(tables):
    left, right = tables
    joined = join(left, right, "k", "left", workers=7)
    joined.collect()
    words = joined._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    assert words.count("Exchange hashpartitioning") == 2
    assert "AQEShuffleRead" not in words
    assert ", 7), REPARTITION_BY_NUM" in words


def test_what_may_differ_next_time_is_split_only_where_that_does_no_harm(spark):
    left, right = two_tables(spark, ["a", "b"], ["a", "c"], COLD)
    drawn = left.where(F.rand(3) < 2)
    wide = left.select("*", *(F.lit(i).alias(f"c{i}") for i in range(40)))
    wide = wide.withColumn("drawn", F.rand()).select(*left.columns)
    assert_same(join(drawn, right, "k", "full"), left.join(right, "k", "full"))
    summed = F.sum("x").over(Window.orderBy("k").rowsBetween(Window.unboundedPreceding, 0))
    running = left.withColumn("s", summed).where("s < 0").select("k", "x").unionAll(left)
    for rows, certain in ((left, True), (drawn, False), (wide, False), (running, False)):
        words = join(rows, right, "k", "full")._jdf.queryExecution().toString()
        assert ("left_copied" in words) == certain
    words = join(left, right, "k", "full", repeatable=False)._jdf.queryExecution().toString()
    assert "left_copied" not in words


def test_a_random_side_is_noticed_in_a_plan_that_spark_shows_in_part(spark):
    left, right = two_tables(spark, ["a", "b"], ["a", "c"], COLD)
    drawn = left.where(F.rand(3) < 2)
    with settings(spark, spark_sql_maxPlanStringLength=20):
        joined = join(drawn, right, "k", "full")
    assert "left_copied" not in joined._jdf.queryExecution().toString()


def test_a_random_side_of_another_session_is_noticed_as_well(spark):
    left, right = two_tables(spark, ["a", "b"], ["a", "c"], COLD)
    other = spark.newSession()  # as rows in foreachBatch have one
    wide = other.createDataFrame(right.collect(), right.schema)
    wide = wide.select("*", *(F.lit(i).alias(f"c{i}") for i in range(40)))
    wide = wide.withColumn("drawn", F.rand()).select(*right.columns)
    words = join(left, wide, "k", "full")._jdf.queryExecution().toString()
    assert "left_copied" not in words


def test_null_keys_alone_are_spread_by_the_join_itself(spark):
    left, right = two_tables(spark, [None], ["e"], COLD)
    joined = join(left, right, "k", "left", workers=5)
    assert_same(joined, left.join(right, "k", "left"))
    words = joined._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    assert words.count("Exchange hashpartitioning") == 2
    assert unevenness(joined, 5) < 1.5
