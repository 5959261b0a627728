"""Joins with hot keys: ours, Spark's own, adaptive execution and salts by hand. Ratios in one run.

    python bench/spark_join.py [--quick] [--rounds 3] [--only tasks,wall,cpu,learning,stream,real]
                               [--data FOLDER]

tasks:    rows in and out of every task of the join, the largest over the mean, in six situations
wall:     0.05 ms slept for each result row on 8 workers, against the ideal; Spark's own join of as
          many rows without skew shows what of the rest is not ours
cpu:      processor time of all tasks against the plain join's, without and with skew to mend
learning: counting the keys against the plain join's time on 10 million rows; a scan that only
          draws keys shows how much of it is reading
stream:   rows of state per partition of a join of two streams
real:     hashtags and cashtags of FOLDER with a table per key, and with themselves within an hour

A plan is learned for each run of ours but where learning is timed apart. Broadcasts are off, as if
no side were small. `--quick` takes a tenth of the rows.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from skewless.report.tables import table
from skewless.spark import join, learn_join
from task_rows import EventLog, cpu_s, tasks_of_joins, unevenness

PARTITIONS, WORKERS = 16, 8
ADAPTIVE = "spark.sql.adaptive."
LOWERED = {
    f"{ADAPTIVE}enabled": "true",
    f"{ADAPTIVE}skewJoin.skewedPartitionThresholdInBytes": "1MB",
    f"{ADAPTIVE}skewJoin.skewedPartitionFactor": "2",
    f"{ADAPTIVE}advisoryPartitionSizeInBytes": "1MB",
    f"{ADAPTIVE}coalescePartitions.enabled": "false",
}
DEFAULT = {
    f"{ADAPTIVE}enabled": "true",
    f"{ADAPTIVE}skewJoin.skewedPartitionThresholdInBytes": "256MB",
    f"{ADAPTIVE}skewJoin.skewedPartitionFactor": "5",
    f"{ADAPTIVE}advisoryPartitionSizeInBytes": "64MB",
    # Few large partitions out of many small ones would not be the skew that is looked at here.
    f"{ADAPTIVE}coalescePartitions.enabled": "false",
}
CONSOLE = Console(width=110)


class Bench:
    def __init__(self, folder, options):
        self.folder, self.rounds = folder, options.rounds
        self.scale = 0.1 if options.quick else 1.0
        (folder / "events").mkdir()
        self.spark = session(folder / "events")
        self.log = EventLog(folder / "events")

    def size(self, rows):
        return int(rows * self.scale)

    def table(self, name, keys, value, files=8, nulls=None):
        """Rows of (k, value) in files, each a partition that is read at once."""
        words = pa.array([f"k{i}" for i in range(int(keys.max()) + 1)]).take(pa.array(keys))
        if nulls is not None:
            words = pa.array(np.where(nulls, None, words.to_numpy(zero_copy_only=False)))
        folder = self.folder / name
        if not folder.exists():
            folder.mkdir()
            rows = pa.table({"k": words, value: np.arange(keys.size)})
            step = -(-keys.size // files)
            for i in range(files):
                pq.write_table(rows.slice(i * step, step), folder / f"{i}.parquet")
        return self.spark.read.parquet(str(folder))

    def run(self, df):
        """Seconds, and the events of the run."""
        self.log.read()
        began = time.perf_counter()
        df.write.format("noop").mode("overwrite").save()
        taken = time.perf_counter() - began
        time.sleep(0.3)  # the log is written beside the job
        return taken, self.log.read()


def session(events):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.files.openCostInBytes": "128MB",  # a task per file
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{events}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    builder = SparkSession.builder.master(f"local[{WORKERS}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def zipf(count, keys, z, seed):
    mass = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -z)
    return np.searchsorted(mass, np.random.default_rng(seed).random(count) * mass[-1])


def ways(bench, left, right, how, **more):
    """What people do: each way's settings, and a function that makes the join."""

    def salted():
        stripe = F.pmod(F.xxhash64("x"), F.lit(10)).cast("int")
        copies = F.explode(F.sequence(F.lit(0), F.lit(9)))
        a, b = left.withColumn("salt", stripe), right.withColumn("salt", copies)
        return a.join(b, ["k", "salt"], how).drop("salt")

    off = {**DEFAULT, f"{ADAPTIVE}enabled": "false"}
    yield "plain", off, lambda: left.join(right, "k", how)
    yield "adaptive", DEFAULT, lambda: left.join(right, "k", how)
    yield "adaptive, lowered", LOWERED, lambda: left.join(right, "k", how)
    if how != "full":  # ten copies of a right row without a partner would come out ten times
        yield "ten salts", off, salted
    yield "ours", DEFAULT, lambda: join(left, right, "k", how, **more)


def each_way(bench, left, right, how, **more):
    for name, settings, make in ways(bench, left, right, how, **more):
        for key, value in settings.items():
            bench.spark.conf.set(key, value)
        yield name, make


def situations(bench):
    n, m, keys = bench.size(1_000_000), bench.size(200_000), bench.size(100_000)
    hot = bench.table("hot", zipf(n, keys, 1.6, 1), "x")
    each = bench.table("each", np.arange(keys).repeat(2), "y")
    yield "hot on the left", hot, each, "inner", None
    some = np.concatenate([np.arange(keys), np.repeat([0, 3, 5], m // 4000)])
    yield "hot on both sides", hot, bench.table("some", some, "y"), "inner", None
    one = bench.table("one", np.sort(zipf(n, keys, 1.6, 1)), "x")
    yield "a hot key in one map output", one, each, "inner", None
    yield "a groupBy after it", hot, each, "inner", lambda df: df.groupBy("k").agg(F.sum("y"))
    yield "full outer", hot, bench.table("some", some, "y"), "full", None
    spread = np.random.default_rng(2).integers(0, keys, n)
    null = bench.table("null", spread, "x", nulls=np.random.default_rng(3).random(n) < 0.7)
    yield "null keys, left outer", null, each, "left", None


def tasks(bench):
    rows = []
    for title, left, right, how, then in situations(bench):
        for name, make in each_way(bench, left, right, how):
            joined = make() if then is None else then(make())
            work = tasks_of_joins(bench.run(joined)[1])
            both, out = work.sum(axis=1), work[:, 1]
            rows.append({
                "situation": title, "way": name, "tasks": len(work),
                "rows out": f"{out.sum():,.0f}",
                "in + out": round(unevenness(both, PARTITIONS), 2),
                "out": round(unevenness(out, PARTITIONS), 2),
                "copies": f"{work[:, 0].sum() / baseline_in(rows, title, work) - 1:.0%}",
                "_in": work[:, 0].sum(),
            })  # fmt: skip
    shown = [{k: v for k, v in row.items() if k != "_in"} for row in rows]
    CONSOLE.print(table(f"Rows of a task, largest over mean, {PARTITIONS} partitions", shown))


def baseline_in(rows, title, work):
    first = next((row["_in"] for row in rows if row["situation"] == title), None)
    return first or work[:, 0].sum()


def wall(bench):
    """Result rows that take time: 8 partitions on 8 workers."""
    delay_s = 0.05e-3
    bench.spark.conf.set("spark.sql.shuffle.partitions", str(WORKERS))

    def work(batches):
        for batch in batches:
            time.sleep(delay_s * batch.num_rows)
            yield batch

    n, keys = bench.size(1_200_000), 20_000
    left = bench.table("slow", zipf(n, keys, 1.5, 4), "x")
    right = bench.table("per-key", np.arange(keys).repeat(2), "y")
    even = bench.table("slow-even", np.random.default_rng(4).integers(0, keys, n), "x")
    ideal_s = 2 * n * delay_s / WORKERS
    seconds = {}
    floor = ("no skew, plain", lambda: even.join(right, "k"))
    for turn in range(bench.rounds + 1):
        # A chain, not a list: each way's settings hold until the next is asked for.
        for name, make in chain(each_way(bench, left, right, "inner", result_weight=20), [floor]):
            began = time.perf_counter()
            bench.run(make().mapInArrow(work, "k string, x long, y long"))
            if turn:  # the first warms everything up
                seconds.setdefault(name, []).append(time.perf_counter() - began - 0.3)
    bench.spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    rows = [
        {"way": name, "seconds": round(s, 2), "of ideal": round(s / ideal_s, 2)}
        for name, s in ((name, statistics.median(taken)) for name, taken in seconds.items())
    ]
    CONSOLE.print(table(f"0.05 ms a result row, learning included: ideal {ideal_s:.1f} s", rows))


def cpu(bench):
    n, keys = bench.size(4_000_000), bench.size(400_000)
    even = bench.table("even", np.random.default_rng(5).integers(0, keys, n), "x")
    skewed = bench.table("skewed", zipf(n, keys, 1.1, 6), "x")
    right = bench.table("right", np.arange(keys).repeat(2), "y")
    rows = []
    for title, left in (("no skew", even), ("skew", skewed)):
        bench.spark.conf.set(f"{ADAPTIVE}enabled", "true")
        plan = learn_join(left, right, "k")
        made = {
            "plain": partial(left.join, right, "k"),
            "ours, with a plan": partial(join, left, right, "k", plan=plan),
        }
        taken = {name: [] for name in made}
        for turn in range(bench.rounds + 1):
            for name, make in made.items():
                used = cpu_s(bench.run(make())[1])
                if turn:
                    taken[name].append(used)
        medians = {name: statistics.median(used) for name, used in taken.items()}
        for name, used in medians.items():
            rows.append({
                "rows": title, "way": name, "cpu s": round(used, 2),
                "of plain": round(used / medians["plain"], 2), "plan": repr(plan),
            })  # fmt: skip
    CONSOLE.print(table("Processor time of all tasks", rows))


def learning(bench):
    n, keys = bench.size(10_000_000), bench.size(1_000_000)
    left = bench.table("many", zipf(n, keys, 1.1, 7), "x")
    right = bench.table("partners", np.arange(keys).repeat(2), "y")
    keys_only = left.select("k").unionAll(right.select("k")).where(F.rand(0) < 0.01)
    plain, learned, scanned = [], [], []
    for turn in range(bench.rounds + 1):
        taken = bench.run(left.join(right, "k"))[0]
        began = time.perf_counter()
        learn_join(left, right, "k")
        learning_s = time.perf_counter() - began
        scan_s = bench.run(keys_only)[0]
        if turn:
            plain.append(taken)
            learned.append(learning_s)
            scanned.append(scan_s)
    a, b, c = (statistics.median(taken) for taken in (plain, learned, scanned))
    row = {"rows": f"{n:,} × {2 * keys:,}", "plain join s": round(a, 2), "learning s": round(b, 2)}
    row |= {"share": f"{b / a:.0%}", "bare scan s": round(c, 2), "its share": f"{c / a:.0%}"}
    CONSOLE.print(table("Learning", [row]))


def stream(bench):
    """Two streams of click and view, joined by user within the same minute."""
    n, keys = bench.size(100_000), 2000
    clicks, views = (zipf(n // part, keys, 1.3, seed) for part, seed in ((1, 8), (10, 9)))
    streams, batches = {}, {}
    for name, drawn in (("clicks", clicks), ("views", views)):
        batch = bench.table(name, drawn, "x" if name == "clicks" else "y", files=2)
        reader = bench.spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1)
        streams[name] = reader.parquet(str(bench.folder / name))
        batches[name] = batch
    # What waits in state is input.
    plan = learn_join(batches["clicks"], batches["views"], "k", result_weight=0)
    left, right = streams["clicks"], streams["views"]
    rows = []
    for name in ("plain", "ours"):
        checkpoint = str(bench.folder / f"checkpoint-{name}")
        joined = (
            left.join(right, "k")
            if name == "plain"
            else join(left, right, "k", plan=plan, checkpoint=checkpoint)
        )
        writer = joined.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
        held = np.zeros(PARTITIONS)
        for side in ("left", "right"):
            state = bench.spark.read.format("statestore").option("joinSide", side).load(checkpoint)
            counts = state.groupBy("partition_id").count().toArrow()
            at = counts["partition_id"].to_numpy()
            held = held + np.bincount(at, counts["count"].to_numpy(), PARTITIONS)
        uneven = round(unevenness(held, PARTITIONS), 2)
        rows.append({"way": name, "rows of state": f"{held.sum():,.0f}", "largest/mean": uneven})
    CONSOLE.print(table("State of a join of two streams, per partition", rows))


def real(bench, data):
    rows = []
    for name in ("congress_hashtags", "stocknet_cashtags"):
        path = data / f"{name}.tsv.gz"
        if not path.exists():
            CONSOLE.print(f"{path} is not there: left out.")
            continue
        raw = bench.spark.read.csv(str(path), sep="\t", schema="t long, k string")
        raw = raw.withColumn("x", F.monotonically_increasing_id())
        folder = str(bench.folder / name)
        raw.repartition(8, "x").write.parquet(folder)
        messages = bench.spark.read.parquet(folder)
        per_key = messages.groupBy("k").agg(F.min("t").alias("first"), F.count("x").alias("n"))
        per_key.write.parquet(f"{folder}-keys")
        known = bench.spark.read.parquet(f"{folder}-keys")
        hour = messages.withColumn("hour", F.floor(F.col("t") / 3600))
        cases = {
            "with a table per key": (messages, known, "k"),
            "with itself within an hour": (
                hour.select("k", "hour", "x"),
                hour.select("k", "hour", F.col("x").alias("y")),
                ["k", "hour"],
            ),
        }
        for case, (left, right, on) in cases.items():
            for way in ("plain", "ours"):
                joined = left.join(right, on) if way == "plain" else join(left, right, on)
                taken, events = bench.run(joined)
                work = tasks_of_joins(events)
                rows.append({
                    "data": name, "join": case, "way": way,
                    "tasks": len(work), "rows out": f"{work[:, 1].sum():,.0f}",
                    "seconds": round(taken, 1),
                    "in + out": round(unevenness(work.sum(axis=1), len(work)), 2),
                })  # fmt: skip
    CONSOLE.print(table("Real joins, largest task over the mean", rows))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="tasks,wall,cpu,learning,stream,real")
    parser.add_argument("--data", type=Path, help="folder with the real streams")
    options = parser.parse_args()
    parts = options.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options)
        for part in (tasks, wall, cpu, learning, stream):
            if part.__name__ in parts:
                part(bench)
        if "real" in parts and options.data is not None:
            real(bench, options.data)
        bench.spark.stop()


if __name__ == "__main__":
    main()
