"""Joins that Spark does without placing rows by key are left to it: by hints, or by known sizes."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from skewless.spark import join, learn_join
from tests.spark.joins import assert_same, settings, two_tables

COLD = list("efghij")


@pytest.fixture(autouse=True)
def no_broadcast(spark):
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        yield


@pytest.fixture(scope="module")
def tables(spark):
    return two_tables(spark, ["a", "b", None], ["b", "c", None], COLD)


@pytest.fixture(scope="module")
def plan(spark, tables):
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        return learn_join(*tables, "k")


def explained(df):
    return df.sparkSession.sql("explain extended select * from {df}", df=df).first()[0]


@pytest.mark.connect
@pytest.mark.parametrize(
    ("how", "side", "broadcasts"),
    [
        ("inner", "left", True),
        ("inner", "right", True),
        ("left", "left", False),
        ("left", "right", True),
        ("right", "left", True),
        ("full", "right", False),
        ("left_semi", "right", True),
        ("left_anti", "left", False),
    ],
)
def test_a_broadcast_asked_for_is_left_to_spark_where_it_can_do_it(tables, how, side, broadcasts):
    left, right = tables
    # Behind the hint there may be more: Spark looks through that too.
    left, right = (
        (F.broadcast(left), right) if side == "left" else (left, F.broadcast(right).where("y >= 0"))
    )
    joined = join(left, right, "k", how)
    assert ("__skewless" in explained(joined)) != broadcasts
    assert ("BroadcastHashJoin" in explained(joined)) == broadcasts
    assert_same(joined, left.join(right, "k", how))


@pytest.mark.connect
def test_a_plan_does_not_overrule_a_hint(tables, plan):
    left, right = tables
    assert plan.spreads
    for hinted in (F.broadcast(right), right.hint("shuffle_replicate_nl")):
        assert "__skewless" not in explained(join(left, hinted, "k", plan=plan))
        assert "__skewless" not in explained(join(left, hinted, [("k", "k")], plan=plan))
        with settings(left.sparkSession, spark_sql_adaptive_enabled="false"):
            assert "__skewless" not in explained(join(left, hinted, "k", plan=plan))
    assert "__skewless" in explained(join(left, F.broadcast(right), "k", "full"))


def test_a_plan_learned_with_a_hint_says_why_it_leaves_the_join_to_spark(tables):
    left, right = tables
    hinted = learn_join(left, F.broadcast(right), "k")
    assert "because Spark broadcasts the right side (as a hint asks" in hinted.describe()
    assert hinted.sizes.left_rows == 500
    pairs = learn_join(left.hint("shuffle_replicate_nl"), right, "k")
    assert "because Spark brings all rows of one side to all" in pairs.describe()


@pytest.mark.connect
@pytest.mark.parametrize("how", ["left_semi", "left_anti"])
def test_a_hint_within_the_left_side_says_nothing_of_a_join_that_only_filters(spark, tables, how):
    small = spark.range(1000).selectExpr("cast(id as int) as x", "id as z")
    left, right = tables[0].join(F.broadcast(small), "x"), tables[1]
    plan = learn_join(left, right, "k", how)
    joined = join(left, right, "k", how, plan=plan)
    assert "__skewless" in explained(joined)
    assert_same(joined, left.join(right, "k", how))
    hinted = join(left, F.broadcast(right), "k", how, plan=plan)
    assert "__skewless" not in explained(hinted)


@pytest.mark.parametrize("hint", ["merge", "shuffle_hash"])
def test_other_hints_hold_in_the_join_with_cells(tables, plan, hint):
    left, right = tables
    joined = join(left, right.hint(hint), "k", plan=plan)
    words = explained(joined)
    assert "__skewless" in words
    named = "SortMergeJoin" if hint == "merge" else "ShuffledHashJoin"
    assert named in words.partition("== Physical Plan ==")[2]
    assert_same(joined, left.join(right, "k"))


def test_a_table_that_spark_knows_to_be_small_is_not_counted(spark, tables, plan):
    left = tables[0]
    small = spark.range(50).selectExpr("if(id % 2 = 0, 'b', 'c') as k", "id as y")
    assert "__skewless" in explained(join(left, small, "k", plan=plan))
    with settings(spark, spark_sql_autoBroadcastJoinThreshold="1m"):
        joined = join(left, small, "k", plan=plan)
        assert "__skewless" not in explained(joined)
        assert_same(joined, left.join(small, "k"))


def test_a_stream_meets_a_table_that_is_to_be_broadcast_as_in_sparks_own_join(spark, tables, plan):
    stream = spark.readStream.format("rate").load().selectExpr("string(value) as k", "timestamp")
    table = tables[1]
    for given, spreads in ((table, True), (F.broadcast(table), False)):
        for joined in (
            join(stream, given, "k", plan=plan),
            join(given, stream, "k", "right", plan=plan),
        ):
            assert ("__skewless" in joined._jdf.queryExecution().analyzed().toString()) == spreads


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_a_constant_key_for_which_spark_would_broadcast_any_table_is_spread(spark, tables, how):
    left, right = (df.withColumn("k", F.lit("b")) for df in tables)
    plain = left.join(right, "k", how)
    assert "BroadcastNestedLoopJoin" in explained(plain) or how == "inner"
    joined = join(left, right, "k", how)
    assert "SortMergeJoin [__skewless" in explained(joined)
    assert_same(joined, plain)
    # Where a hint asks for it, Spark does so.
    hinted = join(left, F.broadcast(right), "k", "left")
    assert "__skewless" not in explained(hinted)
    pairs = join(left.hint("shuffle_replicate_nl"), right, "k")
    assert "__skewless" not in explained(pairs)
