"""Run as a program: a stream with state per worker on a cluster in which one executor is slowed.

`python -m tests.faults.unequal_job FOLDER` leaves `result.json` in FOLDER. From the first batch on,
the executor that runs worker 0 is stopped and continued in slices, as cpulimit does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from skewless.schemes import scheme_of
from skewless.spark import per_worker
from skewless.spark.adapt.plans import stream_folder
from tests.faults.cluster_job import cluster
from tests.faults.marking import MarkingCount

WORKERS, BATCHES, ROWS = 3, 3, 1500
SLOWED = 0
DELAY_MS = 0.5
RUNS_S, STOPS_S = 0.03, 0.07


def main(folder: Path) -> None:
    spark = cluster(folder, WORKERS)
    marks = folder / "marks"
    marks.mkdir()
    write_batches(folder / "in")
    ended = threading.Event()
    limiter = threading.Thread(target=limit, args=(marks, ended))
    limiter.start()
    try:
        totals = run(spark, folder, marks)
    finally:
        ended.set()
        limiter.join()
    pids = {path.name: int(path.read_text()) for path in marks.iterdir()}
    plans = [counts(folder, batch) for batch in range(BATCHES + 1)]
    result = {"totals": totals, "executors": pids, "virtual_workers": plans}
    (folder / "result.json").write_text(json.dumps(result))
    spark.stop()


def keys(batch: int) -> list[str]:
    numbers = range(batch * ROWS, (batch + 1) * ROWS)
    return ["hot" if i % 4 == 0 else f"w{i % 23}" for i in numbers]


def write_batches(source: Path) -> None:
    source.mkdir()
    for batch in range(BATCHES):
        pq.write_table(pa.table({"w": keys(batch)}), source / f"{batch}.parquet")


def run(spark: SparkSession, folder: Path, marks: Path) -> dict[str, int]:
    reader = spark.readStream.schema("w string").option("maxFilesPerTrigger", 1)
    rows = reader.parquet(str(folder / "in"))
    checkpoint, processor = str(folder / "checkpoint"), MarkingCount(DELAY_MS, marks)
    counted = per_worker(
        rows, "w", "consistent", WORKERS, processor, processor.SCHEMA, checkpoint=checkpoint
    )
    newest: dict[tuple[int, str], int] = {}

    def keep(batch_rows, number):
        newest.update({(r["worker"], r["w"]): r["count"] for r in batch_rows.collect()})

    writer = counted.writeStream.outputMode("update").foreachBatch(keep)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    await_plan(folder, BATCHES)
    totals: Counter[str] = Counter()
    for (_, word), count in newest.items():
        totals[word] += count
    return dict(totals)


def await_plan(folder: Path, batch: int) -> None:
    """Spark tells of a batch a moment after it is done."""
    path = folder / "checkpoint" / "skewless" / "plans" / f"{batch}.npz"
    ends_s = time.monotonic() + 120
    while not path.exists() and time.monotonic() < ends_s:
        time.sleep(0.05)


def counts(folder: Path, batch: int) -> list[int]:
    """The virtual workers of each worker in a batch."""
    plans = stream_folder(str(folder / "checkpoint"), scheme_of("consistent"), WORKERS, 0)
    return np.bincount(plans.used(batch).plan.owners, minlength=WORKERS).tolist()


def limit(marks: Path, ended: threading.Event) -> None:
    """Let the slowed worker's executor, with its Python processes, run 30 % of the time."""
    while not ended.is_set():
        begun = list(marks.glob(f"0-{SLOWED}-*"))
        if begun:
            slice_executor(psutil.Process(int(begun[0].read_text())), ended)
            return
        time.sleep(0.02)


def slice_executor(executor: psutil.Process, ended: threading.Event) -> None:
    while not ended.is_set():
        family = [executor, *executor.children(recursive=True)]
        try:
            send(family, signal.SIGSTOP)
            time.sleep(STOPS_S)
        finally:
            send(family, signal.SIGCONT)
        time.sleep(RUNS_S)


def send(family: list[psutil.Process], number: int) -> None:
    for member in family:
        try:
            os.kill(member.pid, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main(Path(sys.argv[1]))
