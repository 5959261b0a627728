"""Learning a plan on Spark: the tasks' reports make the plan that the simulator's sources make."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.schemes import Feedback, scheme_of
from skewless.spark import group, learn, route

HOT = 200
AWARE = "distribution-aware:theta=0.002"


def hot_words(spark):
    """200 hot words of 30 rows each, and 4,000 words that come once; in 3 partitions."""
    number = F.when(F.col("id") < 30 * HOT, F.col("id") % HOT).otherwise(F.col("id"))
    rows = spark.range(0, 30 * HOT + 4000, 1, 3)
    return rows.select("id", F.concat(F.lit("wörd-"), number.cast("string")).alias("w"))


@pytest.fixture(scope="module")
def words(spark):
    return hot_words(spark)


@pytest.fixture(scope="module")
def plan(words):
    return learn(words, "w", AWARE, 7, sample=1, seed=3)


def arrays_of(state):
    if isinstance(state, tuple):
        return [array for part in state for array in arrays_of(part)]
    return [state.tolist()]


def kernel_route(scheme, plan, keys):
    out, ones = np.empty(keys.size, np.int32), np.ones(keys.size)
    scheme.route(plan, scheme.tally(plan, 0), keys, ones, ones, out)
    return out


def test_the_plan_is_the_one_that_as_many_sources_of_the_simulator_make(words, plan):
    scheme = scheme_of(AWARE)
    first = scheme.plan(7, 3)
    rows = words.withColumn("at", F.spark_partition_id()).collect()
    report = None
    for task in range(3):
        tally = scheme.tally(first, task)
        keys = identities(pa.array([r.w for r in rows if r["at"] == task]))
        ones, out = np.ones(keys.size), np.empty(keys.size, np.int32)
        scheme.route(first, tally, keys, ones, ones, out)
        mine = scheme.report(first, tally)
        report = mine if report is None else scheme.merge(report, mine)
    assert arrays_of(plan.arrays) == arrays_of(scheme.replan(first, report, Feedback.none(7)))


def test_a_plan_with_200_hot_keys_routes_as_the_kernel_does_without_python(words, plan):
    hot = identities(pa.array([f"wörd-{i}" for i in range(HOT)]))
    assert set(plan.arrays.head_keys.tolist()) == set(hot.tolist())
    routed = route(words, "w", plan)
    rows = routed.collect()
    expected = kernel_route(
        scheme_of(AWARE), plan.arrays, identities(pa.array([r.w for r in rows]))
    )
    assert [r.worker for r in rows] == expected.tolist()
    loads = np.bincount(expected)
    assert loads.max() <= 1.05 * loads.mean()


@pytest.mark.parametrize("spec", [AWARE, "d-choices", "w-choices", "dynamic"])
def test_results_under_a_learned_plan_are_those_of_a_plain_group_by(words, spec):
    learned = learn(words, "w", spec, 7, sample=0.5)
    counted = group(words, "w", learned).fold(folds.count(), folds.sum("id"))
    plain = words.groupBy("w").agg(F.count("*"), F.sum("id"))
    assert sorted(map(tuple, counted.collect())) == sorted(map(tuple, plain.collect()))


def test_all_rows_of_a_key_meet_under_a_learned_plan(words, plan):
    together = group(words, "w", plan).apply(
        lambda rows: pa.table({"w": rows["w"][:1], "rows": [rows.num_rows]}), "w string, rows long"
    )
    counts = {r.w: r["rows"] for r in together.collect()}
    assert counts == {r.w: r["count"] for r in words.groupBy("w").count().collect()}


@pytest.mark.parametrize("spec", ["d-choices", "w-choices"])
def test_sources_know_the_head_from_the_first_row_and_start_from_even_loads(spark, spec):
    rows = spark.range(0, 2000, 1, 2).select(F.when(F.col("id") % 2 == 0, 0).otherwise(F.col("id")))
    rows = rows.toDF("k")
    learned = learn(rows, "k", spec, 10, sample=1)
    hot = int(identities(np.zeros(1, np.int64))[0])
    assert hot in learned.arrays.head_keys.tolist()
    assert learned.arrays.start.tolist() == [0] * 10
    few = spark.range(0, 8, 1, 1).select(F.lit(0).cast("long").alias("k"))
    assert len({r.worker for r in route(few, "k", learned).collect()}) > 2


def test_the_same_sample_gives_the_same_plan(words):
    plans = [learn(words, "w", "distribution-aware:theta=0.05", 4, sample=0.2) for _ in range(2)]
    assert arrays_of(plans[0].arrays) == arrays_of(plans[1].arrays)
    assert plans[0].arrays.epoch[0] == 1


@pytest.mark.parametrize(
    ("scheme", "options", "sentence"),
    [
        (AWARE, {}, "nothing to learn from: the sample of 0.1 of the DataFrame's rows is empty"),
        (AWARE, {"sample": 1}, "nothing to learn from: the DataFrame has no rows"),
        (AWARE, {"sample": 0}, r"share of the rows in \(0, 1\], not 0"),
        (AWARE, {"sample": 2}, r"share of the rows in \(0, 1\], not 2"),
        ("key", {}, "Scheme 'key' learns nothing from a sample of the keys"),
        ("graded", {}, "Scheme 'graded' learns nothing from a sample of the keys"),
        ("off-greedy", {}, "must see every key before"),
    ],
)
def test_mistakes_are_one_clear_sentence(spark, scheme, options, sentence):
    empty = spark.range(0)
    with pytest.raises(SkewlessError, match=sentence):
        learn(empty, "id", scheme, 4, **options)


def test_a_number_of_workers_that_is_none_is_refused(spark):
    with pytest.raises(SkewlessError, match=r"whole number, not 2\.5"):
        learn(spark.range(3), "id", AWARE, 2.5)
    with pytest.raises(SkewlessError, match="at least 1, not 0"):
        learn(spark.range(3), "id", AWARE, 0)


def test_a_stream_is_refused(spark):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(SkewlessError, match="learned from a batch DataFrame"):
        learn(stream, "value", AWARE, 4)
