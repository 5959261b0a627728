"""State per worker: on the worker's own partition, and kept from batch to batch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.spark import per_worker
from skewless.spark.input.surrogates import surrogate
from tests.spark.processors import CountPerKey, NamelessCountPerKey
from tests.spark.streams import Files, run_to_end
from tests.spark.test_route import kernel_route, zipf_words

WORKERS, PARTITIONS = 4, 5


@pytest.fixture
def five_partitions(spark):
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, PARTITIONS)
    yield
    spark.conf.set(name, before)


@pytest.fixture
def files(spark, tmp_path):
    return Files(spark, tmp_path / "in", "w string")


def test_a_workers_state_lies_on_its_own_partition_from_batch_to_batch(
    files, tmp_path, five_partitions
):
    batches = [[w for w in zipf_words(400, seed) if w] for seed in (1, 2)]
    for words in batches:
        files.put([(word,) for word in words])
    checkpoint = tmp_path / "checkpoint"

    def start(workers=WORKERS):
        return per_worker(
            files.stream(), "w", "porc", workers, CountPerKey(), CountPerKey.SCHEMA,
            seed=2, checkpoint=str(checkpoint),
        )  # fmt: skip

    _, seen = run_to_end(start(), checkpoint, "update")
    expected = Counter()
    for words in batches:
        keys = identities(pa.array(words))
        expected.update(zip(kernel_route("porc", keys, WORKERS, seed=2), words, strict=True))
    found = Counter()
    for row in seen:
        found[row.worker, row.w] = max(found[row.worker, row.w], row["count"])
    assert found == expected
    assert {(r.worker, r["at"]) for r in seen} == {(i, i) for i in range(WORKERS)}
    with pytest.raises(SkewlessError, match="4 workers, seed 2, state per worker, but this"):
        start(workers=3)


def test_state_is_found_again_after_the_number_of_shuffle_partitions_was_changed(
    spark, files, tmp_path, five_partitions
):
    for partitions in (PARTITIONS, PARTITIONS + 2):
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        files.put([("a",), ("b",), ("c",)])
        counts = per_worker(files.stream(), "w", "key", 3, CountPerKey(), CountPerKey.SCHEMA)
        seen = []  # by foreachBatch, since Spark's memory sink does not go on in mode 'update'
        writer = counts.writeStream.outputMode("update").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.foreachBatch(lambda rows, _, to=seen: to.extend(rows.collect()))
        writer.start().awaitTermination()
    assert {(row.w, row["count"]) for row in seen} == {("a", 2), ("b", 2), ("c", 2)}
    assert all(row.worker == row["at"] for row in seen)


def test_a_processor_may_leave_its_columns_without_names(files, tmp_path, five_partitions):
    files.put([("a",), ("a",), ("b",)])
    checkpoint = str(tmp_path / "checkpoint")
    rows = per_worker(
        files.stream(), "w", "partial", 2, NamelessCountPerKey(), CountPerKey.SCHEMA,
        seed=np.int64(2), checkpoint=checkpoint,
    )  # fmt: skip
    _, seen = run_to_end(rows, checkpoint, "update")
    assert sum(row["count"] for row in seen) == 3
    assert {row.w for row in seen} == {"a", "b"}


def test_the_surrogates_land_where_spark_hashes_them(spark):
    workers = [*range(200), 10**6, 2**31 - 1]
    frame = spark.createDataFrame([(w, surrogate(w)) for w in workers], "w int, surrogate int")
    assert frame.filter(F.hash("surrogate") == F.col("w")).count() == len(workers)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("w", "key", 9), "9 workers need a state partition each"),
        (("v", "key", 2), "no column 'v'"),
        (("w", "potc", 2), "remembers the worker"),
        (("w", "key", 0), "at least 1, not 0"),
    ],
)
def test_mistakes_are_one_clear_sentence(files, arguments, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        per_worker(files.stream(), *arguments, CountPerKey(), CountPerKey.SCHEMA)


@pytest.mark.parametrize("processor", [None, CountPerKey, lambda rows: rows])
def test_what_is_no_processor_is_one_sentence(files, five_partitions, processor):
    with pytest.raises(SkewlessError, match="A processor is an object of your own subclass"):
        per_worker(files.stream(), "w", "key", 2, processor, CountPerKey.SCHEMA)


def test_an_output_mode_that_is_none_is_one_sentence(files, five_partitions):
    for mode in (None, "all"):
        with pytest.raises(SkewlessError, match=f"no output mode '{mode}'"):
            per_worker(
                files.stream(), "w", "key", 2, CountPerKey(), CountPerKey.SCHEMA, output_mode=mode
            )


def test_a_batch_has_no_state(spark):
    with pytest.raises(SkewlessError, match="belongs to a stream"):
        per_worker(spark.range(3), "id", "key", 2, CountPerKey(), CountPerKey.SCHEMA)
