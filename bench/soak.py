"""A stream left on for long: does anything grow? Not a timing.

    python -m bench.soak [--minutes 60] [--rows 36000] [--times 1] [--plot FILE] [--csv FILE]

A stream of keys that come once, or a few TIMES, and never again, a hot key among them, in
micro-batches of a second, folded by a scheme that learns. Of 36,000 rows a batch, a tenth of them
hot, an hour that loses five seconds a minute to restarts makes 100 million keys.
Every minute the query is stopped and started again, every other time with another setting. Every
few seconds: the memory of the driver's Java and Python, of an executor and of its Python workers,
threads, and files in the checkpoint; whenever the query stands still, what the driver's heap holds
once its garbage is collected. At the end the last third is compared with the third before.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless import folds
from skewless.spark import Observer, group

EACH_S, LOOK_S = 60, 5
SETTINGS = (("d-choices", 4), ("dynamic", 3), ("graded-planned", 4), ("partial", 2))
MIB = 1 << 20
FIGURES = ("driver MiB", "executor MiB", "python MiB", "workers MiB", "heap in use MiB",
           "java threads", "python threads", "files of Spark", "files of skewless",
           "bytes of skewless")  # fmt: skip


def session():
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)  # which local-cluster asks for
    builder = SparkSession.builder.master("local-cluster[1,2,1024]").appName("soak")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.minBatchesToRetain": "20",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def started(spark, folder, asked, number, observer):
    """The query, by the setting of its number."""
    # Each batch is as large as the one before: what a stop or a busy machine cost is not made up
    # for by a batch of a minute's rows, of which a run of a minute would see no end.
    rate = spark.readStream.format("rate-micro-batch").option("numPartitions", 2)
    source = rate.option("rowsPerBatch", asked.rows).option("advanceMillisPerBatch", 1000).load()
    key = F.when(F.col("value") % 10 == 0, F.lit("hot")).otherwise(
        F.concat(F.lit("k"), F.floor(F.col("value") / asked.times).cast("string"))
    )
    keyed = source.withWatermark("timestamp", "5 seconds").withColumn("key", key)
    scheme, workers = SETTINGS[number // 2 % len(SETTINGS)]
    checkpoint = str(folder / "checkpoint")
    by: list[Any] = [F.window("timestamp", "5 seconds"), "key"]
    grouping = group(keyed, by, scheme, workers, checkpoint=checkpoint, observer=observer)
    counts = grouping.fold(folds.count(), folds.sum("value"))
    writer = counts.writeStream.format("noop").outputMode("append")
    return writer.option("checkpointLocation", checkpoint).trigger(
        processingTime="1 second"
    ).start()  # fmt: skip


def heap_in_use(spark):
    """MiB that the driver's heap holds without its garbage."""
    java = spark._jvm.java.lang
    java.System.gc()
    memory = java.management.ManagementFactory.getMemoryMXBean()
    return memory.getHeapMemoryUsage().getUsed() / MIB


def look(folder, heap):
    """All figures now, in the order of FIGURES."""
    me = psutil.Process()
    driver, executor, workers = [], [], []
    for process in me.children(recursive=True):
        try:
            kind = workers
            if process.name() == "java":
                backend = "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
                kind = executor if backend else driver
            kind.append((process.memory_info().rss, process.num_threads()))
        except psutil.NoSuchProcess:
            continue
    spark_files, own_files, own_bytes = 0, 0, 0
    for path in (folder / "checkpoint").rglob("*"):
        try:
            if not path.is_file():
                continue
            own = "skewless" in path.parts[len(folder.parts) + 1 : len(folder.parts) + 2]
            own_files, spark_files = own_files + own, spark_files + (not own)
            own_bytes += path.stat().st_size if own else 0
        except OSError:
            continue
    return [
        sum(rss for rss, _ in driver) / MIB,
        sum(rss for rss, _ in executor) / MIB,
        me.memory_info().rss / MIB,
        sum(rss for rss, _ in workers) / MIB,
        heap,
        sum(threads for _, threads in driver + executor),
        threading.active_count(),
        spark_files,
        own_files,
        own_bytes,
    ]


def soak(asked):
    """Rows of (seconds, figures), how many rows the stream took, and how often it started."""
    seen, taken = [], 0
    spark, observer = session(), Observer()
    heap = heap_in_use(spark)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder, number = Path(name), 0
        while time.monotonic() - began_s < asked.minutes * 60:
            query = started(spark, folder, asked, number, observer)
            ends_s = time.monotonic() + EACH_S
            while time.monotonic() < ends_s and query.isActive:
                time.sleep(LOOK_S)
                seen.append((time.monotonic() - began_s, *look(folder, heap)))
            if query.exception() is not None:
                raise query.exception()
            taken += sum(progress["numInputRows"] for progress in query.recentProgress)
            query.stop()
            heap = heap_in_use(spark)
            number += 1
            print(
                f"{number} runs, {taken:,} rows: {dict(zip(FIGURES, seen[-1][1:], strict=True))}",
                flush=True,
            )
        observer.close()
        spark.stop()
    return seen, taken, number


def compared(seen):
    """Each figure's median in the last third, and that over its median in the third before."""
    third = len(seen) // 3
    middle, last = seen[third : 2 * third], seen[2 * third :]
    for i, figure in enumerate(FIGURES, 1):
        before, after = (statistics.median(row[i] for row in part) for part in (middle, last))
        yield figure, before, after, after / before if before else 1.0


def plotted(seen, path):
    """A picture with a panel for each group of figures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = {"MiB": FIGURES[:5], "threads": FIGURES[5:7], "files": FIGURES[7:9]}
    figure, axes = plt.subplots(len(panels), 1, figsize=(9, 7), sharex=True)
    for axis, (unit, names) in zip(axes, panels.items(), strict=True):
        for name in names:
            at = FIGURES.index(name) + 1
            label = name.removesuffix(f" {unit}").removeprefix(f"{unit} of ")
            axis.plot([row[0] / 60 for row in seen], [row[at] for row in seen], label=label)
        axis.set_ylim(bottom=0)
        axis.set_ylabel(unit)
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    axes[-1].set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.soak")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rows", type=int, default=36_000, help="in a micro-batch")
    parser.add_argument("--times", type=int, default=1, help="how often a key comes")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    seen, taken, runs = soak(asked)
    print(f"{asked.minutes:g} minutes, {taken:,} rows, {runs} runs of the query")
    print("| figure | second third | last third | ratio |\n|---|---|---|---|")
    for figure, before, after, ratio in compared(seen):
        print(f"| {figure} | {before:,.0f} | {after:,.0f} | {ratio:.2f} |")
    if asked.csv:
        with asked.csv.open("w", newline="") as file:
            csv.writer(file).writerows([("seconds", *FIGURES), *seen])
    if asked.plot:
        plotted(seen, asked.plot)


if __name__ == "__main__":
    main()
