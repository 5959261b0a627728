"""Wide tables: what `balanced_map` takes to plan and run, against `mapInArrow`. Ratios in one run.

    python bench/spark_map_wide.py [--columns 2000] [--aliases 300] [--rows 2000] [--rounds 3]

Spark resolves and compares column by column, so what takes no time for ten columns may take minutes
for thousands. Two tables: one of many columns, and one column under many names, of which each could
stand for any other. The first run of each way, on which the JVM warms up, is not counted.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

from pyspark.sql import functions as F
from rich.console import Console

from skewless.report.tables import table
from skewless.spark import balanced_map
from skewless.spark.lab.session import local_session

WORKERS = 4


def as_it_is(batches):
    yield from batches


def wide(spark, rows, columns):
    """Numbers, all different."""
    made = [(F.col("id") * i).alias(f"c{i}") for i in range(1, columns)]
    return spark.range(0, rows, 1, 2).select(F.col("id"), *made)


def aliases(spark, rows, names):
    """One column under many names."""
    return spark.range(0, rows, 1, 2).select(*(F.col("id").alias(f"c{i}") for i in range(names)))


def plain(df, schema):
    return df.repartition(WORKERS).mapInArrow(as_it_is, schema)


def balanced(df, schema):
    return balanced_map(df, as_it_is, schema, key=df.columns[0], workers=WORKERS)


def used_s(spark):
    """The processor time of the JVM and of this process so far: no matter who else is at work."""
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    ticks = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") + time.process_time()


def taken(df, way):
    """Seconds until there is a result, seconds until it was computed, and processor time."""
    schema, spark = df.schema, df.sparkSession
    start_s, before_s = time.perf_counter(), used_s(spark)
    result = way(df, schema)
    made_s = time.perf_counter() - start_s
    result.write.format("noop").mode("overwrite").save()
    return made_s, time.perf_counter() - start_s, used_s(spark) - before_s


def compared(title, df, rounds):
    ways = {"mapInArrow": plain, "balanced_map": balanced}
    seconds = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            found = taken(df, way)
            if number:
                seconds[name].append(found)
    medians = {
        name: [statistics.median(each) for each in zip(*both, strict=True)]
        for name, both in seconds.items()
    }
    first = medians["mapInArrow"]
    rows = [
        {
            "way": name,
            "until it returns, s": round(made_s, 2),
            "in all, s": round(whole_s, 2),
            "of the first": round(whole_s / first[1], 2),
            "processor s": round(processor_s, 2),
            "of the first's": round(processor_s / first[2], 2),
        }
        for name, (made_s, whole_s, processor_s) in medians.items()
    ]
    Console(width=100).print(table(title, rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=2000)
    parser.add_argument("--aliases", type=int, default=300)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with local_session(WORKERS) as spark:
        many = wide(spark, options.rows, options.columns)
        compared(f"{options.columns} columns, {options.rows} rows", many, options.rounds)
        one = aliases(spark, options.rows, options.aliases)
        compared(f"{options.aliases} names of one column", one, options.rounds)


if __name__ == "__main__":
    main()
