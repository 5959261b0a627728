"""Run as a program: a batch job and a stream on a small cluster, an executor killed amid each.

`python -m tests.faults.cluster_job FOLDER` leaves `result.json` and Spark's event log in FOLDER.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pyspark
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from skewless import folds
from skewless.spark import Observer, group
from tests import sparks
from tests.faults.marking import Marking

ROWS, WORKERS, BATCHES = 24_000, 6, 2
KEY = "case when id % 3 = 0 then 'hot' when id % 5 = 0 then null else concat('w', id % 101) end"
FIRST_WAVE = 3  # one core on each of three executors
DELAY_MS = 0.25


def main(folder: Path) -> None:
    spark = cluster(folder)
    observer = Observer()
    result = {"batch": batch(spark, folder, observer), "stream": stream(spark, folder, observer)}
    result["observed"] = [
        (record.batch, record.messages, record.loads) for record in observer.records()
    ]
    (folder / "result.json").write_text(json.dumps(result))
    spark.stop()


def cluster(folder: Path, partitions: int = 4) -> SparkSession:
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    (folder / "events").mkdir()
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{folder}/events",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        **sparks.SETTINGS,
    }
    builder = SparkSession.builder.master("local-cluster[3,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def kill_one_executor(marks: Path, batch: str) -> dict[str, int]:
    """Once workers of the second wave have begun, so that some of the first are done."""
    killed: dict[str, int] = {}

    def aim() -> None:
        ends_s = time.monotonic() + 900
        while time.monotonic() < ends_s and not killed:
            begun = sorted(marks.glob(f"{batch}-*"), key=lambda path: path.stat().st_mtime)
            if len(begun) > FIRST_WAVE:
                pid = int(begun[-1].read_text())
                os.kill(pid, signal.SIGKILL)
                killed["pid"] = pid
            time.sleep(0.02)

    threading.Thread(target=aim, daemon=True).start()
    return killed


def fold(marks: Path):
    return Marking(folds.count(), DELAY_MS, marks), folds.sum("id")


def as_totals(rows) -> list[list]:
    return [[row["w"], row["count"], row["sum(id)"]] for row in rows]


def batch(spark: SparkSession, folder: Path, observer: Observer) -> dict:
    marks = folder / "batch-marks"
    marks.mkdir()
    counted = Observation("rows-before-routing")
    # Out of a shuffle, rows come in another order at each attempt.
    rows = spark.range(0, ROWS, 1, 6).selectExpr("id", f"{KEY} as w").repartition(4, "id")
    seen = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
    totals = group(seen, "w", "partial", WORKERS, observer=observer).fold(*fold(marks))
    killed = kill_one_executor(marks, "None")
    found = as_totals(totals.collect())
    return {"totals": found, "killed": killed, "observed_rows": counted.get["rows"]}


def stream(spark: SparkSession, folder: Path, observer: Observer) -> dict:
    marks, source = folder / "stream-marks", str(folder / "in")
    marks.mkdir()
    for number in range(BATCHES):
        start = number * ROWS // BATCHES
        part = spark.range(start, start + ROWS // BATCHES, 1, 1)
        part.selectExpr("id", f"{KEY} as w").write.mode("append").parquet(source)
    schema = "id long, w string"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    counted = F.count(F.lit(1)).alias("rows")
    rows = reader.parquet(source).repartition(4, "id").observe("rows-before-routing", counted)
    checkpoint = str(folder / "checkpoint")
    scheme = sparks.SCHEME_OF_STREAMS
    grouping = group(rows, "w", scheme, WORKERS, observer=observer, checkpoint=checkpoint)
    totals = grouping.fold(*fold(marks))
    newest: list[list] = []

    def keep(batch_rows, number):
        newest[:] = as_totals(batch_rows.collect())

    killed = kill_one_executor(marks, "1")
    writer = totals.writeStream.outputMode("complete").foreachBatch(keep)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    rows_seen = [
        progress["observedMetrics"]["rows-before-routing"]["rows"]
        for progress in query.recentProgress
        if progress["numInputRows"]
    ]
    await_records(observer, 1 + BATCHES)
    return {"totals": newest, "killed": killed, "observed_rows": rows_seen}


def await_records(observer: Observer, count: int) -> None:
    """Spark tells of a batch a moment after it is done."""
    ends_s = time.monotonic() + 120
    while len(observer.records()) < count and time.monotonic() < ends_s:
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
