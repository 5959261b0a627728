"""Planned graded choices on Spark: hot keys split inside the JVM, by a salt that the user names."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.schemes import scheme_of
from skewless.spark import Observer, group, learn, repartition, route
from skewless.spark.adapt.plans import stream_folder
from skewless.spark.routing.columns import worker_of
from tests.naive import graded_planned as naive
from tests.spark.streams import Files, eventually, run_to_end

PLANNED, PLANNED_SOON = "graded-planned", "graded-planned:learn=2000"
WORKERS, ROWS = 7, 6000


def skewed_words():
    """Half of the rows are one word, a quarter null, the rest 500 words."""
    rare = np.random.default_rng(1).integers(0, 500, ROWS)
    return ["hot" if i % 2 else None if i % 4 else f"wörd-{rare[i]}" for i in range(ROWS)]


@pytest.fixture(scope="module")
def rows(spark):
    numbered = [(i, word, i % 10 / 10) for i, word in enumerate(skewed_words())]
    return spark.createDataFrame(numbered, "i long, w string, x double").repartition(3).cache()


@pytest.fixture(scope="module")
def plan(rows):
    return learn(rows, "w", PLANNED, WORKERS, sample=1, seed=3)


def kernel_route(plan, keys, times):
    scheme, out, plan = plan.scheme, np.empty(keys.size, np.int32), plan.arrays
    scheme.route(plan, scheme.tally(plan, 0), keys, np.ones(keys.size), times, out)
    return out.tolist()


@pytest.mark.connect
def test_column_kernel_and_twin_split_hot_keys_alike(rows, plan):
    words = skewed_words()
    keys = identities(pa.array(words))
    source_and_time = [F.lit(0).cast("long"), F.col("i").cast("double")]
    routed = route(rows, "w", plan, salt=source_and_time)
    found = [r.worker for r in routed.select("i", "worker").orderBy("i").collect()]
    assert found == kernel_route(plan, keys, np.arange(float(ROWS)))
    buckets, slots = naive.built(keys.tolist(), WORKERS, 3, 0.01, [1.0] * WORKERS)
    assert found == naive.deployed(keys.tolist(), buckets, slots, WORKERS, 3)
    assert len({w for w, word in zip(found, words, strict=True) if word == "hot"}) >= 4
    assert len({w for w, word in zip(found, words, strict=True) if word == "wörd-9"}) == 1


@pytest.mark.connect
def test_the_other_columns_are_the_salt_and_the_work_is_even(rows, plan):
    placed = repartition(rows, "w", plan)
    assert placed.columns == ["i", "w", "x"]
    at = F.spark_partition_id().alias("at")
    pairs = {(r.i, r["at"]) for r in placed.select("i", at).collect()}
    loads = np.bincount([worker for _, worker in pairs], minlength=WORKERS)
    # Three quarters are placed by salts: 4 standard deviations of that beside the target.
    assert loads.max() <= 1.01 * ROWS / WORKERS + 4 * (0.75 * ROWS / WORKERS) ** 0.5
    named = route(rows, "w", plan, salt=["i", F.col("x")])
    assert {(r.i, r.worker) for r in named.select("i", "worker").collect()} == pairs


def test_a_plan_that_splits_runs_without_python_and_says_so(rows, plan, capsys):
    placed = repartition(rows, "w", plan)
    placed.explain()
    assert "Python" not in capsys.readouterr().out
    described = group(rows, "w", plan).describe(folds.count())
    assert "in a Column expression that splits hot keys by the hash of i, x." in described


@pytest.mark.connect
def test_results_are_those_of_a_plain_group_by(rows, plan):
    counted = group(rows, "w", plan, salt="i").fold(folds.count(), folds.sum("i"), folds.max("x"))
    plain = rows.groupBy("w").agg(F.count("*"), F.sum("i"), F.max("x"))
    assert set(map(tuple, counted.collect())) == set(map(tuple, plain.collect()))


def test_a_plan_that_splits_nothing_needs_no_salt(spark):
    even = spark.range(0, 2000, 1, 2)
    plan = learn(even, "id", PLANNED, 4, sample=1)
    assert not plan.scheme.table(plan.arrays).splits
    assert route(even, "id", plan).count() == 2000
    with pytest.raises(SkewlessError, match="no column 'x'"):
        route(even, "id", plan, salt="x")


def test_maps_are_left_out_of_the_salt_and_refused_as_one(rows, plan):
    pairs = F.array(F.create_map("i", "i")).alias("m")
    with_map = rows.select("w", pairs, F.col("x").alias("odd `name`"))
    described = group(with_map, "w", plan).describe(folds.count())
    assert "by the hash of odd `name`." in described
    assert repartition(with_map, "w", plan).count() == ROWS
    with pytest.raises(SkewlessError, match=r"'m' of type .* cannot be a salt"):
        route(with_map, "w", plan, salt="m")


@pytest.mark.connect
@pytest.mark.parametrize(
    ("salt", "sentence"),
    [
        (None, r"beside the key no column does: name a column .* salt=, or use .* 'graded'"),
        ("nothing", "no column 'nothing'"),
        ([], "A salt needs at least one column"),
        (7, "A salt is a column's name, a Column or a list of them, not 7"),
    ],
)
def test_mistakes_are_one_clear_sentence_before_any_job(rows, plan, salt, sentence):
    only = rows.select("w")
    for way in (route, repartition, group):
        with pytest.raises(SkewlessError, match=sentence):
            way(only, "w", plan, salt=salt)


def test_a_table_that_splits_is_no_expression_without_a_salt(spark, plan):
    with pytest.raises(SkewlessError, match="needs a salt"):
        worker_of(F.col("i"), plan.scheme.table(plan.arrays))


def test_a_salt_over_an_unknown_column_is_refused(rows, plan):
    with pytest.raises(SkewlessError, match=r"The salt .* cannot be computed from the columns i"):
        route(rows, "w", plan, salt=F.upper("nothing"))


@pytest.mark.parametrize("learned", [True, False])
def test_a_stream_splits_by_a_plan_or_learns_one_while_it_runs(spark, tmp_path, plan, learned):
    files, words = Files(spark, tmp_path / "in", "w string, i long"), skewed_words()
    checkpoint, observer = tmp_path / "checkpoint", Observer()
    way = (plan,) if learned else (PLANNED_SOON, WORKERS)
    kept = {} if learned else {"checkpoint": str(checkpoint)}
    folder = stream_folder(str(checkpoint), scheme_of(PLANNED_SOON), WORKERS, 0)
    halves = [slice(0, ROWS)] if learned else [slice(0, 3000), slice(3000, ROWS)]
    for batch, half in enumerate(halves):
        files.put([(word, i) for i, word in enumerate(words)][half])
        grouping = group(files.stream(), "w", *way, observer=observer, **kept)
        assert ("splits hot keys by the hash of i" in grouping.describe(folds.count())) == learned
        _, seen = run_to_end(grouping.fold(folds.count()), checkpoint, "complete")
        if not learned:
            eventually(lambda number=batch + 1: number in folder._numbers())
    assert {r.w: r["count"] for r in seen[-len(set(words)) :]} == dict(Counter(words))
    last = eventually(lambda: observer.records()[len(halves) - 1 :])[0]
    assert max(last.loads) <= 1.3 * sum(last.loads) / WORKERS
