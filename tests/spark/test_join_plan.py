"""Plans of joins: what they say, that they can be kept, and when they leave a join alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark import JoinPlan, join, learn_join
from tests.spark.joins import rows_of, settings, two_tables

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
        return learn_join(*tables, "k", "left", workers=4)


def logical(df):
    """Spark's optimized plan without the numbers of its columns."""
    return df._jdf.queryExecution().optimizedPlan().canonicalized().toString()


def test_a_plan_says_which_keys_are_split_and_what_is_expected(plan, capsys):
    plan.explain()
    words = capsys.readouterr().out
    assert words.startswith(
        "A left join on k: 500 rows on the left, 300 on the right, 4 partitions."
    )
    plain, planned = plan.evenness
    assert f"{plain:.2f} times the mean work without this plan, and {planned:.2f} with it" in words
    assert plain > 2 > 1.1 > planned
    i = plan.sizes.names.index("b")
    assert f"  b: {plan.sizes.left[i]:.0f} × {plan.sizes.right[i]:.0f} rows in" in words
    assert "rows of the left with a null key are spread" in words
    assert "exact whichever keys" in words
    assert repr(plan).startswith("JoinPlan(left, 4 partitions, ")


def test_a_plan_shows_long_and_odd_keys_in_short(spark):
    key = F.when(F.col("id") % 4 > 0, F.concat(F.lit("first\n"), F.repeat(F.lit("long"), 999)))
    left, right = (spark.range(n).select(key.alias("k"), "id") for n in (90, 60))
    words = learn_join(left, right, "k").describe()
    assert words.startswith("An inner join on k: ")
    (line,) = (line for line in words.splitlines() if "first" in line)
    assert line.startswith("  first\\nlonglong")
    assert "(4,002 characters, " in line
    assert len(line) < 180


def test_the_counts_of_a_plan_are_those_of_the_tables(plan, tables):
    for df, counts in zip(tables, (plan.sizes.left, plan.sizes.right), strict=True):
        true = {row.k: row["count"] for row in df.groupBy("k").count().collect()}
        assert [true.get(name, 0) for name in plan.sizes.names] == counts.tolist()


def test_a_plan_goes_through_a_file_unchanged(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    loaded = JoinPlan.load(tmp_path / "plan.json")
    assert loaded.to_json() == plan.to_json()
    assert loaded == plan
    assert {plan: 1}[loaded] == 1
    assert loaded != replace(plan, distinct=True)
    assert loaded != "plan"
    assert all(np.array_equal(a, b) for a, b in zip(plan.slots, loaded.slots, strict=True))
    (tmp_path / "plan.json").write_text(plan.to_json().replace('"format": 1', '"format": 9'))
    with pytest.raises(SkewlessError, match="has format 9"):
        JoinPlan.load(tmp_path / "plan.json")
    for text in ("no json", "[]", "{}", '{"format": 1}'):
        with pytest.raises(SkewlessError, match="not the plan of a join"):
            JoinPlan.from_json(text)
    with pytest.raises(SkewlessError, match="cannot be read"):
        JoinPlan.load(tmp_path / "nothing.json")
    with pytest.raises(SkewlessError, match="cannot be written"):
        plan.save(tmp_path / "nowhere" / "plan.json")
    for nothing in (None, 3):
        with pytest.raises(SkewlessError, match="A plan is kept in a file"):
            JoinPlan.load(nothing)
        with pytest.raises(SkewlessError, match="A plan is kept in a file"):
            plan.save(nothing)


def test_a_plan_shows_itself_in_a_notebook(plan, tables):
    shown = plan._repr_html_()
    for name, value in {
        "join": "left",
        "partitions": "4",
        "rows": f"{plan.sizes.left_rows:,.0f} left, {plan.sizes.right_rows:,.0f} right",
        "fullest task ÷ mean": "{:.2f} plain, {:.2f} with this plan".format(*plan.evenness),
    }.items():
        assert f"<tr><th>{name}</th><td>{value}</td></tr>" in shown
    assert f"<td>{len(plan.slots)}, " in shown
    left, right = (df.withColumnRenamed("k", "<i>") for df in tables)
    plain = learn_join(left.limit(0), right.limit(0), "<i>")._repr_html_()
    assert "<td>&lt;i&gt;</td>" in plain
    assert "<th>left to Spark, because</th>" in plain
    assert "<th>hot keys</th>" not in plain


def test_a_plan_of_other_keys_or_partitions_is_refused(plan, tables):
    left, right = tables
    with pytest.raises(SkewlessError, match=r"for the key k \(string\), and this join is on x = y"):
        join(left, right, [("x", "y")], "left", plan=plan)
    with pytest.raises(SkewlessError, match="for 4 partitions, not 5"):
        join(left, right, "k", "left", plan=plan, workers=5)


def test_a_plan_serves_other_types_of_join_as_far_as_they_allow(plan, tables):
    left, right = tables
    for how in ("full", "inner", "left_semi"):
        assert rows_of(join(left, right, "k", how, plan=plan)) == rows_of(
            left.join(right, "k", how)
        )


def test_without_hot_keys_the_join_is_sparks_own_and_it_says_so(spark):
    left = spark.range(3000).selectExpr("id % 1000 as k", "id as x")
    right = spark.range(1000).selectExpr("id as k", "id as y")
    plan = learn_join(left, right, "k")
    assert not plan.spreads
    assert "because no key is hot enough to matter" in plan.describe()
    for how in ("inner", "full"):
        assert logical(join(left, right, "k", how)) == logical(left.join(right, "k", how))
    assert logical(join(left, right, "k", plan=plan)) == logical(left.join(right, "k"))


@pytest.mark.parametrize(
    ("how", "small"),
    [
        ("inner", "right"),
        ("right", "left"),
        ("left", "right"),
        ("left_anti", "right"),
        ("full", ""),
    ],
)
def test_a_side_that_spark_broadcasts_leaves_the_join_to_spark(spark, tables, how, small):
    left, right = tables
    with settings(spark, spark_sql_autoBroadcastJoinThreshold="1m"):
        plan = learn_join(left, right, "k", how)
        if small:
            assert f"because the {small} side has less than 0.1 MiB, which Spark broadcasts" in str(
                plan.describe()
            )
            assert logical(join(left, right, "k", how)) == logical(left.join(right, "k", how))
        assert ("broadcasts" in plan.plain) == bool(small)


def test_a_sample_finds_the_hot_keys_and_counts_their_few_partners(spark):
    left = spark.range(40_000).selectExpr("if(id % 3 = 0, 0, id % 5000) as k", "id as x")
    right = spark.range(15_000).selectExpr("id % 5000 as k", "id as y")
    plan = learn_join(left, right, "k", workers=8, sample=0.2)
    i = plan.sizes.names.index("0")
    assert plan.stripes_left[i] > 1
    assert plan.sizes.right[i] == 3  # counted, not 0 or 5 or 10 times a few drawn
    assert plan.sizes.left[i] == pytest.approx(13_336, rel=0.1)
    joined = join(left, right, "k", plan=plan)
    counts = [r["count"] for r in joined.groupBy(F.spark_partition_id()).count().collect()]
    assert max(counts) < 1.25 * sum(counts) / 8
    assert sum(counts) == left.join(right, "k").count()


def test_a_semi_join_of_a_key_hot_on_the_right_takes_distinct_keys(spark):
    left, right = two_tables(spark, ["a", "b"], ["c", "c", "c"], COLD)
    joined = join(left, right, "k", "left_semi")
    assert rows_of(joined) == rows_of(left.join(right, "k", "left_semi"))
    pairs = join(left, right, [("k", "k")], "left_anti")
    assert rows_of(pairs) == rows_of(left.join(right, "k", "left_anti"))
    assert learn_join(left, right, "k", "left_semi").distinct


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"result_weight": -1}, "0 or more, not -1"),
        ({"result_weight": float("inf")}, "finite number, not inf"),
        ({"result_weight": "x"}, "weight of a result row is a number"),
        ({"target": 0}, "share above 0"),
        ({"target": float("nan")}, "finite number, not nan"),
        ({"plan": "x"}, "what learn_join gave, not 'x'"),
        ({"plan": "x" * 10_000}, r"what learn_join gave, not 'x+\.\.\.x+'\."),
        ({"repeatable": "no"}, "repeatable is True or False, not 'no'"),
        ({"workers": 0}, "workers"),
        ({"workers": "many"}, "whole number"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(tables, given, says):
    with pytest.raises(SkewlessError, match=says):
        join(*tables, "k", **given)
    with pytest.raises(SkewlessError, match="share of the rows"):
        learn_join(*tables, "k", sample=0)
    with pytest.raises(SkewlessError, match="floating-point numbers are placed by Spark"):
        join(*(df.withColumn("k", F.lit(1.5)) for df in tables), "k", workers=77)


def test_a_side_that_is_a_column_is_no_table(tables):
    with pytest.raises(SkewlessError, match="A Spark DataFrame is needed here, not a Column"):
        join(tables[0], tables[1].k, "k")


def test_any_whole_number_is_a_seed_and_any_share_a_sample(tables):
    assert learn_join(*tables, "k", seed=1 << 80).sizes.left_rows == 500
    with pytest.raises(SkewlessError, match=r"^A seed is a whole number, not 'a'\.$"):
        learn_join(*tables, "k", seed="a")
    assert not learn_join(*tables, "k", sample=1e-300).spreads
