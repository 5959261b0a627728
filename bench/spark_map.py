"""What `balanced_map` costs and what it gains. Ratios within one run.

    python bench/spark_map.py [--rows 20000] [--row-us 50] [--rounds 5]

First the timing wrapper alone, in this process, by processor time: a function that computes for the
given time per row runs on Arrow batches of 10,000 rows as they are, and through the wrapper with
its sorting, slices and sketches. Then on a local Spark with 4 workers, against
`repartition(4).mapInArrow`: the same function, so that all costs are equal, and one that sleeps
20 ms for one key of 50 and else 1 ms.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from rich.console import Console

from skewless.hashing import identities
from skewless.report.tables import table
from skewless.schemes import scheme_of
from skewless.spark import balanced_map
from skewless.spark.input.conform import declared_for_map
from skewless.spark.lab.session import local_session
from skewless.spark.map.job import MapJob

WORKERS = 4
SCHEMA = "key long, n long"


def working(row_us):
    """A function that takes that much of a processor's time per row, whoever else is at work."""
    turns, start_s = 100_000, time.process_time()
    for _ in range(turns):
        pass
    per_row = range(int(row_us * 1e-6 * turns / (time.process_time() - start_s)))

    def work(batches):
        for batch in batches:
            for _ in range(batch.num_rows):
                for _ in per_row:
                    pass
            yield batch

    return work


def sleeping(batches):
    for batch in batches:
        keys = batch["key"].to_numpy()
        time.sleep(float(np.where(keys % 50 == 0, 0.020, 0.001).sum()))
        yield batch


def prepared(rows):
    """Batches as a task of balanced_map gets them: rows, identity, key, cost, worker."""
    keys = np.random.default_rng(1).zipf(1.3, rows) % 1000
    hashed = pa.array(identities(keys).view(np.int64))
    columns = [pa.array(keys), pa.array(np.arange(rows))]
    row = pa.StructArray.from_arrays(columns, names=["key", "n"])
    key = pa.StructArray.from_arrays(columns[:1], names=["k0"])
    whole = pa.RecordBatch.from_arrays(
        [row, hashed, key, pa.array(np.zeros(rows)), pa.array(np.zeros(rows, np.int32))],
        names=["row", "identity", "key", "cost", "worker"],
    )
    return [whole.slice(at, 10_000) for at in range(0, rows, 10_000)]


def unpacked(batch):
    return pa.RecordBatch.from_struct_array(batch.column(0))


def alternating(ways, rounds, clock=time.perf_counter):
    """The median seconds of each way, after one run to warm up."""
    taken_s = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, run in ways.items():
            start_s = clock()
            run()
            if number:
                taken_s[name].append(clock() - start_s)
    return {name: statistics.median(each) for name, each in taken_s.items()}


def shown(title, medians):
    first = next(iter(medians.values()))
    rows = [
        {"way": name, "seconds": round(taken, 3), "of the first": round(taken / first, 3)}
        for name, taken in medians.items()
    ]
    Console(width=100).print(table(title, rows))


def wrapper(rows, row_us, rounds):
    work, batches = working(row_us), prepared(rows)
    plan: Any = scheme_of("proactive").plan(WORKERS, 0)
    declared = declared_for_map(StructType().add("key", "long").add("n", "long"))
    job = MapJob(work, ("key", "n"), declared, True, plan, reports=True)
    ways = {
        "as it is": lambda: list(work(map(unpacked, batches))),
        "timed": lambda: list(job.run(iter(batches))),
    }
    medians = alternating(ways, rounds, time.process_time)
    shown(f"{rows} rows of {row_us:g} µs, one process", medians)


def on_spark(spark, df, function, name, rounds):
    def balanced():
        with balanced_map(df, function, SCHEMA, key="key", workers=WORKERS) as result:
            result.write.format("noop").mode("overwrite").save()

    def plain():
        mapped = df.repartition(WORKERS).mapInArrow(function, SCHEMA)
        mapped.write.format("noop").mode("overwrite").save()

    ways = {f"repartition({WORKERS})": plain, "balanced_map": balanced}
    shown(f"Spark, {WORKERS} workers, {df.count()} rows, {name}", alternating(ways, rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--row-us", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    wrapper(options.rows, options.row_us, options.rounds)
    with local_session(WORKERS) as spark:
        rows = spark.range(0, options.rows, 1, 2)
        df = rows.select((F.xxhash64("id") % 1000).alias("key"), F.col("id").alias("n")).cache()
        on_spark(spark, df, working(options.row_us), "equal costs", options.rounds)
        on_spark(spark, df, sleeping, "1 ms, or 20 ms for one key of 50", options.rounds)


if __name__ == "__main__":
    main()
