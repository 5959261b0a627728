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
from skewless.spark import BalancedFrame, Observer, balanced_map, release
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
    way = {"workers": 3, "scheme": scheme, "share": 0.3}
    with balanced_map(pages, twice_the_even, SITES, key="site", **way) as result:
        assert result.schema == plain.schema
        assert rows_of(result) == rows_of(plain)
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
    seen = rows_of(balanced_map(rows, look, schema, key=keys, workers=2, share=0.5))
    assert seen == rows_of(rows.mapInArrow(look, schema))
    assert len(seen) == 60


@pytest.mark.parametrize("share", [1e-9, 0.999999])
def test_a_wave_may_be_empty(pages, share):
    result = balanced_map(pages, as_it_is, SITES, key="site", workers=3, share=share)
    assert rows_of(result) == rows_of(pages)
    assert balanced_map(pages.limit(0), as_it_is, SITES, key="site").collect() == []


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
    schema = SITES + ", at int"
    result = balanced_map(rows, placed_and_slow, schema, key="site", workers=3, share=0.3)
    first, dear = [0, 0, 0], [0, 0, 0]
    for row in result.filter("site = 's0'").collect():
        (first if row["at"] < 3 else dear)[row["at"] % 3] += 1
    assert sum(first) + sum(dear) == 120
    assert max(dear) - min(dear) <= 2


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
        balanced_map(pages, slow, SITES, key="site", workers=2, share=0.2)
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
        ({"key": "page"}, "There is no column 'page'"),
        ({"scheme": "distribution-aware"}, "balanced_map learns costs: use 'proactive'"),
        ({"scheme": "off-greedy"}, "for simulation only"),
        ({"checkpoint": "somewhere"}, "no stream: leave checkpoint= out"),
        ({"seed": -1}, "A seed is a whole number from 0"),
        ({"seed": 0.5}, "A seed is a whole number, not 0.5"),
        ({"observer": "log"}, "takes a skewless.spark.Observer"),
        ({"observer": Observer()}, "no stream: leave observer= out"),
    ],
)
def test_a_mistake_is_one_sentence_before_any_job(pages, options, says):
    chosen = {"function": as_it_is, "key": "site", "workers": 2, "schema": SITES, **options}
    with pytest.raises(SkewlessError, match=says):
        balanced_map(pages, **chosen)


def test_a_stream_learns_costs_from_batch_to_batch_and_over_a_restart(spark, tmp_path):
    files, checkpoint = Files(spark, tmp_path / "in", SITES), tmp_path / "checkpoint"
    folder = stream_folder(str(checkpoint), PROACTIVE, 3, 0)
    observer, known = Observer(), []
    for batch in range(3):
        files.put([(f"s{i % 3}", 100 * batch + i) for i in range(60)])
        result = balanced_map(
            files.stream(), placed_and_slow, SITES + ", at int", key="site", workers=3,
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


def persisted(spark):
    """The ids of what Spark has persisted now."""
    return set(spark._jsc.sc().getPersistentRDDs().keySet().mkString(",").split(",")) - {""}


def test_the_first_wave_is_freed_at_the_end_of_the_block_or_when_the_result_is_dropped(
    spark, pages
):
    pages.count()
    before = persisted(spark)
    with balanced_map(pages, as_it_is, SITES, key="site", workers=2) as result:
        assert len(persisted(spark) - before) == 1
    assert persisted(spark) == before
    assert result.count() == pages.count()
    with pytest.raises(ZeroDivisionError), balanced_map(pages, as_it_is, SITES, key="site"):
        raise ZeroDivisionError
    assert persisted(spark) == before
    result = balanced_map(pages, as_it_is, SITES, key="site", workers=2)
    derived = result.filter("n % 2 = 0")
    assert len(persisted(spark) - before) == 1
    del result
    eventually(lambda: persisted(spark) == before)
    assert derived.count() == 450


@pytest.mark.connect
def test_there_are_as_many_workers_as_spark_would_take(pages):
    result = balanced_map(pages, as_it_is, SITES, key="site", scheme="shuffle")
    placed = result.select(F.spark_partition_id().alias("at")).distinct()
    assert isinstance(result, BalancedFrame)
    assert placed.count() == 3, "spark.sql.shuffle.partitions of the tests"


@pytest.mark.connect
def test_the_old_order_of_arguments_and_release_work_for_one_release(pages):
    with pytest.warns(DeprecationWarning, match="the old order ends in 0.4"):
        result = balanced_map(pages, as_it_is, "site", 2, SITES, share=0.3)
    assert rows_of(result) == rows_of(pages)
    old = {"cost_key": "site", "workers": 2, "schema": SITES, "scheme": "shuffle"}
    with pytest.warns(DeprecationWarning, match="in the order of mapInArrow now") as warned:
        named = balanced_map(pages, as_it_is, **old)
    assert warned[0].filename == __file__
    assert rows_of(named) == rows_of(pages)
    with pytest.warns(DeprecationWarning, match="release ends in 0.4"):
        release(result)
    with (
        pytest.warns(DeprecationWarning, match="release ends in 0.4"),
        pytest.raises(SkewlessError, match="not the one that balanced_map gave"),
    ):
        release(result.limit(1))


def test_a_function_sees_the_columns_that_map_in_arrow_shows_it(spark):
    """Names, also twice, types, what may be null, metadata; although rows travel as one column."""
    columns = [
        F.col("id").alias("n"),
        F.when(F.col("id") > 3, F.col("id")).alias("maybe"),
        F.lit("x").alias("a b", metadata={"comment": "of a user"}),
        F.array(F.struct(F.col("id"), F.lit(None).cast("double"))).alias("many"),
        F.create_map(F.lit("k"), F.col("id")).alias("map"),
        F.parse_json(F.lit("[1]")).alias("v"),
        F.current_timestamp().alias("row"),
    ]

    def look(batches):
        for batch in batches:
            yield pa.record_batch({"s": [batch.schema.to_string()] * batch.num_rows})

    rows = spark.range(6).select(*columns)
    plain = rows.mapInArrow(look, "s string").distinct().collect()
    for scheme in ("proactive", "shuffle"):
        ours = balanced_map(rows, look, "s string", key="`a b`", scheme=scheme)
        assert ours.distinct().collect() == plain
    for again in ("map", "MAP"):  # which Spark's own refuses
        twice = rows.select("map", "`a b`", F.col("map").alias(again))
        seen = balanced_map(twice, look, "s string", key="`a b`").distinct().collect()
        alone = rows.select("map", "`a b`", F.col("map").alias("other"))
        plain = alone.mapInArrow(look, "s string").distinct().collect()
        assert [row.s.replace("other", again) for row in plain] == [row.s for row in seen]


def test_a_stream_needs_a_checkpoint_only_to_learn(spark, tmp_path):
    files = Files(spark, tmp_path / "in", SITES)
    files.put([("s", i) for i in range(10)])
    with pytest.raises(SkewlessError, match="give the folder of the stream's checkpoint"):
        balanced_map(files.stream(), as_it_is, SITES, key="site", workers=2)
    shuffled = balanced_map(files.stream(), as_it_is, SITES, key="site", scheme="shuffle")
    _, seen = run_to_end(shuffled, tmp_path / "checkpoint", "append")
    assert sorted(row.n for row in seen) == list(range(10))
