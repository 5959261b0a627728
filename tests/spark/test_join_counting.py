"""How the keys of a join are counted: on the driver or in Spark, and how much is read."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless.spark import join, learn_join
from skewless.spark.join import counting
from skewless.spark.join.drawn import Drawn
from skewless.spark.join.slots import places
from tests.spark.joins import rows_of, settings
from tests.sparks import SPARK

KEYS = {
    "text": "if(id % 11 = 0, null, if(id % 3 = 0, 'hot', cast(id % 700 as string)))",
    "double": "if(id % 7 = 0, null, cast(id % 90 as double) / 4)",
    "struct": "struct(id % 50 as a, if(id % 2 = 0, null, id % 3) as b)",
}


on_driver = pytest.mark.skipif(SPARK < (4, 0), reason="rows come one by one: counted in Spark")


@pytest.fixture(autouse=True)
def no_broadcast(spark):
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        yield


@pytest.fixture
def jobs(monkeypatch):
    """What came to the driver: the rows of each time."""
    came = []

    def noted(df):
        table = counting_arrow(df)
        came.append(table.num_rows)
        return table

    counting_arrow = counting.as_arrow
    monkeypatch.setattr(counting, "as_arrow", noted)
    return came


def sides_of(spark, *kinds, rows=(6000, 1500)):
    """Two tables of the same key columns, in several partitions."""
    columns = [f"{KEYS[kind]} as k{i}" for i, kind in enumerate(kinds)]
    return [spark.range(0, count, 1, 4).selectExpr(*columns) for count in rows]


def seen(drawn):
    """All that a sample tells, its keys in an order of their own."""
    keys = drawn.keys
    each = zip(keys.identities, keys.hashes, keys.names, keys.places, keys.left, keys.right,
               strict=True)  # fmt: skip
    sums = [drawn.left.tolist(), drawn.right.tolist(), drawn.pairs.tolist()]
    return sorted(each), sums, drawn.left_nulls, drawn.right_nulls, drawn.rows


@on_driver
@pytest.mark.parametrize("kinds", [["text"], ["double"], ["text", "double"], ["struct"]])
@pytest.mark.parametrize("shares", [(1.0, 1.0), (0.3, 0.3), (0.2, 1.0)])
def test_rows_are_counted_on_the_driver_as_in_spark(spark, kinds, shares):
    sides = sides_of(spark, *kinds)
    names = [f"k{i}" for i in range(len(kinds))]
    driver, in_spark = (
        counting._read(sides, names, 5, shares, 3, small=small) for small in (True, False)
    )
    if kinds == ["struct"]:  # ones that differ in where their nulls are hash alike: one key there
        _, *driver_sums = seen(driver)
        _, *in_spark_sums = seen(in_spark)
        assert driver_sums[0][:2] == in_spark_sums[0][:2]
        assert driver_sums[1:] == in_spark_sums[1:]
    else:
        assert seen(driver) == seen(in_spark)
        assert len(driver.keys.names) > 5


@on_driver
def test_rows_that_are_too_many_for_the_driver_are_counted_in_spark(spark, monkeypatch, jobs):
    # Spark takes what it explodes for as small as what it was made of.
    left = spark.range(0, 200, 1, 2).select(
        F.when(F.col("id") % 2 == 0, 0).otherwise(F.col("id")).alias("k"),
        F.explode(F.sequence(F.lit(1), F.lit(50))).alias("x"),
    )
    right = spark.range(200).selectExpr("id as k", "id as y")
    whole = learn_join(left, right, "k", workers=4)
    assert jobs == [10_200]
    monkeypatch.setattr(counting, "MOST_OF_A_TASK", 5000)
    assert learn_join(left, right, "k", workers=4).to_json() == whole.to_json()
    assert jobs == [10_200, 10_200]  # as many as a task may hand over are no more than that
    monkeypatch.setattr(counting, "MOST_OF_A_TASK", 4999)
    assert learn_join(left, right, "k", workers=4).sizes.left.tolist() == whole.sizes.left.tolist()
    assert len(jobs) == 4
    assert jobs[3] < 300


@pytest.mark.connect
def test_a_small_side_is_read_whole_and_not_once_more(spark, monkeypatch, jobs):
    left = spark.range(60_000).selectExpr("if(id % 3 = 0, 0, id % 500) as k", "id as x")
    right = spark.range(1500).selectExpr("id % 500 as k", "id as y")
    monkeypatch.setattr(counting, "_WANTED", 100_000)
    monkeypatch.setattr(counting, "_ENOUGH", 1000)
    plan = learn_join(left, right, "k", workers=8)
    assert len(jobs) == 1
    assert plan.sizes.right_rows == 1500
    assert set(plan.sizes.right) == {3.0}
    assert plan.sizes.left[0] == pytest.approx(20_080, rel=0.1)
    assert plan.sizes.left_rows == pytest.approx(60_000, rel=0.05)
    found, expected = (
        rows_of(df.groupBy("k").agg(F.count("*"), F.sum("x"), F.sum("y")))
        for df in (join(left, right, "k", "right", workers=8), left.join(right, "k", "right"))
    )
    assert found == expected


def test_a_sample_that_turns_out_too_small_is_drawn_again(spark, monkeypatch, jobs):
    rows = spark.range(0, 2_000_000, 1, 4)
    left = rows.where("id % 1000 = 0").selectExpr("id % 3 as k", "id as x")
    right = spark.range(30).selectExpr("id as k", "id as y")
    plan = learn_join(left, right, "k", workers=4)
    assert len(jobs) == 2  # Spark expects all two million of them
    assert plan.sizes.left_rows == 2000
    assert plan.sizes.right_rows == 30


@pytest.mark.connect
@pytest.mark.parametrize("most", [1 << 20, 0])
def test_few_partners_are_counted_exactly_however_many_there_are(spark, monkeypatch, most, jobs):
    left = spark.range(40_000).selectExpr("if(id % 2 = 0, id % 20, id % 5000) as k", "id as x")
    right = spark.range(20_000).selectExpr("if(id < 100, id % 10, id % 5000) as k", "id as y")
    monkeypatch.setattr(counting, "_MOST_ROWS", most)
    plan = learn_join(left, right, "k", workers=8, sample=0.3)
    true = Counter(row.k for row in right.collect())
    hot = [i for i, name in enumerate(plan.sizes.names) if int(name) % 2 == 0 and int(name) < 20]
    assert len(hot) == 10
    assert [plan.sizes.right[i] for i in hot] == [true[int(plan.sizes.names[i])] for i in hot]
    counted = sum(true[int(plan.sizes.names[i])] for i in hot)
    assert jobs[1] == (counted if most and SPARK >= (4, 0) else len(hot))


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ((0.0, 0.0), (1.0, 1.0)),
        ((1 << 20, 1 << 20), (1.0, 1.0)),
        ((7 << 20, 1 << 20), (0.125, 1.0)),
        ((4 << 20, 4 << 20), (0.125, 0.125)),
        ((1 << 40, 5 << 20), (0.01, 0.01)),
        ((1 << 40, 5), (0.01, 1.0)),
        ((np.inf, np.inf), (0.01, 0.01)),
    ],
)
def test_more_is_drawn_of_smaller_tables(sizes, shares):
    assert counting._shares(*sizes) == shares


def test_keys_that_only_one_hash_takes_for_alike_stay_apart():
    alike = {"left": [1] * 6 + [0] * 5, "null": [False] * 11, "identity": [7] * 11,
             "hash": [1] * 6 + [2] * 5, "name": ["a"] * 6 + ["b"] * 5}  # fmt: skip
    keys = Drawn.of_rows(pa.table(alike), 4, (1.0, 1.0)).keys
    assert sorted(zip(keys.names, keys.left, keys.right, strict=True)) == [
        ("a", 6.0, 0.0),
        ("b", 0.0, 5.0),
    ]


def test_the_places_of_many_keys_are_those_of_each():
    hashes = np.array([-(2**31), -5, 0, 42, 2**31 - 1])
    for slot in (np.zeros(1, np.int32), np.array([-7], np.int32)):
        each = [int(places(int(h), slot, 13)[0]) for h in hashes]
        assert places(hashes, slot, 13).tolist() == each
