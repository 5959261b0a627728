"""Heavy hitters on Spark: ours with four schemes, beside Spark's own `approx_top_k`.

    python bench/app_heavy_hitters.py [--messages 4e6] [--keys 1e6] [--workers 8] [--runs 3]

For the 100 most frequent keys of a Zipf stream: how far counts are off, how far the answer says
that they may be (Spark's says nothing), the bytes of counters on all workers together, and the
median seconds of alternating runs. Counters are those of one worker. Compare within one run.
"""

import argparse
import pickle
import tempfile
import time
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F
from rich.console import Console

from skewless.apps import top_k
from skewless.apps.counting.summary import counted, merged
from skewless.report.tables import table
from skewless.simulate.sources import route
from skewless.spark.lab.session import local_session

TOP = 100
SCHEMES = ("key", "partial", "graded", "shuffle")


def our_bytes(keys, counters, scheme, workers):
    """What the workers hold in all, as it travels."""
    homes = route(keys.astype(np.uint64), scheme, workers)
    total = 0
    for worker in range(workers):
        mine, held = keys[homes == worker], None
        for start in range(0, mine.size, 10_000):
            part = pa.array(mine[start : start + 10_000])
            new = counted(part, part, counters)
            held = new if held is None else merged(held, new)
        total += len(pickle.dumps({worker: held}, pickle.HIGHEST_PROTOCOL))
    return total


def sparks_own(rows, counters):
    found = rows.selectExpr(f"explode(approx_top_k(key, {TOP}, {counters})) as found")
    return found.selectExpr("found.item as key", "found.count as count", "null as error")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=float, default=4e6)
    parser.add_argument("--keys", type=float, default=1e6)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    messages, workers = int(options.messages), options.workers
    random = np.random.default_rng(0)
    weights = 1 / np.arange(1, int(options.keys) + 1)
    keys = random.choice(weights.size, messages, p=weights / weights.sum())
    truth = np.bincount(keys)
    with local_session(2) as spark, tempfile.TemporaryDirectory() as folder:
        for part, some in enumerate(np.array_split(keys, workers)):
            pq.write_table(pa.table({"key": some}), f"{folder}/{part}.parquet")
        rows = spark.read.parquet(folder)
        ways = {}
        for counters in (256, 1024, 4096):
            for scheme in SCHEMES:
                ways[scheme, counters] = partial(
                    top_k, rows, "key", TOP, counters=counters, scheme=scheme, workers=workers
                )
            ways["approx_top_k", counters] = partial(sparks_own, rows, counters)
        seconds, answers = {way: [] for way in ways}, {}
        for _ in range(options.runs):
            for way, answer in ways.items():
                start_s = time.perf_counter()
                # A new DataFrame each time: of one that ran before, Spark keeps the shuffles.
                answers[way] = answer().collect()
                seconds[way].append(time.perf_counter() - start_s)
        out = []
        for (name, counters), found in answers.items():
            off = np.array([abs(row["count"] - truth[row["key"]]) for row in found])
            best = set(np.argsort(-truth, kind="stable")[:TOP].tolist())
            said = [row["error"] for row in found if row["error"] is not None]
            if name == "approx_top_k":
                sketch = F.expr(f"approx_top_k_accumulate(key, {counters})").alias("s")
                parts = rows.repartition(workers).groupBy(F.spark_partition_id()).agg(sketch)
                size = parts.select(F.sum(F.length("s.sketch"))).first()[0]
            else:
                size = our_bytes(keys, counters, name, workers)
            out.append(
                {
                    "what": name,
                    "counters": counters,
                    "right": sum(row["key"] in best for row in found),
                    "mean off": round(float(off.mean()), 1),
                    "most off": int(off.max()),
                    "said at most": max(said) if said else "–",
                    "kB in all": round(size / 1000, 1),
                    "seconds": round(median(seconds[name, counters]), 2),
                }
            )
    title = f"the {TOP} most frequent of {messages:,} messages, Zipf-1, W = {workers}"
    Console(width=140).print(table(title, out))


if __name__ == "__main__":
    main()
