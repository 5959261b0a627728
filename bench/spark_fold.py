"""A Python fold on skewed keys: ours against what users do today. Ratios within one run.

    python bench/spark_fold.py [--z 1.5] [--messages 1200000] [--delay-ms 0.05] [--rounds 3]

Every message takes the delay, slept once per group or Arrow batch, on 8 workers of a local Spark;
adaptive execution is on. Compared: plain `groupBy(key).applyInPandas`, the same with ten salts and
a second groupBy, and `group(…).fold(…)` with several schemes. All must count the same. With
`--delay-ms 0` a plain `groupBy(key).count()` joins in, which combines before the shuffle.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import functions as F
from rich.console import Console

from skewless import folds
from skewless.report.tables import table
from skewless.spark import group
from skewless.spark.lab.compare import digest
from skewless.spark.lab.frames import write_keys
from skewless.spark.lab.session import local_session
from skewless.streams import stream_of

WORKERS = 8
SCHEMES = ("key", "partial", "d-choices", "graded", "shuffle")


def ways(keys, delay_ms):
    delay_s = delay_ms / 1000

    def count(rows: pd.DataFrame) -> pd.DataFrame:
        time.sleep(delay_s * len(rows))
        return pd.DataFrame({"key": rows["key"].iloc[:1], "count": [len(rows)]})

    schema = "key long, count long"
    salted = keys.withColumn("salt", (F.rand(1) * 10).cast("int"))
    yield "applyInPandas", lambda: keys.groupBy("key").applyInPandas(count, schema)
    yield (
        "applyInPandas, 10 salts",
        lambda: (
            salted.groupBy("key", "salt")
            .applyInPandas(count, schema)
            .groupBy("key")
            .agg(F.sum("count").alias("count"))
        ),
    )
    if not delay_ms:
        yield "groupBy(key).count()", lambda: keys.groupBy("key").count()
    fold = folds.sleeping(folds.count(), delay_ms)
    for scheme in SCHEMES:
        yield f"fold, {scheme}", lambda s=scheme: group(keys, "key", s, WORKERS).fold(fold)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--z", type=float, default=1.5)
    parser.add_argument("--messages", type=float, default=1_200_000)
    parser.add_argument("--delay-ms", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    messages = int(options.messages)
    stream = stream_of(f"zipf:z={options.z},keys=10000,messages={messages}")
    ideal_s = messages * options.delay_ms / 1000 / WORKERS
    with local_session(WORKERS) as spark, tempfile.TemporaryDirectory() as folder:
        spark.conf.set("spark.sql.shuffle.partitions", str(WORKERS))
        keys = write_keys(spark, stream, Path(folder) / "keys", WORKERS)
        truth = digest(keys.groupBy("key").count())
        runs = dict(ways(keys, options.delay_ms))
        seconds = {name: [] for name in runs}
        for make in runs.values():
            assert digest(make()) == truth
        for _ in range(options.rounds):
            for name, make in runs.items():
                start_s = time.perf_counter()
                make().write.format("noop").mode("overwrite").save()
                seconds[name].append(time.perf_counter() - start_s)
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    rows = [
        {
            "way": name,
            "seconds": round(taken, 2),
            "of ideal": round(taken / ideal_s, 2) if ideal_s else "",
            "of shuffle": round(taken / medians["fold, shuffle"], 2),
        }
        for name, taken in medians.items()
    ]
    Console(width=100).print(table(f"{stream.spec}: ideal {ideal_s:.1f} s", rows))


if __name__ == "__main__":
    main()
