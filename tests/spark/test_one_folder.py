"""A checkpoint folder serves one operator of a query, and any number of frames built one by one."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from skewless import folds
from skewless.spark import balanced_map, group, per_worker
from tests.spark.processors import CountPerKey
from tests.spark.streams import Files, run_again, run_to_end

REFUSED = r"only one operator of a query may have the checkpoint '.*/folder'"


def as_it_is(batches):
    yield from batches


@pytest.fixture
def files(spark, tmp_path):
    made = Files(spark, tmp_path / "in", "w string")
    made.put([("a",), ("b",), ("a",)])
    return made


def mapped(frame, folder):
    return balanced_map(frame, as_it_is, "w string", key="w", workers=2, checkpoint=str(folder))


def counted(frame, folder, scheme="graded", fold=None):
    return group(frame, "w", scheme, 2, checkpoint=str(folder)).fold(fold or folds.count())


def per_state(frame, folder, scheme="key"):
    how = {"checkpoint": str(folder)}
    return per_worker(frame, "w", scheme, 2, CountPerKey(), CountPerKey.SCHEMA, **how)


@pytest.mark.connect
@pytest.mark.parametrize(
    "operators",
    [
        (counted, lambda frame, folder: counted(frame.filter("w > 'a'"), folder)),
        (
            lambda frame, folder: counted(frame, folder, "key"),
            lambda frame, folder: counted(frame, folder, "key", folds.max("w").alias("count")),
        ),
        (per_state, per_state),
        (lambda *given: per_state(*given, "partial"), lambda *given: per_state(*given, "partial")),
        (mapped, lambda frame, folder: counted(frame, folder).select("w")),
        (mapped, mapped),
    ],
    ids=["learning", "not learning", "state", "learning state", "of two kinds", "maps"],
)
def test_two_operators_of_a_query_with_one_folder_are_refused_before_it_starts(
    files, tmp_path, operators
):
    one, other = (make(files.stream(), tmp_path / "folder") for make in operators)
    with pytest.raises(AnalysisException, match=REFUSED):
        _ = one.unionByName(other, allowMissingColumns=True).schema


@pytest.mark.connect
def test_an_operator_on_top_of_another_with_its_folder_is_refused(files, tmp_path):
    below = mapped(files.stream(), tmp_path / "folder")
    with pytest.raises(AnalysisException, match=REFUSED):
        _ = counted(below, tmp_path / "folder").schema
    assert counted(below, tmp_path / "folder" / "of its own").columns == ["w", "count"]


@pytest.mark.connect
def test_one_operator_may_be_in_a_query_twice(files, tmp_path):
    rows = mapped(files.stream(), tmp_path / "folder")
    twice = rows.union(rows.filter("w = 'a'").select(F.upper("w")))
    _, seen = run_to_end(twice, tmp_path / "folder", "append")
    assert sorted(row["w"] for row in seen) == ["A", "A", "a", "a", "b"]


@pytest.mark.connect
def test_a_result_may_be_joined_with_itself(files, tmp_path):
    counts = counted(files.stream(), tmp_path / "folder", "key")
    joined = counts.join(counts.withColumnRenamed("count", "again"), "w")
    assert joined.columns == ["w", "count", "again"]


@pytest.mark.parametrize("schemes", [("graded", "graded", "partial"), ("key", "key", "key")])
def test_a_folder_serves_frames_that_are_built_again_and_restarts(files, tmp_path, schemes):
    folder = tmp_path / "folder"
    counted(files.stream(), folder, schemes[-1], folds.max("w"))  # never started
    seen = []
    for scheme in schemes:
        files.put([("c",)])
        counts = counted(files.stream(), folder, scheme)
        seen += [tuple(row) for row in run_again(counts, folder)]
    files.put([("c",)])  # the same frame once more, as after a failure
    seen += [tuple(row) for row in run_again(counts, folder)]
    assert sorted(seen) == [("a", 2), ("b", 1), ("c", 1), ("c", 2), ("c", 3), ("c", 4)]


def test_what_a_batch_holds_may_be_grouped_again(files, tmp_path):
    folder, seen = tmp_path / "folder", []

    def write(changed, batch):
        both = changed.union(changed)
        seen.extend(group(both, "w", "graded", 2).fold(folds.sum("count").alias("n")).collect())

    writer = counted(files.stream(), folder).writeStream.outputMode("update").foreachBatch(write)
    writer = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert sorted(map(tuple, seen)) == [("a", 4), ("b", 2)]
