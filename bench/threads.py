"""Does anything grow? Thousands of micro-batches and many restarts in one process. Not a timing.

    python -m bench.threads [--batches 2000] [--restarts 100] [--plain]

Streams start, run some micro-batches and stop, over and over, each over a checkpoint of its kind: a
fold that Spark merges under a scheme that learns, one that Python merges, and `balanced_map`, all
with one observer. After each stop it counts threads of Python and of the JVM, listeners, handlers
and Python workers, and the JVM's memory. `--plain` runs streams of Spark alone, with a listener
that does nothing, for comparison: PySpark itself keeps a Python thread for every start that it
tells to a listener written in Python.

Exits with 1 if threads or listeners of the last quarter are more than those of the second, beyond
that thread.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener
from rich.console import Console

from skewless import folds
from skewless.report.tables import table
from skewless.spark import Observer, balanced_map, group
from skewless.spark.lab.session import local_session
from skewless.spark.observe import progress

WORKERS, ROWS = 2, 200
MARGIN = 10  # Spark starts and ends some threads of its own
# Spark's own pools remove blocks of batches that are over: up to 128 threads each, for a minute.
POOLS = ("block-manager-storage-async-thread-pool", "block-manager-ask-thread-pool")
SETTLED_S = 1.0


def source(spark):
    """A micro-batch of some rows whenever the last is done."""
    rate = spark.readStream.format("rate-micro-batch").option("numPartitions", 1)
    rows = rate.option("rowsPerBatch", ROWS).load()
    word = F.concat(F.lit("w"), F.col("value") % 17)
    return rows.select(word.alias("w"), word.alias("s"), F.col("value").alias("n"))


def as_it_is(batches):
    yield from batches


def native(spark, checkpoint, observer):
    way = {"checkpoint": checkpoint, "observer": observer}
    return group(source(spark), "w", "graded", WORKERS, **way).fold(folds.count(), folds.sum("n"))


def in_python(spark, checkpoint, observer):
    way = {"checkpoint": checkpoint, "observer": observer}
    return group(source(spark), "w", "d-choices", WORKERS, **way).fold(folds.top_k("s", 2))


def mapped(spark, checkpoint, observer):
    way = {"checkpoint": checkpoint, "observer": observer}
    rows = source(spark)
    return balanced_map(rows, as_it_is, rows.schema, key="w", workers=WORKERS, **way)


class Nothing(StreamingQueryListener):
    def onQueryStarted(self, event):
        pass

    def onQueryProgress(self, event):
        pass

    def onQueryTerminated(self, event):
        pass


def plain_fold(spark, checkpoint, observer):
    return source(spark).groupBy("w").agg(F.count("*"), F.sum("n"))


def plain_map(spark, checkpoint, observer):
    rows = source(spark)
    return rows.mapInArrow(as_it_is, rows.schema)


def run(frame, checkpoint, batches, mode):
    """Start the stream, let it run some batches, and stop it."""
    writer = frame.writeStream.format("noop").outputMode(mode)
    query = writer.option("checkpointLocation", checkpoint).start()
    try:
        first = None
        while True:
            if query.exception() is not None:
                raise query.exception()
            seen = query.lastProgress
            if seen is not None:
                first = seen["batchId"] if first is None else first
                if seen["batchId"] - first + 1 >= batches:
                    return seen["batchId"] - first + 1
            time.sleep(0.02)
    finally:
        query.stop()


def status(pid, field):
    """A number out of what Linux knows of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE)[1])


def children(pid):
    """Processes below this one, also of its children."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return len(found) + sum(children(int(child)) for child in found)


def counted(spark, jvm, plain):
    """How much there is of everything, now."""
    listener, threads = progress._LISTENERS.get(spark), status(jvm, "Threads")
    pooled = sum(count for name, count in kinds(spark).items() if name.startswith(POOLS))
    return {
        "Python threads": threading.active_count(),
        "JVM threads": threads,
        "not in pools": threads - pooled,
        "listeners": len(spark.streams._jsqm.listListeners()),
        "handlers": 0 if plain or listener is None else len(listener.handlers),
        "processes": children(os.getpid()),
        "JVM MB": status(jvm, "VmRSS") // 1024,
        "Python MB": status(os.getpid(), "VmRSS") // 1024,
    }


def kinds(spark):
    """The JVM's threads by name, without their numbers."""
    names = [thread.getName() for thread in spark._jvm.Thread.getAllStackTraces().keySet()]
    return Counter(re.sub(r"[0-9a-f]{8}-[-0-9a-f]+|\d+", "#", name) for name in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    each = -(-options.batches // options.restarts)
    ways = [plain_fold, plain_map] if options.plain else [native, in_python, mapped]
    console, seen, early, done = Console(width=110), [], Counter(), 0
    with local_session(WORKERS) as spark, tempfile.TemporaryDirectory() as folder:
        spark.sparkContext.setLogLevel("OFF")  # a query that is stopped complains
        spark.conf.set("spark.sql.shuffle.partitions", "1")  # many batches, not many tasks
        jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
        observer = Observer()
        if options.plain:
            spark.streams.addListener(Nothing())
        for number in range(options.restarts):
            way = ways[number % len(ways)]
            checkpoint = str(Path(folder) / way.__name__)
            mode = "append" if "map" in way.__name__ else "update"
            done += run(way(spark, checkpoint, observer), checkpoint, each, mode)
            time.sleep(SETTLED_S)
            seen.append(
                {"restart": number + 1, "batches": done, **counted(spark, jvm, options.plain)}
            )
            if number == options.restarts // 2:
                early = kinds(spark)
            print(seen[-1], flush=True)
        late = kinds(spark)
    shown = seen[:: max(1, len(seen) // 10)] + seen[-1:]
    console.print(table(f"{done} micro-batches, {len(seen)} starts", shown))
    grown = {name: count - early[name] for name, count in late.items() if count > early[name]}
    console.print(f"Threads of the JVM more than half-way: {grown or 'none'}")
    sys.exit(1 if any(grows(seen, name) for name in GUARDED) else 0)


GUARDED = {"Python threads": 2, "not in pools": MARGIN, "listeners": 0, "processes": WORKERS * 2}


def grows(seen, name):
    """Whether there is more in the last quarter than in the second, beyond the margin."""
    quarter = max(1, len(seen) // 4)
    allowed = GUARDED[name] + (2 * quarter if name == "Python threads" else 0)
    before = statistics.median(row[name] for row in seen[quarter : 2 * quarter])
    after = statistics.median(row[name] for row in seen[-quarter:])
    if after > before + allowed:
        print(f"{name}: {before:g} in the second quarter, {after:g} in the last")
        return True
    return False


if __name__ == "__main__":
    main()
