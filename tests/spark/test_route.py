"""Routing on Spark: the worker of a row is the one that the kernel and its slow twin name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, identities
from skewless.schemes import SCHEMES, RouteTable, scheme_of
from skewless.schemes.key import KeyGrouping, KeyPlan
from skewless.spark import group, repartition, route
from skewless.spark.input.checks import make_plan
from skewless.spark.input.version import CHECKSUMS, HAS_CHECKSUMS, check_version
from skewless.spark.routing.columns import lay_out, worker_of
from tests import sparks


def zipf_words(count, seed=1):
    ranks = np.random.default_rng(seed).zipf(1.4, count) % 300
    return [None if r == 7 else "" if r == 8 else f"wörd-{r}" for r in ranks.tolist()]


@pytest.fixture(scope="module")
def words():
    return zipf_words(3000)


@pytest.fixture(scope="module")
def one_source(spark, words):
    rows = list(enumerate(words))
    return spark.createDataFrame(rows, "i int, w string").coalesce(1).sortWithinPartitions("i")


def kernel_route(spec, keys, workers, seed=0, source=0):
    scheme = scheme_of(spec)
    plan = scheme.plan(workers, seed)
    tally = scheme.reserve(scheme.tally(plan, source), keys.size)
    out = np.empty(keys.size, np.int32)
    scheme.route(plan, tally, keys, np.ones(keys.size), np.arange(float(keys.size)), out)
    return out.tolist()


@pytest.mark.connect
@pytest.mark.parametrize("spec", ["key", "partial", "partial:choices=4", "shuffle"])
@pytest.mark.parametrize("workers", [1, 7])
def test_spark_routes_as_the_kernel_does(one_source, words, spec, workers):
    if spec == "partial:choices=4" and workers == 1:
        workers = 4
    routed = one_source.transform(route, "w", spec, workers, seed=5)
    rows = routed.collect()  # in the order in which they were routed
    keys = identities(pa.array([words[row.i] for row in rows]))
    assert [row.worker for row in rows] == kernel_route(spec, keys, workers, seed=5)


@pytest.mark.connect
def test_every_task_is_a_source_of_its_own(spark):
    rows = spark.range(0, 400, 1, 4).withColumn("at", F.spark_partition_id())
    routed = route(rows, "id", "partial", 3).collect()
    for task in range(4):
        mine = [r for r in routed if r["at"] == task]
        keys = identities(pa.array([r.id for r in mine], pa.int64()))
        assert [r.worker for r in mine] == kernel_route("partial", keys, 3, source=task)


def test_shuffle_starts_each_source_elsewhere(spark):
    rows = spark.range(0, 8, 1, 4).withColumn("at", F.spark_partition_id())
    firsts = {}
    for r in route(rows, "id", "shuffle", 4).collect():
        firsts.setdefault(r["at"], r.worker)
    assert sorted(firsts.values()) == [0, 1, 2, 3]


@pytest.mark.connect
def test_a_key_may_be_a_name_a_column_or_several(spark):
    rows = [("a", 1, math.nan), (None, 2, -0.0), ("é", None, 0.0)]
    df = spark.createDataFrame(rows, "w string, n int, x double").coalesce(1)
    ways = {
        "name": ("w", [pa.array(["a", None, "é"])]),
        "column": (F.upper("w"), [pa.array(["A", None, "É"])]),
        "several": (
            ["w", F.col("n"), "x"],
            [
                pa.array(["a", None, "é"]),
                pa.array([1, 2, None], pa.int32()),
                pa.array([math.nan, -0.0, 0.0], from_pandas=False),
            ],
        ),
    }
    for key, arrays in ways.values():
        found = [r.worker for r in route(df, key, "key", 50, seed=2).collect()]
        assert found == kernel_route("key", identities(*arrays), 50, seed=2)


@pytest.mark.connect
def test_repartition_places_rows_on_their_worker_and_drops_the_number(spark, one_source):
    for spec in ("key", "partial"):
        placed = repartition(one_source, "w", spec, 5, column="to")
        pairs = placed.select("to", F.spark_partition_id().alias("at")).distinct().collect()
        assert {(r.to, r["at"]) for r in pairs} == {(i, i) for i in range(5)}
        assert repartition(one_source, "w", spec, 5).columns == ["i", "w"]
    own = one_source.withColumnRenamed("i", "worker")
    assert repartition(own, "w", "partial", 5).columns == ["worker", "w"]


def test_loads_of_partial_stay_even_where_keys_are_skewed(one_source):
    loads = [
        r["count"] for r in route(one_source, "w", "shuffle", 6).groupBy("worker").count().collect()
    ]
    assert max(loads) - min(loads) <= 1
    partial = route(one_source, "w", "partial:choices=6", 6).groupBy("worker").count().collect()
    assert max(r["count"] for r in partial) - min(r["count"] for r in partial) <= 1


def table_worker(table, key):
    """The slow twin: a dictionary, and arithmetic on Python's whole numbers."""
    if key in table.heads:
        assert not table.splits
        return int(table.head_workers[table.heads.tolist().index(key)])
    first = int(identities_of_long(key, int(table.seeds[0])))
    return int(table.buckets[((first >> 33) * table.buckets.size) >> 31])


def identities_of_long(key, seed):
    import xxhash

    return xxhash.xxh64_intdigest(key.to_bytes(8, "little"), seed=seed)


@pytest.mark.connect
@pytest.mark.parametrize("heads", [0, 1, 3, 700])
def test_a_route_table_with_hot_keys_is_the_same_in_a_column(spark, heads):
    random = np.random.default_rng(heads)
    keys = np.unique(identities(pa.array([f"k{i}" for i in range(2000)])))
    table = RouteTable(
        choice_seeds(3),
        3,
        random.integers(0, 9, 40).astype(np.int32),
        random.permutation(keys)[:heads],
        np.arange(heads + 1),
        random.integers(0, 9, heads).astype(np.int32),
    )
    frame = spark.createDataFrame([(int(k),) for k in keys.view(np.int64)], "k long").coalesce(1)
    found = [r.worker for r in frame.select(worker_of(F.col("k"), table).alias("worker")).collect()]
    assert found == [table_worker(table, key) for key in keys.tolist()]


def test_hot_keys_are_laid_out_without_collisions():
    keys = identities(np.arange(5000))
    table = lay_out(keys, np.arange(5000, dtype=np.int32))
    assert sorted(table.values[table.values >= 0].tolist()) == list(range(5000))
    assert table.keys.size <= 4 * 5000


def found_head(table, key):
    """The value that the expression finds for a key, in Python's whole numbers; -1 for none."""
    mask, group = table.keys.size - 1, key & (table.displacements.size - 1)
    slot = ((key >> 20) + int(table.displacements[group]) * (key >> 42 | 1)) & mask
    return int(table.values[slot]) if int(table.keys.view(np.uint64)[slot]) == key else -1


def test_any_set_of_few_hot_keys_is_laid_out():
    random = np.random.default_rng(1)
    for _ in range(50):
        for count in (1, 2, 3, 4, 8, 16, 64):
            keys = random.integers(0, 1 << 64, count, np.uint64)
            table = lay_out(keys, np.arange(count, dtype=np.int32))
            assert [found_head(table, key) for key in keys.tolist()] == list(range(count))
            assert table.keys.size <= 16 * count


def test_hot_keys_that_agree_in_the_low_bits_are_laid_out_in_a_larger_table():
    keys = np.array([0, 1 << 50, 1 << 30], np.uint64)
    table = lay_out(keys, np.arange(3, dtype=np.int32))
    assert [found_head(table, key) for key in keys.tolist()] == [0, 1, 2]


def test_more_hot_keys_than_there_is_room_for_are_refused():
    count = (1 << 21) + 1
    with pytest.raises(SkewlessError, match=f"The {count} hot keys of a plan find no room"):
        lay_out(np.arange(count, dtype=np.uint64), np.arange(count, dtype=np.int32))


def test_hot_keys_named_twice_are_refused():
    with pytest.raises(SkewlessError, match="not distinct"):
        lay_out(np.array([5, 5], np.uint64), np.array([0, 1], np.int32))


@dataclass(frozen=True)
class LearnsFirst(KeyGrouping):
    name: ClassVar[str] = "learns-first"
    learns: ClassVar[Any] = "prefix"


def test_a_scheme_that_learns_takes_a_learned_plan(spark):
    scheme = LearnsFirst()
    df = spark.range(0, 20, 1, 1)
    with pytest.raises(SkewlessError, match="pass the plan that"):
        route(df, "id", scheme, 4)
    plan = KeyPlan(np.array([4]), choice_seeds(9), np.array([9]))
    keys = identities(np.arange(20))
    found = [r.worker for r in route(df, "id", scheme, 4, plan=plan).collect()]
    assert found == kernel_route("key", keys, 4, seed=9)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_plan_for_other_workers_is_refused(name):
    scheme = scheme_of(name)
    plan = scheme.plan(8, 0)
    assert make_plan(scheme, 8, 0, plan) is plan
    with pytest.raises(SkewlessError, match="The plan is for 8 workers, not 4"):
        make_plan(scheme, 4, 0, plan)


def test_a_plan_of_another_scheme_is_refused(spark):
    with pytest.raises(SkewlessError, match="no plan of scheme 'partial'"):
        route(spark.range(3), "id", "partial", 4, plan=scheme_of("d-choices").plan(4, 0))


def test_any_kind_of_whole_number_counts_workers(spark):
    df = spark.range(6)
    two = np.int64(2)
    assert route(df, "id", "key", two).agg(F.max("worker")).first()[0] == 1
    assert repartition(df, "id", "key", two, column="to").count() == 6
    assert group(df, "id", "partial", two).fold(folds.count()).count() == 6


@pytest.mark.connect
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("word", "key", 4), r"no column 'word'; did you mean 'words'\? Valid: n, words, worker\."),
        (("words", "key", 0), "at least 1, not 0"),
        (("words", "key", 2.5), "whole number, not 2.5"),
        (("words", "key", True), "whole number, not True"),
        (("words", "kee", 4), "no scheme 'kee'; did you mean 'key'"),
        (("words", "potc", 4), "remembers the worker of every key"),
        (("words", "off-greedy", 4), "must see every key before"),
        (([], "key", 4), "at least one column"),
        ((3, "key", 4), "name, a Column or a list of them, not 3"),
        (("words", "key", 4), "already has a column 'worker'"),
    ],
)
def test_mistakes_are_one_clear_sentence_before_any_job(spark, arguments, sentence):
    df = spark.createDataFrame([("a", 1, 2)], "words string, n int, worker int")
    with pytest.raises(SkewlessError, match=sentence):
        route(df, *arguments)


@pytest.mark.connect
def test_an_expression_over_an_unknown_column_is_refused(spark):
    with pytest.raises(SkewlessError, match="cannot be computed from the columns id"):
        route(spark.range(3), F.upper("nothing"), "key", 2)


@pytest.mark.connect
@pytest.mark.parametrize("way", [route, repartition])
def test_a_time_window_is_no_key_before_it_is_a_column(spark, way):
    times = F.timestamp_seconds(F.col("id") * 600)
    df = spark.range(6).select(F.when(F.col("id") > 0, times).alias("t"), "id")
    window = F.window("t", "10 minutes", "5 minutes")
    windows = df.withColumn("window", window)
    ends = F.hour(F.session_window("t", "5 minutes")["end"])
    for frame in (df, windows, df.select("id", "t", F.lit(1).alias("ID"), F.lit(2).alias("a`b"))):
        for key in (window, window.alias("w"), window["start"], ends, [F.col("t"), window]):
            with pytest.raises(SkewlessError, match="make it a column with withColumn first"):
                way(frame, key, "key", 2)
    for key in ("window", F.col("window").alias("w"), ["id", F.col("window")], F.col("window.end")):
        assert way(windows, key, "key", 2).count() == 10


@pytest.mark.connect
def test_a_key_is_computed_from_one_row(spark):
    df = spark.range(6).withColumn("a", F.array("id", "id"))
    for key in (F.sum("id"), F.explode("a"), ["id", F.max("id") + 1]):
        with pytest.raises(SkewlessError, match="not computed from one row alone"):
            route(df, key, "key", 2)
        with pytest.raises(SkewlessError, match="not computed from one row alone"):
            group(df, key, "key", 2)
    with pytest.raises(SkewlessError, match=r"The salt .* is not computed from one row alone"):
        route(df, "id", "key", 2, salt=F.sum("id"))
    ranks = F.sum("id").over(Window.partitionBy("a"))
    assert route(df, ranks, "key", 2).count() == 6


def test_what_spark_does_not_group_by_is_no_key(spark):
    df = spark.range(3).select(F.array(F.parse_json(F.lit("1"))).alias("v"))
    with pytest.raises(SkewlessError, match="cannot be a key"):
        route(df, "v", "key", 2)


def test_something_else_than_a_dataframe_is_refused():
    class RDD:
        pass

    for given, said in (([1, 2], "a list"), (None, "None"), (1, "an int"), (RDD(), "an RDD")):
        with pytest.raises(SkewlessError, match=f"A Spark DataFrame is needed here, not {said}:"):
            route(given, "id", "key", 2)  # type: ignore[arg-type]


def test_an_old_spark_is_refused():
    check_version("3.5.0", "PySpark")
    check_version("10.0.1", "PySpark")
    with pytest.raises(SkewlessError, match=r"PySpark is version 3.4.1, .* needs 3.5 or later"):
        check_version("3.4.1", "PySpark")


@pytest.fixture(params=CHECKSUMS)
def without_checksums(spark, request):
    """A Spark that does not notice when a retried task sends its rows elsewhere."""
    if sparks.SPARK < HAS_CHECKSUMS:  # none of its settings would let it
        yield request.param
        return
    before = spark.conf.get(request.param)
    spark.conf.set(request.param, "false")
    yield request.param
    spark.conf.set(request.param, before)


def test_a_batch_is_routed_by_its_rows_alone_where_spark_compares_no_checksums(
    spark, without_checksums
):
    def routes(start, end, step):  # no sort: Spark would drop it for one that follows
        rows = spark.range(start, end, step, 1).selectExpr("id", "id % 7 as k")
        return sorted(route(rows, "k", "partial", 4).collect())

    assert routes(0, 3000, 1) == routes(2999, -1, -1)


SPARSE = {
    "columns": "if(n = 1, null, 7) as clicks, if(n = 1, 7, null) as views",
    "struct": "if(n = 1, named_struct('a', null, 'b', 7), named_struct('a', 7, 'b', null)) as x",
    "array": "if(n = 1, array(null, 7), array(7, null)) as x",
    "map": "map('a', if(n = 1, array(null, 7), array(7, null))) as x",
}


@pytest.mark.parametrize("kind", SPARSE)
def test_rows_that_differ_only_in_where_a_null_is_do_not_change_places(
    spark, without_checksums, kind
):
    # Spark's hash skips nulls, so the two rows have the same.
    def routes(numbers):
        rows = spark.sql(f"select 'k' as k, {SPARSE[kind]} from values {numbers} as t(n)")
        return sorted(map(str, route(rows.coalesce(1), "k", "shuffle", 2).collect()))

    assert routes("(1), (2)") == routes("(2), (1)")


def test_two_columns_of_one_name_are_refused_where_spark_compares_no_checksums(
    spark, without_checksums
):
    rows = spark.sql("select 1 as k, 2 as x, 3 as x")
    with pytest.raises(SkewlessError, match="several columns called 'x'"):
        route(rows, "k", "partial", 4)


def test_a_stream_is_not_routed_by_its_order_where_spark_compares_no_checksums(
    spark, without_checksums
):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(SkewlessError, match="checksums of its shuffles") as refused:
        repartition(stream, "value", "partial", 4)
    if sparks.SPARK >= HAS_CHECKSUMS:
        assert without_checksums in str(refused.value)
