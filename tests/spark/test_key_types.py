"""Keys of every type by which Spark groups: ours makes the same groups, or says why it cannot."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.spark import balanced_map, group, learn, per_worker, repartition, route
from tests.spark.own_folds import Longest
from tests.spark.processors import CountPerKey
from tests.spark.streams import Files, run_to_end

# SQL of a key, of a number n in 0 … 5.
KEYS = {
    "struct": "if(n = 4, null, named_struct('a', n % 2, 'b.c', if(n = 3, null, 'x')))",
    "floats": "if(n = 5, null, array(if(n < 2, -0.0D, 0.0D), if(n = 2, null, double('NaN'))))",
    "texts": "array_repeat('a, b', int(n % 3))",
    "map": "if(n % 2 = 0, map('x', n div 3, 'y', 7), map('y', 7, 'x', n div 3))",
    "maps": "array(map(n % 2, map('a', -0.0D)), null)",
    "struct of map": "named_struct('m', if(n = 1, null, map(n % 3, array(n % 2))))",
    "months": "make_ym_interval(n % 2, if(n = 3, null, n % 3))",
    "years": "cast(make_ym_interval(n % 2, 0) as interval year)",
    "calendar": "make_interval(0, n % 2, 0, -(n % 3), 0, 0, n * 0.5)",
    "days": "make_dt_interval(n % 2, 0, 0, n % 3)",
    "nothing": "null",
}


@pytest.fixture(scope="module")
def rows(spark):
    return spark.range(0, 60, 1, 3).selectExpr("id % 6 as n", "id", "cast(id as string) as s")


def as_text(frame, *more):
    """Rows as text that is equal where the values are, whatever the order of a map's entries."""
    names = ("k", "count", *more)
    return sorted(map(repr, frame.select(*(F.col(n).cast("string") for n in names)).collect()))


@pytest.mark.parametrize("case", KEYS)
def test_groups_are_those_of_spark(rows, case):
    keyed = rows.withColumn("k", F.expr(KEYS[case]))
    plain = keyed.groupBy("k").agg(F.count(F.lit(1)).alias("count"))
    own = group(keyed, "k", "partial", 3).fold(folds.count(), Longest())
    natively = group(keyed, "k", "key", 3).fold(folds.count())
    for ours in (own, natively):
        assert ours.schema["k"].dataType == plain.schema["k"].dataType
        assert as_text(ours) == as_text(plain)


@pytest.mark.parametrize("case", ["struct", "floats", "map", "maps", "days"])
def test_a_function_of_whole_groups_gets_each_key_once(rows, case):
    keyed = rows.withColumn("k", F.expr(KEYS[case]))
    counted = group(keyed, "k", "key", 3).apply(
        lambda table: table.select(["n"]).slice(0, 1).append_column("c", [[table.num_rows]]),
        "n long, c long",
    )
    plain = keyed.groupBy("k").count()
    assert sorted(r.c for r in counted.collect()) == sorted(r["count"] for r in plain.collect())


def test_keys_of_inner_structure_keep_their_state_on_a_stream(spark, tmp_path):
    ddl = "k struct<a: array<string>, m: map<string, int>>, s string"
    files = Files(spark, tmp_path / "in", ddl)
    one = {"a": ["a, b"], "m": [("x", 1), ("y", None)]}
    same = {"a": ["a, b"], "m": [("y", None), ("x", 1)]}
    other = {"a": ["a", "b"], "m": [("x", 1), ("y", None)]}
    for _ in range(2):
        files.put([(one, "x"), (same, "xx"), (other, "x"), (None, "x"), ({"a": [None]}, None)])
    stream = group(files.stream(), "k", "shuffle", 2).fold(folds.count(), Longest())
    _, seen = run_to_end(stream, tmp_path / "checkpoint", "update")
    assert sorted(row["count"] for row in seen) == [1, 1, 1, 2, 2, 2, 2, 4]


COLLATED = {
    "text": lambda: F.collate("w", "UTF8_LCASE"),
    "in a struct": lambda: F.struct(F.collate("w", "UNICODE_CI").alias("x")),
    "in an array": lambda: F.array(F.collate("w", "UTF8_LCASE")),
    "in a map": lambda: F.create_map(F.lit(1), F.collate("w", "UTF8_BINARY_RTRIM")),
}


@pytest.mark.parametrize("case", COLLATED)
def test_texts_that_a_collation_takes_for_equal_are_no_key(spark, tmp_path, case):
    key = COLLATED[case]().alias("k")
    df = spark.createDataFrame([("a",), ("A",)], "w string")
    stream = Files(spark, tmp_path / "in", "w string").stream()
    doors = [
        lambda: route(df, key, "modulo", 4),
        lambda: repartition(df, key, "universal", 4),
        lambda: learn(df, key, "distribution-aware", 4),
        lambda: group(df, key, "key", 4),
        lambda: per_worker(stream, key, "key", 2, CountPerKey(), CountPerKey.SCHEMA),
    ]
    for door in doors:
        with pytest.raises(SkewlessError, match=r"Column 'k' has the collation \w+"):
            door()


def test_the_cost_of_a_row_may_depend_on_collated_text(spark):
    df = spark.createDataFrame([("a",), ("A",)], "w string")
    df = df.select(F.collate("w", "UTF8_LCASE").alias("w"))
    ours = balanced_map(df, lambda batches: batches, "w string", key="w", scheme="shuffle")
    assert sorted(row.w for row in ours.collect()) == ["A", "a"]


@pytest.mark.parametrize("case", ["map", "maps", "months", "calendar"])
def test_equal_keys_have_one_worker(rows, case):
    keyed = rows.withColumn("k", F.expr(KEYS[case]))
    routed = route(keyed, "k", "universal", 5)
    workers = routed.groupBy("k").agg(F.count_distinct("worker").alias("w"))
    assert {row.w for row in workers.select("w").collect()} == {1}
