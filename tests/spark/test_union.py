"""Behind a union a task's partition is not its worker: its number travels with the rows."""

from __future__ import annotations

import pandas as pd
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.schemes import scheme_of
from skewless.spark import Observer, balanced_map, group, per_worker
from skewless.spark.adapt.plans import stream_folder
from skewless.spark.adapt.watch import Watch
from tests.spark.processors import CountPerKey
from tests.spark.streams import Files, eventually, run_to_end

DDL = "w string"


@pytest.fixture
def files(spark, tmp_path):
    made = Files(spark, tmp_path / "in", DDL)
    for _ in range(2):
        made.put([(f"w{n % 7}",) for n in range(50)])
    return made


def as_it_is(batches):
    yield from batches


def test_a_map_behind_a_union_learns_and_is_observed(files, tmp_path):
    checkpoint, observer = tmp_path / "checkpoint", Observer()
    mapped = balanced_map(
        files.stream(), as_it_is, DDL, key="w", workers=2,
        checkpoint=str(checkpoint), observer=observer,
    )  # fmt: skip
    both = files.stream().repartition(5).union(mapped)
    _, seen = run_to_end(both, checkpoint, "append")
    assert len(seen) == 200
    records = eventually(lambda: len(observer.records()) == 2 and observer.records())
    assert [sum(record.loads) for record in records] == [50, 50]
    assert all(min(record.loads) > 0 for record in records)
    mapping = stream_folder(str(checkpoint), scheme_of("proactive"), 2, 0)
    eventually(lambda: 2 in mapping._numbers())


def test_folds_behind_a_union_are_observed_by_worker(spark):
    df = spark.range(0, 90, 1, 2).select((F.col("id") % 9).alias("k"))
    alone, behind = Observer(), Observer()
    group(df, "k", "key", 3, observer=alone).fold(folds.count()).collect()
    # The workers' partials are in the stage of the union itself only if nothing merges them there.
    grouping = group(df, "k", "key", 3, observer=behind)
    bound = grouping.bind(folds.count())
    watch = Watch("key", 3, None, behind)
    partials = watch.results(grouping.partials(bound, watch))
    spark.range(4).selectExpr("id as k0", "id as p0").repartition(4).union(partials).collect()
    (expected,), (found,) = alone.records(), behind.records()
    assert found.loads == expected.loads
    assert max(found.loads) > min(found.loads)


class Quiet(CountPerKey):
    """Says nothing of its first batch, in Spark's shortest way."""

    def handleInputRows(self, key, rows, timerValues):
        first = next(iter(self.counts.iterator()), None) is None
        for frame in super().handleInputRows(key, rows, timerValues):
            yield pd.DataFrame() if first else frame


def test_a_processor_behind_a_union_learns_and_may_yield_nothing(spark, files, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    counted = per_worker(
        files.stream(), "w", "partial", 2, Quiet(), CountPerKey.SCHEMA, checkpoint=str(checkpoint)
    )
    other = files.stream().selectExpr("-1 as worker", "-1 as at", "w", "0L as count")
    _, seen = run_to_end(other.repartition(4).union(counted), checkpoint, "update")
    assert {row.worker for row in seen} == {-1, 0, 1}
    # Of the second batch alone: what it has counted in both.
    assert sum(row["count"] for row in seen) == 100
    folder = stream_folder(str(checkpoint), scheme_of("partial"), 2, 0)
    learned = eventually(lambda: 2 in folder._numbers() and folder.used(2))
    assert learned.loads.sum() == 100
