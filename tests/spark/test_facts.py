"""What this library takes for granted about Spark; if one of these fails, read DESIGN again."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from skewless.hashing import identities
from skewless.spark import route
from tests.spark.streams import Files, run_to_end


def test_repartition_by_id_sends_each_row_to_exactly_that_partition(spark):
    rows = spark.range(0, 1000, 1, 4).withColumn("worker", (F.col("id") % 7).cast("int"))
    placed = rows.repartitionById(7, "worker").select("worker", F.spark_partition_id().alias("at"))
    assert {(r.worker, r.at) for r in placed.distinct().collect()} == {(i, i) for i in range(7)}


def test_adaptive_execution_leaves_as_many_partitions_as_workers(spark):
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    rows = spark.range(10).withColumn("worker", F.lit(3))

    def mark(batches):
        for _ in batches:
            pass
        yield pa.record_batch({"ran": pa.array([1], pa.int32())})

    placed = rows.repartitionById(12, "worker").mapInArrow(mark, "ran int")
    assert placed.count() == 12


def test_repartition_by_a_worker_column_would_hash_the_number(spark):
    rows = spark.range(0, 100).withColumn("worker", (F.col("id") % 7).cast("int"))
    placed = rows.repartition(7, "worker").select("worker", F.spark_partition_id().alias("at"))
    assert any(r.worker != r.at for r in placed.distinct().collect())


def test_a_files_rows_reach_the_kernel_as_rows(spark, tmp_path):
    spark.range(10).write.parquet(str(tmp_path / "in"))
    routed = route(spark.read.parquet(str(tmp_path / "in")), "id", "partial", 3)
    lines = routed._jdf.queryExecution().executedPlan().toString().splitlines()
    at = next(i for i, line in enumerate(lines) if "ArrowEvalPython" in line)
    assert "Filter (SPARK_PARTITION_ID() >= 0)" in lines[at + 1]


@pytest.mark.parametrize(
    ("ddl", "kind", "values"),
    [
        ("string", pa.string(), ["a", "", "é€😀", None, "x" * 100, "word-7"]),
        ("int", pa.int32(), [0, 1, -1, 2**31 - 1, None]),
        ("long", pa.int64(), [0, 1, -1, 2**63 - 1, None]),
        ("smallint", pa.int16(), [0, -5, None]),
        ("double", pa.float64(), [0.0, -0.0, math.nan, math.inf, 1.5, None]),
        ("float", pa.float32(), [0.0, -0.0, math.nan, 1.5, None]),
        ("boolean", pa.bool_(), [True, False, None]),
        ("binary", pa.binary(), [b"", b"abc", None]),
    ],
)
def test_the_identity_of_a_key_is_sparks_xxhash64(spark, ddl, kind, values):
    rows = [(i, v) for i, v in enumerate(values)]
    df = spark.createDataFrame(rows, f"i int, k {ddl}")
    hashed = [r.h for r in df.select("i", F.xxhash64("k").alias("h")).orderBy("i").collect()]
    ours = identities(pa.array(values, kind, from_pandas=False)).view("int64").tolist()
    assert hashed == ours


def test_the_identity_of_a_composite_chains_its_columns(spark):
    rows = [("a", 1, 1.5), (None, 1, 1.5), ("a", None, None), (None, None, None), ("", 0, -0.0)]
    df = spark.createDataFrame(rows, "w string, n long, x double").coalesce(1)
    hashed = [r.h for r in df.select(F.xxhash64("w", "n", "x").alias("h")).collect()]
    columns = list(zip(*rows, strict=True))
    kinds = [pa.string(), pa.int64(), pa.float64()]
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    assert hashed == identities(*arrays).view("int64").tolist()


def test_an_int_and_a_long_of_the_same_value_are_different_keys(spark):
    row = spark.range(1).select(
        F.xxhash64(F.lit(1)).alias("i"), F.xxhash64(F.lit(1).cast("long")).alias("l")
    )
    assert row.first().i != row.first().l


def test_spark_groups_nan_with_nan_and_negative_zero_with_zero(spark):
    values = [(0.0,), (-0.0,), (math.nan,), (math.nan,), (None,)]
    df = spark.createDataFrame(values, "x double")
    assert sorted(r["count"] for r in df.groupBy("x").count().collect()) == [1, 2, 2]


def test_the_mean_of_decimals_has_four_more_places(spark):
    df = spark.createDataFrame([(decimal.Decimal("1.10"),)], "x decimal(10, 2)")
    assert dict(df.select(F.avg("x").alias("m"), F.sum("x").alias("s")).dtypes) == {
        "m": "decimal(14,6)",
        "s": "decimal(20,2)",
    }


def batch_number(batches):
    """Rows with the micro-batch and the partition that a task says it works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = int(context.getLocalProperty("streaming.sql.batchId"))
    for batch in batches:
        count = batch.num_rows
        facts = [pa.array([number] * count), pa.array([context.partitionId()] * count)]
        yield pa.RecordBatch.from_arrays([batch["n"], *facts], names=["n", "batch", "at"])


def test_a_task_of_a_stream_knows_its_batch_and_rows_go_where_their_id_says(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "n long")
    for number in range(2):
        files.put([(number * 100 + i,) for i in range(8)])
    placed = files.stream().repartitionById(4, (F.col("n") % 4).cast("int"))
    told = placed.mapInArrow(batch_number, "n long, batch long, at long")
    _, seen = run_to_end(told, tmp_path / "checkpoint", "append")
    assert len(seen) == 16
    assert all((row.batch, row["at"]) == (row.n // 100, row.n % 4) for row in seen)


def test_python_hands_a_stream_back_without_its_watermark(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "t timestamp")
    timely = files.stream().withWatermark("t", "5 minutes")
    assert timely.schema["t"].metadata == {"spark.watermarkDelayMs": 300_000}
    back = timely.mapInArrow(lambda batches: batches, "t timestamp")
    assert back.schema["t"].metadata == {}
