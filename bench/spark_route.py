"""How fast rows are routed on Spark, as a ratio to Spark's own hash repartition in the same run.

    python bench/spark_route.py [--rows 10000000] [--runs 5] [--workers 10]

Rows of a Zipf stream (z = 1.5) lie in Parquet: a string key, a long and a double. Each way places
the same columns on the same number of partitions and throws them away (noop sink). Runs alternate;
medians and ratios are printed. Bars: Column ≥ 0.9, with 200 hot keys too (a learned plan of
distribution-aware; learning is timed apart), Arrow ≥ 0.5. The share of the largest partition is
printed too: where hot keys share a partition by chance of the hash, its task ends last, and that is
no matter of routing speed. So the seed is the first with which key grouping's largest partition is
as large as Spark's, within 2 % of the rows.

Split keys are those of a made-up plan of graded-planned: so many of the hottest keys over 20 slots
each, by the hash of the other two columns. A learned plan splits fewer: less than one per worker.

The Arrow way is bound by Spark's own exchange with Python, not by the kernel: a function that gives
back zeros takes the same time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from skewless.hashing import identities
from skewless.schemes import scheme_of
from skewless.spark import Plan, learn, repartition

KEYS = 1_000_000
HOT_KEYS = "distribution-aware:theta=1.35e-4,epsilon=2e-5"  # about 200 keys at z = 1.5
SPLIT_KEYS, SLOTS = (197, 2000), 20
FILES = 8


def write_stream(folder: Path, rows: int, z: float) -> None:
    random = np.random.default_rng(1)
    mass = np.cumsum(np.arange(1, KEYS + 1, dtype=np.float64) ** -z)
    words = pa.array([f"word-{i}" for i in range(KEYS)])
    for part in range(FILES):
        count = rows // FILES
        ranks = np.searchsorted(mass, random.random(count) * mass[-1])
        table = pa.table(
            {
                "key": words.take(pa.array(ranks)),
                "number": np.arange(count),
                "value": random.random(count),
            }
        )
        pq.write_table(table, folder / f"part-{part}.parquet")


def split_plan(workers: int, seed: int, count: int) -> Plan:
    """A plan of graded-planned that splits that many of the hottest keys."""
    random, scheme = np.random.default_rng(2), scheme_of("graded-planned")
    first: Any = scheme.plan(workers, seed)
    arrays = first._replace(
        head_keys=identities(pa.array([f"word-{i}" for i in range(count)])),
        head_starts=np.arange(count + 1) * SLOTS,
        head_workers=random.integers(0, workers, count * SLOTS).astype(np.int32),
    )
    return Plan(scheme, workers, seed, ("key string",), 0, 1.0, arrays)


def session(master: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )


def split_way(df: DataFrame, workers: int, seed: int, count: int) -> Callable[[], DataFrame]:
    plan = split_plan(workers, seed, count)
    return lambda: repartition(df, "key", plan)


def seconds(df: DataFrame) -> float:
    began = time.perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def largest_share(df: DataFrame) -> float:
    counts = df.groupBy(F.spark_partition_id()).count().collect()
    return max(row["count"] for row in counts) / sum(row["count"] for row in counts)


def even_seed(df: DataFrame, workers: int) -> int:
    """The first seed with which key grouping is as uneven as Spark's own hash."""
    spark_share = largest_share(df.repartition(workers, "key"))
    for seed in itertools.count():
        share = largest_share(repartition(df, "key", "key", workers, seed=seed))
        if abs(share - spark_share) < 0.02:
            break
    return seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    spark = session(given.master)
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        write_stream(Path(folder), given.rows, 1.5)
        df = spark.read.parquet(folder)
        seed = even_seed(df, given.workers)
        began = time.perf_counter()
        plan = learn(df, "key", HOT_KEYS, given.workers, seed=seed)
        learning_s = time.perf_counter() - began
        ways: dict[str, Callable[[], DataFrame]] = {
            "Spark's repartition": lambda: df.repartition(given.workers, "key"),
            "Column (key)": lambda: repartition(df, "key", "key", given.workers, seed=seed),
            "Column (hot keys)": lambda: repartition(df, "key", plan),
            **{
                f"Column ({count} split)": split_way(df, given.workers, seed, count)
                for count in SPLIT_KEYS
            },
            "Arrow (partial)": lambda: repartition(df, "key", "partial", given.workers, seed=seed),
            "Arrow (shuffle)": lambda: repartition(df, "key", "shuffle", given.workers, seed=seed),
            "Spark's round robin": lambda: df.repartition(given.workers),
        }
        shares = {name: largest_share(way()) for name, way in ways.items()}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for run in range(given.runs + 1):
            for name, way in ways.items():
                taken = seconds(way())
                if run:  # the first round warms the JVM and the Python workers
                    times[name].append(taken)
        base = statistics.median(times["Spark's repartition"])
        print(f"{given.rows:,} rows, {given.workers} workers, seed {seed}")
        print(f"{plan.hot_keys} hot keys learned from a tenth of the rows, {learning_s:.1f} s")
        for name, taken_s in times.items():
            median = statistics.median(taken_s)
            speed = given.rows / median / 1e6
            print(
                f"{name:20} {median:7.2f} s {speed:7.2f} M rows/s  ratio {base / median:.2f}  "
                f"largest partition {shares[name]:.0%}"
            )
    spark.stop()


if __name__ == "__main__":
    main()
