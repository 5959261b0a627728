"""balanced_map: the rows of a plain mapInArrow, errors with their key, learning in a stream."""

from __future__ import annotations

import time
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from skewless.errors import SkewlessError
from skewless.schemes import scheme_of
from skewless.spark import Observer, balanced_map, release
from skewless.spark.adapt.plans import stream_folder
from tests.spark.streams import Files, eventually, run_to_end

PROACTIVE = scheme_of("proactive")
SITES = "site string, n long"


@pytest.fixture(scope="module")
def pages(spark):
    site = F.concat(F.lit("s"), F.col("id") % 7)
    rows = spark.range(0, 900, 1, 2).select(site.alias("site"), F.col("id").alias("n"))
    return rows.cache()


def twice_the_even(batches):
    """Drops odd numbers, gives the even ones twice."""
    for batch in batches:
        kept = batch.filter(pc.equal(pc.bit_wise_and(batch["n"], 1), 0))
        yield kept
        yield kept


def as_it_is(batches):
    yield from batches


def rows_of(frame):
    return Counter(map(str, frame.collect()))


@pytest.mark.connect
@pytest.mark.parametrize("scheme", ["proactive", "shuffle", "partial"])
def test_the_rows_are_those_of_map_in_arrow(pages, scheme):
    plain = pages.mapInArrow(twice_the_even, SITES)
    result = balanced_map(pages, twice_the_even, "site", 3, SITES, scheme=scheme, share=0.3)
    assert result.schema == plain.schema
    assert rows_of(result) == rows_of(plain)
    release(result)
    assert result.count() == 900


def test_any_columns_and_keys_will_do(spark):
    rows = spark.range(0, 60, 1, 2).select(
        F.when(F.col("id") % 3 > 0, F.col("id") % 5).alias("a b"),
        F.col("id").cast("double").alias("a-b"),
        F.create_map(F.lit("x"), F.col("id")).alias("tags!"),
        F.array(F.struct(F.lit(1.5).alias("v"), F.lit(None).cast("string").alias("w"))).alias("l"),
        F.col("id").alias("identity"),
        F.lit("r").alias("key"),
    )

    outer = [f"o{i}" for i in range(7)]

    def look(batches):
        for batch in batches:
            said = pa.array([str(batch.schema)] * batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns, said], names=outer)

    fields = [StructField(o, f.dataType) for o, f in zip(outer, rows.schema.fields, strict=False)]
    schema = StructType(fields).add("o6", "string")
    keys = [F.col("identity") % 4, "key"]
    seen = rows_of(balanced_map(rows, look, keys, 2, schema, share=0.5))
    assert seen == rows_of(rows.mapInArrow(look, schema))
    assert len(seen) == 60


@pytest.mark.parametrize("share", [1e-9, 0.999999])
def test_a_wave_may_be_empty(pages, share):
    result = balanced_map(pages, as_it_is, "site", 3, SITES, share=share)
    assert rows_of(result) == rows_of(pages)
    assert balanced_map(pages.limit(0), as_it_is, "site", 3, SITES).collect() == []


def placed_and_slow(batches):
    """One site takes 8 ms a row, the others next to nothing; says on which partition it ran."""
    from pyspark import TaskContext

    at = TaskContext.get().partitionId()
    for batch in batches:
        time.sleep(0.008 * pc.sum(pc.equal(batch["site"], "s0")).as_py())
        yield batch.append_column("at", pa.array([at] * batch.num_rows, pa.int32()))


def test_the_second_wave_evens_out_what_the_first_taught(spark):
    # Every third row is dear, so that round robin over 3 workers gives all of them to one.
    site = F.concat(F.lit("s"), F.col("id") % 3 * (1 + F.col("id") % 5))
    rows = spark.range(0, 360, 1, 1).select(site.alias("site"), F.col("id").alias("n"))
    result = balanced_map(rows, placed_and_slow, "site", 3, SITES + ", at int", share=0.3)
    first, dear = [0, 0, 0], [0, 0, 0]
    for row in result.filter("site = 's0'").collect():
        (first if row["at"] < 3 else dear)[row["at"] % 3] += 1
    assert sum(first) + sum(dear) == 120
    assert max(dear) - min(dear) <= 2
    release(result)


def raises_at(sites, each_s=0.0):
    def work(batches):
        for batch in batches:
            time.sleep(each_s * batch.num_rows)
            if set(batch["site"].to_pylist()) & set(sites):
                raise ValueError("no such page")
            yield batch

    return work


@pytest.mark.connect
def test_an_exception_comes_with_the_key_and_the_line_that_raised_it(pages):
    slow = raises_at(["s3"], each_s=0.002)
    with pytest.raises(PythonException) as caught:
        balanced_map(pages, slow, "site", 2, SITES, share=0.2)
    said = str(caught.value)
    assert "ValueError: no such page" in said
    assert 'raise ValueError("no such page")' in said
    assert "was at work on rows with the key 's3'." in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"function": None}, "takes a function from batches to batches"),
        ({"share": 0.0}, "between 0 and 1, both excluded, not 0.0"),
        ({"share": 1.0}, "between 0 and 1, both excluded, not 1.0"),
        ({"workers": 0}, "number of workers must be at least 1, not 0"),
        ({"cost_key": "page"}, "There is no column 'page'"),
        ({"scheme": "distribution-aware"}, "balanced_map learns costs: use 'proactive'"),
        ({"scheme": "off-greedy"}, "for simulation only"),
        ({"checkpoint": "somewhere"}, "no stream: leave checkpoint= out"),
        ({"observer": Observer()}, "no stream: leave observer= out"),
    ],
)
def test_a_mistake_is_one_sentence_before_any_job(pages, options, says):
    chosen = {"function": as_it_is, "cost_key": "site", "workers": 2, "schema": SITES, **options}
    with pytest.raises(SkewlessError, match=says):
        balanced_map(pages, **chosen)


def test_a_stream_learns_costs_from_batch_to_batch_and_over_a_restart(spark, tmp_path):
    files, checkpoint = Files(spark, tmp_path / "in", SITES), tmp_path / "checkpoint"
    folder = stream_folder(str(checkpoint), PROACTIVE, 3, 0)
    observer, known = Observer(), []
    for batch in range(3):
        files.put([(f"s{i % 3}", 100 * batch + i) for i in range(60)])
        result = balanced_map(
            files.stream(), placed_and_slow, "site", 3, SITES + ", at int",
            checkpoint=str(checkpoint), observer=observer,
        )  # fmt: skip
        written = result.writeStream.option("checkpointLocation", str(checkpoint))
        written.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
        seen = spark.read.parquet(str(tmp_path / "out")).filter(F.col("n") >= 100 * batch).collect()
        eventually(lambda number=batch + 1: number in folder._numbers())
        known.append(folder.used(batch + 1).plan.known[..., 0].sum() / PROACTIVE.rows)
        assert sorted(row.n for row in seen) == [100 * batch + i for i in range(60)]
        dear = Counter(row["at"] for row in seen if row.site == "s0")
        # Round robin gives all dear rows of the first batch to one worker.
        assert (max(dear.values()) == 20) == (batch == 0)
    assert max(dear.values()) <= 8
    assert known == [60, 30 + 60, 90], "60 messages more are too few to halve what 90 taught"
    records = eventually(lambda: len(observer.records()) == 3 and observer.records())
    assert [record.messages for record in records] == [60] * 3
    assert [record.replication for record in records] == [None] * 3


def test_only_results_of_balanced_map_can_be_released(pages):
    for scheme in ("proactive", "shuffle"):
        result = balanced_map(pages, as_it_is, "site", 2, pages.schema, scheme=scheme)
        with pytest.raises(SkewlessError, match="not the one that balanced_map gave"):
            release(result.limit(1))
        release(result)
        release(result)
        assert result.count() == pages.count()


def test_a_stream_needs_a_checkpoint_only_to_learn(spark, tmp_path):
    files = Files(spark, tmp_path / "in", SITES)
    files.put([("s", i) for i in range(10)])
    with pytest.raises(SkewlessError, match="give the folder of the stream's checkpoint"):
        balanced_map(files.stream(), as_it_is, "site", 2, SITES)
    shuffled = balanced_map(files.stream(), as_it_is, "site", 2, SITES, scheme="shuffle")
    _, seen = run_to_end(shuffled, tmp_path / "checkpoint", "append")
    assert sorted(row.n for row in seen) == list(range(10))
