"""Costs of rows and speeds of workers: where rows go follows them, and results stay exact."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.folds.numbers import Sum
from skewless.schemes import scheme_of
from skewless.spark import group, learn, repartition, route
from skewless.spark.adapt.plans import stream_folder
from tests.spark.streams import run_again


@pytest.fixture(scope="module")
def rows(spark):
    """A third of the rows are of one key; those of odd keys cost 50 times as much as the others."""
    key = F.when(F.col("id") % 3 == 0, 0).otherwise(F.xxhash64("id") % 500)
    costs = F.when(F.col("key") % 2 == 0, 0.001).otherwise(0.05)
    df = spark.range(0, 60_000, 1, 2).select(key.alias("key"), "id", F.lit("a").alias("text"))
    return df.withColumn("ms", costs).localCheckpoint()


def work(routed, capacities):
    """What each worker has to do, over its speed."""
    sums = routed.groupBy("worker").agg(F.sum("ms")).collect()
    loads = np.zeros(len(capacities))
    for worker, ms in sums:
        loads[worker] = ms
    return loads / np.array(capacities)


def uneven(loads):
    return loads.max() / loads.mean()


def test_costs_are_evened_out_and_rows_are_not(rows):
    by_cost = route(rows, "key", "graded", 4, cost="ms")
    assert uneven(work(by_cost, [1] * 4)) < 1.05
    messages = Counter(row.worker for row in by_cost.select("worker").collect())
    by_count = route(rows, "key", "graded", 4)
    assert uneven(work(by_count, [1] * 4)) > 1.05
    assert max(messages.values()) > 1.02 * 60_000 / 4


@pytest.mark.parametrize("unit", [1e-6, 1e6, 1e308])
def test_the_unit_of_costs_does_not_matter(rows, unit):
    in_unit = route(rows, "key", "graded", 4, cost=F.col("ms") * unit).select("id", "worker")
    plain = route(rows, "key", "graded", 4, cost="ms").select("id", "worker")
    same = in_unit.join(plain, ["id", "worker"]).count()
    assert same > 0.98 * 60_000  # rounding decides a tie here and there


def test_faster_workers_get_more(rows):
    capacities = [1, 1, 3, 3]
    assert uneven(work(route(rows, "key", cost="ms", capacities=capacities), capacities)) < 1.05
    sizes = repartition(rows, "key", "graded", capacities=capacities, column="worker")
    counts = Counter(row.worker for row in sizes.collect())
    assert counts[2] == pytest.approx(3 * counts[0], rel=0.05)


def test_a_plan_learns_costs_and_capacities(rows):
    capacities = [1, 3]
    plan = learn(rows, "key", "graded-planned", 2, sample=1.0, cost="ms", capacities=capacities)
    assert uneven(work(route(rows, "key", plan, salt="id"), capacities)) < 1.1
    with pytest.raises(SkewlessError, match="give cost= to learn"):
        route(rows, "key", plan, salt="id", cost="ms")
    with pytest.raises(SkewlessError, match="give capacities= to learn"):
        route(rows, "key", plan, salt="id", capacities=capacities)


def test_a_plan_weighs_what_tasks_learned_by_what_it_cost(spark):
    """Rows of one task are a thousand times as dear as those of the other."""
    dear = "if(id % 3 = 0, 0, 100 + xxhash64(id) % 50)"
    cheap = "if(id % 2 = 0, 1, 200 + xxhash64(id) % 50)"
    keys = f"if(id < 20000, {dear}, {cheap}) as key"
    rows = spark.range(0, 40_000, 1, 2).selectExpr("id", keys, "if(id < 20000, 1000D, 1D) as ms")
    plan = learn(rows, "key", "graded-planned", 4, sample=1.0, cost="ms")
    assert uneven(work(route(rows, "key", plan, salt="id"), [1] * 4)) < 1.1


@pytest.mark.parametrize("cost", [1e308, 1e-308])
def test_a_plan_is_learned_from_costs_of_any_size(rows, cost):
    plan = learn(rows, "key", "graded-planned", 4, sample=1.0, cost=F.lit(cost))
    routed = route(rows.withColumn("ms", F.lit(1.0)), "key", plan, salt="id")
    assert uneven(work(routed, [1] * 4)) < 1.1


def test_folds_are_exact_whatever_rows_cost(rows):
    strange = (
        F.when(F.col("id") % 5 == 0, F.lit(None))
        .when(F.col("id") % 7 == 0, float("nan"))
        .when(F.col("id") % 11 == 0, float("inf"))
        .when(F.col("id") % 13 == 0, -1.0)
        .otherwise(F.col("ms"))
    )
    plain = sorted(map(tuple, rows.groupBy("key").agg(F.count("*"), F.sum("id")).collect()))
    for cost in ("ms", strange, F.lit(0)):
        grouped = group(rows, "key", cost=cost, capacities=[1, 2, 2])
        counted = grouped.fold(folds.count(), folds.sum("id"))
        assert sorted(map(tuple, counted.collect())) == plain
        assert counted.columns == ["key", "count", "sum(id)"]


class OnWorker(Sum):
    """The sum over the rows that one worker gets."""

    def __init__(self, column, worker):
        super().__init__(column)
        self.worker, self.here, self.name = worker, None, f"worker {worker}"

    def on_worker(self, worker):
        mine = copy.copy(self)
        mine.here = worker
        return mine

    def reduce_groups(self, groups, columns):
        share = 1 if self.here == self.worker else 0
        return super().reduce_groups(groups, [pc.multiply(columns[0], share)])


def test_a_stream_heeds_both_and_goes_on_with_other_capacities(spark, tmp_path):
    source, checkpoint = tmp_path / "in", str(tmp_path / "checkpoint")

    def add(number):
        part = spark.range(number * 6000, (number + 1) * 6000, 1, 1)
        # A key that only its cost makes hot: what it costs is as much as all others do.
        rows = part.selectExpr("if(id % 50 = 0, 0, 1 + id % 7) as key", "id")
        rows = rows.selectExpr("*", "if(key = 0, 50L, 1L) as cost")
        rows.write.mode("append").parquet(str(source))

    def run(capacities):
        stream = spark.readStream.schema("key long, id long, cost long").parquet(str(source))
        grouped = group(stream, "key", cost="cost", capacities=capacities, checkpoint=checkpoint)
        made = grouped.fold(folds.count(), *(OnWorker("cost", n) for n in range(2)))
        for row in run_again(made, checkpoint):
            newest[row["key"]] = list(row)[1:]
        return np.sum(list(newest.values()), axis=0)

    newest = {}
    done = [np.zeros(3)]
    for number, capacities in enumerate([[1, 1], [1, 3], [1, 3], None, [1, 1, 1]]):
        add(number)
        done.append(run(capacities))
    assert done[-1][0] == 5 * 6000
    equal, faster = np.diff(done, axis=0)[:2, 1:]
    assert equal[1] == pytest.approx(equal[0], rel=0.05)
    assert faster[1] == pytest.approx(3 * faster[0], rel=0.05)
    settings = sorted(p.name for p in (tmp_path / "checkpoint/skewless/settings").iterdir())
    assert settings == ["1", "2", "3"]


def test_a_job_of_which_spark_names_no_batch_heeds_capacities_too(tmp_path):
    folder = stream_folder(str(tmp_path), scheme_of("graded"), 2, 0, np.array([1.0, 3.0]))
    rates = folder.plan_of(None).rates
    assert rates[1] == 3 * rates[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cost": "no such"}, "no column 'no such'"),
        ({"cost": 5}, "a column's name or a Column"),
        ({"cost": "text"}, "of type string"),
        ({"cost": "ms", "scheme": "partial"}, "knows nothing of costs"),
        ({"capacities": [1, 2], "scheme": "key"}, "knows nothing of costs"),
        ({"capacities": [1, 2], "workers": 3}, "2 capacities for 3 workers"),
        ({"capacities": []}, "a list of numbers above 0"),
        ({"capacities": [1, 0]}, "a list of numbers above 0"),
        ({"capacities": [1, float("nan")]}, "a list of numbers above 0"),
        ({"capacities": [1e-300, 1e300]}, "a factor of 1,000,000 at most"),
        ({"capacities": 3}, "a list of numbers above 0"),
        ({"capacities": {1, 2}}, "a list of numbers above 0"),
        ({"capacities": {1: 5, 2: 5}}, "a list of numbers above 0"),
        ({"capacities": "ab"}, "a list of numbers above 0"),
        ({"capacities": "12"}, "a list of numbers above 0"),
        ({"capacities": ["1", "2"]}, "a list of numbers above 0"),
        ({"capacities": [1, 10**400]}, "a list of numbers above 0"),
        ({"capacities": [1e308, 1e308]}, "a list of numbers above 0"),
    ],
)
def test_mistakes_are_one_sentence(rows, options, says):
    with pytest.raises(SkewlessError, match=says):
        group(rows, "key", **options)
    with pytest.raises(SkewlessError, match=says):
        repartition(rows, "key", **options)
