"""How the keys of a join are counted: on the driver or in Spark, and how much is read."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless.spark import join, learn_join
from skewless.spark.join import counting, expected, samples
from skewless.spark.join.drawn import Drawn, seen_often
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

    counting_arrow = samples.as_arrow
    monkeypatch.setattr(samples, "as_arrow", noted)
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
    driver, turned, in_spark = (
        counting._read(sides, names, 5, shares, 3, small, larger)[0]
        for small, larger in ((True, 0), (True, 1), (False, 0))
    )
    assert seen(turned) == seen(driver)
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
    monkeypatch.setattr(samples, "MOST_OF_A_TASK", 5000)
    assert learn_join(left, right, "k", workers=4).to_json() == whole.to_json()
    assert jobs == [10_200, 10_200]  # as many as a task may hand over are no more than that
    monkeypatch.setattr(samples, "MOST_OF_A_TASK", 4999)
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


def hot_and_partners(spark):
    """Tables whose hot keys 0, 2 … 18 of the first have few partners in the second."""
    return (
        spark.range(40_000).selectExpr("if(id % 2 = 0, id % 20, id % 5000) as k", "id as x"),
        spark.range(20_000).selectExpr("if(id < 100, id % 10, id % 5000) as k", "id as y"),
    )


def assert_partners_are_true(plan, counted, partners):
    """What the plan says of the ten hot keys, and how many rows these have."""
    true = Counter(row.k for row in partners.collect())
    hot = [i for i, name in enumerate(plan.sizes.names) if int(name) % 2 == 0 and int(name) < 20]
    assert len(hot) == 10
    names = [int(plan.sizes.names[i]) for i in hot]
    assert [counted[i] for i in hot] == [true[name] for name in names]
    return sum(true[name] for name in names)


@on_driver
@pytest.mark.connect
@pytest.mark.parametrize("turned", [False, True])
def test_each_side_is_read_once_and_few_partners_are_counted_exactly(spark, turned, jobs):
    hot, partners = hot_and_partners(spark)
    left, right = (partners, hot) if turned else (hot, partners)
    plan = learn_join(left, right, "k", workers=8, sample=0.3)
    assert len(jobs) == 2
    sizes = plan.sizes
    assert_partners_are_true(plan, sizes.left if turned else sizes.right, partners)


@pytest.mark.connect
@pytest.mark.parametrize("most", [1 << 20, 0])
def test_partners_that_are_many_are_not_handed_over_but_counted(spark, monkeypatch, most, jobs):
    hot, partners = hot_and_partners(spark)
    monkeypatch.setattr(samples, "MOST_PARTNERS", 50)
    monkeypatch.setattr(samples, "_MOST_ROWS", most)
    plan = learn_join(hot, partners, "k", workers=8, sample=0.3)
    rows = assert_partners_are_true(plan, plan.sizes.right, partners)
    assert jobs[-1] == (rows if most and SPARK >= (4, 0) else 10)
    if SPARK >= (4, 0):
        assert len(jobs) == 3
        assert jobs[1] == pytest.approx(6000, abs=300)  # what was drawn, and hardly more
    assert plan.sizes.right_rows == pytest.approx(20_000, rel=0.05)


@pytest.mark.connect
def test_keys_that_only_the_smaller_side_shows_to_be_hot_are_counted_once_more(spark, jobs):
    hot, partners = hot_and_partners(spark)
    larger = partners.unionAll(partners.selectExpr("k + 20000", "y")).unionAll(
        partners.selectExpr("k + 40000", "y")
    )
    plan = learn_join(hot, larger, "k", workers=8, sample=0.3)
    rows = assert_partners_are_true(plan, plan.sizes.right, partners)
    if SPARK >= (4, 0):
        assert jobs[2:] == [rows]


@on_driver
def test_many_rows_of_hot_keys_leave_the_sample_on_the_driver(spark, monkeypatch, jobs):
    left = spark.range(0, 40_000, 1, 16).selectExpr("id % 10 as k", "id as x")
    keys = "if(id % 2 = 0, id div 2 % 10, id + 10) as k"  # ten hot ones, the others once each
    right = spark.range(0, 20_000, 1, 4).selectExpr(keys, "id as y")
    monkeypatch.setattr(samples, "MOST_PARTNERS", 50)
    # A task draws 1500 of its 5000 rows, and half of all have a key that is asked for.
    monkeypatch.setattr(samples, "MOST_OF_A_TASK", 2000)
    plan = learn_join(left, right, "k", workers=4, sample=0.3)
    assert len(jobs) == 2
    assert sum(jobs) == pytest.approx(18_000, rel=0.05)
    assert set(plan.sizes.names[:10]) == set(map(str, range(10)))
    assert plan.sizes.right[:10].tolist() == pytest.approx([1000] * 10, rel=0.25)


@on_driver
@pytest.mark.parametrize("too_many", ["gathered", "gathered_with_partners"])
def test_whichever_side_is_too_large_for_the_driver_is_counted_in_spark(
    spark, monkeypatch, too_many, jobs
):
    hot, partners = hot_and_partners(spark)
    few_enough = learn_join(hot, partners, "k", workers=8, sample=0.3)
    jobs.clear()
    job = getattr(samples, too_many)

    def limited(*given):
        with monkeypatch.context() as patched:
            patched.setattr(samples, "MOST_OF_A_TASK", 20)
            return job(*given)

    monkeypatch.setattr(samples, too_many, limited)
    plan = learn_join(hot, partners, "k", workers=8, sample=0.3)
    assert plan.to_json() == few_enough.to_json()
    assert len(jobs) == (3 if too_many == "gathered" else 4)


@on_driver
def test_null_keys_are_nobodys_partners(spark):
    left = spark.range(30_000).selectExpr("if(id % 2 = 0, null, id % 3) as k", "id as x")
    right = spark.range(9000).selectExpr("if(id % 3 = 0, id % 2, id + 10) as k", "id as y")
    plan = learn_join(left, right, "k", "full", workers=4, sample=0.5)
    assert plan.sizes.left_nulls == pytest.approx(15_000, rel=0.05)
    found = dict(zip(plan.sizes.names, plan.sizes.right, strict=True))
    assert found == {"0": 1500.0, "1": 1500.0, "2": 0.0}


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


@pytest.mark.connect
def test_both_sides_are_asked_for_their_bytes_at_once(spark, monkeypatch):
    few, many = spark.range(10), spark.range(100)
    asked = []
    words = expected._words
    monkeypatch.setattr(expected, "_words", lambda *a, **k: asked.append(a) or words(*a, **k))
    assert expected.expected_of(few, many)[:2] == (80, 800)
    assert expected.expected_of(many, few)[:2] == (800, 80)
    assert expected.expected_of(few, few)[:2] == (80, 80)
    assert len(asked) == 3


@pytest.mark.connect
def test_a_hint_on_a_side_is_seen_when_its_bytes_are_asked_for(spark):
    few, many = spark.range(10), spark.range(100)
    assert not expected.expected_of(few, many).hinted
    for hint in ("broadcast", "merge", "shuffle_hash", "shuffle_replicate_nl"):
        assert expected.expected_of(few, many.hint(hint).select("id")).hinted
        assert expected.expected_of(few.hint(hint).select("id"), many).hinted


@pytest.mark.connect
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("select * from range(10) where false", "select * from range(1000)"),
        ("select * from range(1000)", "select 1 as id where 1 = 0"),
        ("select * from range(1000) where cast(id as string) != '\n:- x, sizeInBytes=3.0 B'",
         "select * from range(10) union all select * from range(5)"),
    ],
)  # fmt: skip
def test_the_bytes_of_both_sides_are_those_of_each(spark, left, right):
    sides = spark.sql(left), spark.sql(right)
    alone = tuple(expected._bytes(expected._words("{df}", df=df)) for df in sides)
    assert np.isfinite(alone).all()
    assert expected.expected_of(*sides)[:2] == alone


def test_what_spark_does_not_say_is_taken_for_endless():
    assert expected._bytes("== Optimized Logical Plan ==\nRelation") == np.inf
    assert expected._bytes("Range, Statistics(sizeInBytes=1.5 KiB)") == 1536


def test_keys_seen_often_are_the_largest_without_nulls_and_each_identity_once():
    rows = [(7, 1)] * 6 + [(7, 2)] * 5 + [(8, 3)] * 4 + [(9, 4)] * 3 + [(42, 42)] * 20
    columns = zip(*rows, strict=True)
    table = pa.table(dict(zip(("identity", "hash"), columns, strict=True)))
    table = table.append_column("null", pa.array([row == (42, 42) for row in rows]))
    identities, hashes = seen_often(table, 4)
    assert (identities.tolist(), hashes.tolist()) == ([7, 8], [1, 3])
    assert [part.tolist() for part in seen_often(table, 30)] == [[], []]


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
